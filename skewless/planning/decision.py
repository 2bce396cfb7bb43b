"""What a policy decides after a batch, and what it says of it."""

from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

from skewless.planning.snapshot import Snapshot

Memory = dict[str, Any]  # a policy's own; survives JSON
# Where rows go: a `Route` for operators with state, a `Dealing` for maps.
RouteT = TypeVar("RouteT", covariant=True)


@dataclass(frozen=True)
class Limits:
    """What a plan has to keep to, beside what every plan has; None: no limit."""

    max_moves: int | None = None  # partitions that change their instance in a round
    table_limit: int | None = None  # entries of the key table


class Proposal(Protocol):
    """What changes, and what is expected of it: checked before it is enacted, told afterwards."""

    def check(self, snapshot: Snapshot, limits: Limits) -> None:
        """Raise the `PlanError` that says why it must not be enacted."""
        ...

    def told(self) -> dict[str, Any]:
        """What progress says of it: moves, rows that move, the imbalance before and after."""
        ...


@dataclass(frozen=True)
class Decision(Generic[RouteT]):
    """What holds from the next batch on. Whatever else there is to decide has a default here.

    Doing nothing is a decision too: no route, with the reason.
    """

    route: RouteT | None  # None: the one in force stays
    reason: str
    memory: Memory = field(default_factory=dict)  # handed back when the policy is asked again
    plan: Proposal | None = None
