"""Which of its candidates a left row is given with, where it waits for all of them."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from skewless.engine.columns import ROW_HASH
from skewless.kernels.near import NearCondition
from skewless.kernels.nearest import CANDIDATE_BYTES, NearestRows
from skewless.kernels.ordering import IndexArray
from skewless.kernels.runs import SortedRun


class Choice(Protocol):
    """Takes in the candidates of some left rows, and keeps those that are given."""

    def offer(self, number: int, stored: SortedRun, needle: IndexArray, other: IndexArray) -> None:
        """Postings of a numbered run of right rows that match postings of the left rows."""
        ...

    def chosen(self) -> Iterator[tuple[int, IndexArray, IndexArray]]:
        """Run by run: left rows, and the right rows that they are given with."""
        ...


class Chooser(Protocol):
    """Begins a choice."""

    @property
    def row_bytes(self) -> int:
        """About what is kept for a left row until its choice is made."""
        ...

    def begin(self, needles: SortedRun, condition: NearCondition) -> Choice: ...


@dataclass(frozen=True)
class KNearest:
    """The k right rows that are nearest."""

    k: int

    @property
    def row_bytes(self) -> int:
        return self.k * CANDIDATE_BYTES

    def begin(self, needles: SortedRun, condition: NearCondition) -> "_KNearestChoice":
        return _KNearestChoice(needles, condition, NearestRows(len(needles), self.k))


@dataclass(frozen=True)
class _KNearestChoice:
    needles: SortedRun
    condition: NearCondition
    best: NearestRows

    def offer(self, number: int, stored: SortedRun, needle: IndexArray, other: IndexArray) -> None:
        mine, theirs = self.needles.rows_of(needle), stored.rows_of(other)
        self.best.offer(
            mine,
            self.condition.distances(self.needles, stored, mine, theirs),
            stored.times[other],
            stored.rows.column(ROW_HASH).to_numpy()[theirs],
            number,
            theirs,
        )

    def chosen(self) -> Iterator[tuple[int, IndexArray, IndexArray]]:
        return self.best.chosen()
