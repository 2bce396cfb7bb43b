"""What a policy decides after a batch, with the reason."""

from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

Memory = dict[str, Any]  # belongs to the policy; must survive JSON
# Where rows go: a `Route` for operators with state, a `Dealing` for maps.
RouteT = TypeVar("RouteT", covariant=True)


@dataclass(frozen=True)
class Limits:
    """Limits of a plan, besides the rules for all plans; None: no limit."""

    max_moves: int | None = None  # partitions that change their instance in a round
    table_limit: int | None = None  # entries of the key table


class Proposal(Protocol):
    """A change and its expected effect: checked before it is applied, then shown in progress."""

    def check(self, snapshot: Any, limits: Limits) -> None:
        """Raise the `PlanError` that says why it must not be applied.

        `snapshot` is the one that the policy was given.
        """
        ...

    def told(self) -> dict[str, Any]:
        """What progress says of it: moves, rows that move, the imbalance before and after."""
        ...


@dataclass(frozen=True)
class Decision(Generic[RouteT]):
    """The route of the next batch, and why.

    Doing nothing is also a decision: no route, with the reason.
    """

    route: RouteT | None  # None: keep the current one
    reason: str
    memory: Memory = field(default_factory=dict)  # passed to the next call of `plan`
    plan: Proposal | None = None
