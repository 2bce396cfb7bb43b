"""Which of its candidates a left row is given with, where it waits for all of them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from skewless.engine.columns import ROW_HASH
from skewless.kernels.closest import CANDIDATE_BYTES as CLOSEST_BYTES
from skewless.kernels.closest import ClosestRows
from skewless.kernels.conditions import Condition
from skewless.kernels.equijoin import Probe
from skewless.kernels.narrowing import narrowed
from skewless.kernels.near import NearCondition
from skewless.kernels.nearest import CANDIDATE_BYTES, NearestRows
from skewless.kernels.ordering import IndexArray
from skewless.kernels.predicate import Predicate
from skewless.kernels.runs import SortedRun


class Choice(Protocol):
    """Takes in the candidates of some left rows, and keeps those that are given."""

    def meet(self, number: int, found: Probe, keys: Sequence[str], at_once: int) -> None:
        """What a probe has found in a numbered run of right rows, looked at in portions."""
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

    def begin(
        self, needles: SortedRun, condition: NearCondition | None, where: Predicate | None = None
    ) -> Choice: ...


@dataclass(frozen=True)
class KNearest:
    """The k right rows that are nearest."""

    k: int

    @property
    def row_bytes(self) -> int:
        return self.k * CANDIDATE_BYTES

    def begin(
        self, needles: SortedRun, condition: NearCondition | None, where: Predicate | None = None
    ) -> "_KNearestChoice":
        assert condition is not None, "the nearest are those of a join by distance"
        fulfilled = narrowed(condition, where)
        assert fulfilled is not None, "there is a condition"
        return _KNearestChoice(needles, condition, fulfilled, NearestRows(len(needles), self.k))


@dataclass(frozen=True)
class _KNearestChoice:
    needles: SortedRun
    condition: NearCondition  # tells distances
    fulfilled: Condition  # with what else candidates have to fulfil
    best: NearestRows

    def meet(self, number: int, found: Probe, keys: Sequence[str], at_once: int) -> None:
        stored = found.stored
        for needle, other in found.pairs(keys, at_once):
            near = self.fulfilled.qualifying(self.needles, stored, needle, other)
            mine, theirs = self.needles.rows_of(needle[near]), stored.rows_of(other[near])
            self.best.offer(
                mine,
                self.condition.distances(self.needles, stored, mine, theirs),
                stored.times[other[near]],
                stored.rows.column(ROW_HASH).to_numpy()[theirs],
                number,
                theirs,
            )

    def chosen(self) -> Iterator[tuple[int, IndexArray, IndexArray]]:
        return self.best.chosen()


@dataclass(frozen=True)
class ClosestInTime:
    """The one right row that is closest in time."""

    @property
    def row_bytes(self) -> int:
        return CLOSEST_BYTES

    def begin(
        self, needles: SortedRun, condition: NearCondition | None, where: Predicate | None = None
    ) -> "_ClosestChoice":
        return _ClosestChoice(narrowed(condition, where), ClosestRows(needles.times))


@dataclass(frozen=True)
class _ClosestChoice:
    fulfilled: Condition | None  # what candidates have to fulfil besides equal keys
    best: ClosestRows

    def meet(self, number: int, found: Probe, keys: Sequence[str], at_once: int) -> None:
        times = found.stored.times
        if self.fulfilled is None and not found.compare_pairs:
            # Matches are a range whose times rise: two of them are looked at, not all.
            self.best.offer(number, times, found.start, found.count)
            return
        for needle, other in found.pairs(keys, at_once):
            if self.fulfilled is not None:
                chosen = self.fulfilled.qualifying(found.needles, found.stored, needle, other)
                needle, other = needle[chosen], other[chosen]
            self.best.offer_pairs(number, times, needle, other)

    def chosen(self) -> Iterator[tuple[int, IndexArray, IndexArray]]:
        return self.best.chosen()
