"""What a simulated run has shown."""

from dataclasses import asdict, dataclass
from typing import Any

from skewless.errors import bad_argument


@dataclass(frozen=True)
class Look:
    """What the controller saw at the end of one of its periods, and did."""

    time_s: float
    imbalance: float  # LI (eq. 13) of the instances' resources (eq. 7-12)
    work_imbalance: float  # LI of their measured service times
    moved_rows: int
    reason: str
    planning_s: float


@dataclass(frozen=True)
class Run:
    """The figures of a run after its warm-up; `looks` has all periods."""

    rate: float  # tuples per second that arrived
    throughput: float  # tuples per second that were done
    utilisation: float  # of the busiest instance: work that came in per second
    mean_utilisation: float
    mean_latency_s: float
    p99_latency_s: float
    max_latency_s: float
    copies: float  # visits per tuple
    moved_rows: int  # from the start
    entries: int  # keys that the router looks up, at the end
    looks: tuple[Look, ...]

    def __post_init__(self) -> None:
        if not self.looks:
            raise bad_argument("looks", self.looks, "at least one period")

    @property
    def saturated(self) -> bool:
        """Whether an instance was given more work than it can do."""
        return self.utilisation >= 1.0

    def settled(self, name: str) -> float:
        """The mean of a figure over the last half of the periods.

        `name` is a field of `Look`, such as 'imbalance'.
        """
        late = self.looks[len(self.looks) // 2 :]
        return sum(float(getattr(look, name)) for look in late) / len(late)

    @property
    def planning_s(self) -> float:
        """The longest time that one plan took."""
        return max(look.planning_s for look in self.looks)

    def as_json(self) -> dict[str, Any]:
        """Everything but the single periods' reasons."""
        record = asdict(self) | {"saturated": self.saturated, "planning_s": self.planning_s}
        record["looks"] = [
            {name: value for name, value in look.items() if name != "reason"}
            for look in record["looks"]
        ]
        return record
