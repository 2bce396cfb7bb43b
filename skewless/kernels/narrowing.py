"""Narrows the pairs that an index has found to those of which a predicate holds, too."""

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from skewless.kernels.conditions import Condition, Mask
from skewless.kernels.ordering import HashArray, IndexArray
from skewless.kernels.predicate import Predicate
from skewless.kernels.runs import SortedRun


@dataclass(frozen=True)
class Narrowed:
    """A condition, if there is one, and a predicate on those that fulfil it."""

    condition: Condition | None  # None: equal keys are all
    where: Predicate
    needles_are_left: bool = True

    def seen_from(self, side: str) -> "Narrowed":
        """The same for needles of this side."""
        condition = None if self.condition is None else self.condition.seen_from(side)
        return replace(self, condition=condition, needles_are_left=side == "left")

    def qualifying(
        self, needles: SortedRun, stored: SortedRun, needle: IndexArray, other: IndexArray
    ) -> Mask:
        """The predicate comes last: most candidates never get there."""
        if self.condition is None:
            return self.holding(needles, stored, needles.rows_of(needle), stored.rows_of(other))
        found = self.condition.qualifying(needles, stored, needle, other)
        at = np.flatnonzero(found)
        mine, theirs = needles.rows_of(needle[at]), stored.rows_of(other[at])
        found[at] = self.holding(needles, stored, mine, theirs)
        return found

    def holding(
        self, needles: SortedRun, stored: SortedRun, mine: IndexArray, theirs: IndexArray
    ) -> Mask:
        """Of which pairs of rows, by their numbers in two runs, the predicate holds."""
        if self.needles_are_left:
            return self.where.holds(needles.rows, stored.rows, mine, theirs)
        return self.where.holds(stored.rows, needles.rows, theirs, mine)

    def seeds(self, rows: pa.RecordBatch) -> HashArray | None:
        return None if self.condition is None else self.condition.seeds(rows)


def narrowed(
    condition: Condition | None, where: Predicate | None, side: str = "left"
) -> Condition | None:
    """What pairs have to fulfil besides equal keys, for needles of a side; None: nothing."""
    if where is not None:
        return Narrowed(condition, where).seen_from(side)
    return None if condition is None else condition.seen_from(side)
