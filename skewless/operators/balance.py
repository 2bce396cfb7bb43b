"""Which policies `balance=` takes, for an operator with state."""

from skewless.errors import bad_argument
from skewless.planning.auto import Auto
from skewless.planning.policy import Policy, RoutingPolicy


def routing_policy(balance: Policy | None, example: str) -> RoutingPolicy:
    """The policy of an operator with state; one that deals out rows without keys is refused."""
    if balance is None:
        return Auto()
    if not isinstance(balance, RoutingPolicy):
        raise bad_argument("balance", balance, f"a policy such as {example}")
    return balance
