"""Join-Matrix: a left row is sent along a random row of a grid of instances, a right row along a
column, and they meet where the two cross, whatever their keys."""

from dataclasses import dataclass
from math import isqrt

import numpy as np

from skewless.routing.router import Hashes, Meeting, Side, Visits, scaled


def grid_shape(instances: int) -> tuple[int, int]:
    """The most nearly square grid with exactly so many cells; one row for a prime number.

    >>> grid_shape(12), grid_shape(7)
    ((3, 4), (1, 7))
    """
    rows = next(r for r in range(isqrt(instances), 0, -1) if instances % r == 0)
    return rows, instances // rows


@dataclass(frozen=True)
class JoinMatrixRouter:
    """The grid of a join matrix; see `Router` for the contract."""

    instances: int

    @property
    def meeting(self) -> Meeting:
        return "at crossing"

    def visits(self, side: Side, hashes: Hashes, spread: Hashes) -> Visits:
        """A row visits a whole line of the grid, and one of its cells stores it."""
        rows, columns = grid_shape(self.instances)
        lines, length, step, stride = (
            (rows, columns, columns, 1) if side == "left" else (columns, rows, 1, columns)
        )
        row = np.repeat(np.arange(len(hashes)), length)
        place = np.tile(np.arange(length), len(hashes))
        instance = np.repeat(scaled(spread, lines) * step, length) + place * stride
        # The line took the upper half of the spread value, so the cell takes the lower.
        stored = scaled(spread << np.uint64(32), length)
        return Visits(row, instance, place == stored[row])
