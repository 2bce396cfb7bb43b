"""The cells of a map: a square grid over the bounds, and the numbers by which cells are known."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from skewless.errors import bad_argument

Numbers = npt.NDArray[np.int64]
Reals = npt.NDArray[np.float64]
# A cell is a partition in the eyes of the state, and there are no more of these than 65,536.
MAX_SIDE = 256
# Cells per unit of a coordinate: beyond these, sums and products overflow.
_LEAST, _MOST = 1e-290, 1e290


@dataclass(frozen=True)
class CellGrid:
    """`side` × `side` cells over a rectangle; cells are numbered row by row, rows by rising y.

    A point on the line between two cells belongs to the upper one of them, a point on the upper
    edge of the bounds to the last. Spark SQL computes the same: `skewless.runtime.tiles`.

    >>> grid = CellGrid(4, (0.0, 0.0, 100.0, 100.0))
    >>> grid.cells(np.array([0.0, 25.0, 100.0]), np.array([0.0, 99.0, 100.0])).tolist()
    [0, 13, 15]
    """

    side: int
    bounds: tuple[float, float, float, float]  # x_min, y_min, x_max, y_max

    def __post_init__(self) -> None:
        powers = [2**n for n in range(MAX_SIDE.bit_length())]
        if self.side not in powers:
            raise bad_argument("cells", self.side, f"a power of two from 1 to {MAX_SIDE}")
        if len(self.bounds) != 4 or not np.isfinite(self.bounds).all():
            raise bad_argument("bounds", self.bounds, "four finite numbers")
        x_min, y_min, x_max, y_max = self.bounds
        ordered = x_min < x_max and y_min < y_max
        if not ordered or not all(_LEAST < scale < _MOST for scale in self.scales):
            takes = "(x_min, y_min, x_max, y_max) with x_min < x_max and y_min < y_max"
            raise bad_argument("bounds", self.bounds, takes)

    @property
    def scales(self) -> tuple[float, float]:
        """Cells per unit of x and of y."""
        x_min, y_min, x_max, y_max = self.bounds
        return self.side / (x_max - x_min), self.side / (y_max - y_min)

    @property
    def count(self) -> int:
        return self.side * self.side

    def columns(self, x: Reals) -> Numbers:
        """The column of every x; those outside the bounds count to the nearest column."""
        return self._places(x, self.bounds[0], self.scales[0])

    def rows(self, y: Reals) -> Numbers:
        """The row of every y."""
        return self._places(y, self.bounds[1], self.scales[1])

    def cells(self, x: Reals, y: Reals) -> Numbers:
        """The cell of every point."""
        return self.rows(y) * self.side + self.columns(x)

    def _places(self, values: Reals, least: float, scale: float) -> Numbers:
        # Rising with the value whatever the rounding, so a point inside a rectangle is in one of
        # the rectangle's cells.
        places = np.floor((values - least) * scale)
        return np.clip(places, 0, self.side - 1).astype(np.int64)

    @property
    def shift(self) -> int:
        """hash = cell << shift: then the cell is the partition of the hash."""
        return 64 - 2 * (self.side.bit_length() - 1)

    def hashes(self, cells: Numbers) -> npt.NDArray[np.uint64]:
        """The hash by which the rows of a cell are routed, stored and counted."""
        if self.side == 1:
            return np.zeros(len(cells), np.uint64)
        return cells.astype(np.uint64) << np.uint64(self.shift)

    def to_json(self) -> dict[str, Any]:
        return {"side": self.side, "bounds": list(self.bounds)}

    @staticmethod
    def from_json(record: dict[str, Any]) -> "CellGrid":
        x_min, y_min, x_max, y_max = record["bounds"]
        return CellGrid(record["side"], (x_min, y_min, x_max, y_max))
