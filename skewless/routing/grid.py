"""A grid (Join-Matrix): a left row is sent along a random row of a grid of instances, a right row
down a random column, and they meet where the two cross, whatever their keys."""

from dataclasses import dataclass
from math import isqrt
from typing import Any, ClassVar, Self

import numpy as np

from skewless.routing.partitions import PartitionTable
from skewless.routing.route import Hashes, Instances, ScatteringRoute, Side, Visits, scaled


def grid_shape(instances: int) -> tuple[int, int]:
    """The most nearly square grid with exactly so many cells; one row for a prime number.

    >>> grid_shape(12), grid_shape(7)
    ((3, 4), (1, 7))
    """
    rows = next(r for r in range(isqrt(instances), 0, -1) if instances % r == 0)
    return rows, instances // rows


@dataclass(frozen=True)
class GridRoute(ScatteringRoute):
    """A row visits a whole line of the grid, and one of its cells stores it.

    The table is not used for routing. Its partitions are the units in which loads are counted.
    """

    kind: ClassVar[str] = "grid"

    table: PartitionTable

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the grid."""
        return grid_shape(self.instances)

    @property
    def replicas_meet(self) -> bool:
        return True

    def homes(self, side: Side, hashes: Hashes, spread: Hashes) -> Instances:
        line, cell = self._places(side, spread)
        step, stride, _ = self._strides(side)
        return line * step + cell * stride

    def visits(self, side: Side, hashes: Hashes, spread: Hashes) -> Visits:
        line, cell = self._places(side, spread)
        step, stride, length = self._strides(side)
        row = np.repeat(np.arange(len(spread)), length)
        place = np.tile(np.arange(length), len(spread))
        return Visits(row, line[row] * step + place * stride, place == cell[row])

    def _places(self, side: Side, spread: Hashes) -> tuple[Instances, Instances]:
        """The line that each row is sent along, and the cell of it that stores the row."""
        lines, length = self.shape if side == "left" else self.shape[::-1]
        # The line takes the upper half of the spread value, so the cell takes the lower.
        return scaled(spread, lines), scaled(spread << np.uint64(32), length)

    def _strides(self, side: Side) -> tuple[int, int, int]:
        """How far it is from line to line and from cell to cell, and how many cells a line has."""
        rows, columns = self.shape
        return (columns, 1, columns) if side == "left" else (1, columns, rows)

    def reads(self, instance: int) -> frozenset[int]:
        return frozenset(range(self.partitions))

    def _fields(self) -> dict[str, Any]:
        return self.table.to_json()

    @classmethod
    def from_json(cls, record: dict[str, Any]) -> Self:
        return cls(PartitionTable.from_json(record))
