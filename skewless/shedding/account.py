"""What a task says of its probing: how much there was, how much was done, what it gave."""

from dataclasses import asdict, dataclass, field
from typing import Any

from skewless.shedding.estimate import Missed


@dataclass(frozen=True)
class Account:
    """One task's probing in one batch. Cells are basic windows, one row of them per value class."""

    rows: int  # that came in
    dropped: dict[str, int]  # per side: rows that were not even stored
    keep: float  # the share of the rows that was to be stored
    offered: int  # comparisons that a full probe would have made
    comparisons: int  # those that were made
    matches: int
    rest_ms: float  # all that is not comparing and giving out
    compare_ms: float
    match_ms: float
    fraction: float = 1.0  # of the work of a full probe
    left: float = 1.0  # the part of the left side's window that was probed
    right: float = 1.0
    # Of rows that were probed in full, per cell.
    cell_comparisons: list[float] = field(default_factory=list)
    cell_matches: list[float] = field(default_factory=list)
    cell_values: list[float] = field(default_factory=list)
    values: list[float] = field(default_factory=list)  # a sample of what rows are worth
    missed: Missed = field(default_factory=Missed)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @staticmethod
    def from_json(record: dict[str, Any]) -> "Account":
        return Account(**{**record, "missed": Missed.from_json(record["missed"])})
