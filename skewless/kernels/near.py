"""The condition of a join by distance: two points are near enough, and their keys are equal."""

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from skewless.kernels.distance import Coordinates, Floats, Globe, Plane
from skewless.kernels.hashing import xxhash64
from skewless.kernels.ordering import HashArray, IndexArray
from skewless.kernels.runs import SortedRun, equal_at_rows

Mask = npt.NDArray[np.bool_]
Columns = tuple[str, str]


@dataclass(frozen=True)
class NearCondition:
    """Two points are at most `metric.reach` apart.

    Rows are brought together by cells of a grid: a left row is found in its own cell only, a right
    row in every cell that it may have a neighbour in, in each once. So a pair meets once, and
    nothing has to be asked of the posting at which it does.
    """

    metric: Plane | Globe
    left: Columns  # where the coordinates of a left row are
    right: Columns
    most: tuple[float, float]  # of coordinates, as absolute values
    keys: tuple[str, ...] = ()  # equal, too; part of every hash
    needles_are_left: bool = True

    def seen_from(self, side: str) -> "NearCondition":
        """The same for needles of this side."""
        return replace(self, needles_are_left=side == "left")

    @property
    def _columns(self) -> tuple[Columns, Columns]:
        return (self.left, self.right) if self.needles_are_left else (self.right, self.left)

    def qualifying(
        self, needles: SortedRun, stored: SortedRun, needle: IndexArray, other: IndexArray
    ) -> Mask:
        mine, theirs = needles.rows_of(needle), stored.rows_of(other)
        columns = self._columns
        found, doubted = self.metric.within(
            self._compared(needles.rows, columns[0]),
            mine,
            self._compared(stored.rows, columns[1]),
            theirs,
        )
        if len(doubted):
            apart = self.distances(needles, stored, mine[doubted], theirs[doubted])
            found[doubted] = apart <= self.metric.reach
        if self.keys:
            at = np.flatnonzero(found)
            found[at] = equal_at_rows(needles, stored, mine[at], theirs[at], self.keys)
        return found

    def distances(
        self, needles: SortedRun, stored: SortedRun, mine: IndexArray, theirs: IndexArray
    ) -> Floats:
        """How far apart some rows of two runs are."""
        columns = self._columns
        first = [c[mine] for c in coordinates(needles.rows, columns[0])]
        second = [c[theirs] for c in coordinates(stored.rows, columns[1])]
        return self.metric.distances(*first, *second)

    def seeds(self, rows: pa.RecordBatch) -> HashArray:
        """A deterministic hash of the point of every needle."""
        mixed = np.zeros(rows.num_rows, np.uint64)
        for part in coordinates(rows, self._columns[0]):
            mixed = xxhash64((mixed ^ part.view(np.uint64)).view(np.int64))
        return mixed

    def _compared(self, rows: pa.RecordBatch, columns: Columns) -> Coordinates:
        return coordinates(rows, self.metric.derived or columns)


def coordinates(rows: pa.RecordBatch, columns: tuple[str, ...]) -> Coordinates:
    """Columns of doubles without nulls, not copied."""
    return tuple(rows.column(name).to_numpy() for name in columns)
