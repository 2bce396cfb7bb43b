"""Sums over rectangles of cells, each in four lookups whatever its size."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from skewless.errors import bad_argument
from skewless.routing.tiles import Axis

Reals = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class AreaSums:
    """A summed-area table: `before[r, c]` is the sum of all cells above row r, left of column c.

    >>> sums = AreaSums.of(2, np.array([1.0, 2.0, 3.0, 4.0]))
    >>> float(sums.within(0, 1, 2, 2))
    6.0
    """

    before: Reals

    @staticmethod
    def of(side: int, values: Reals) -> "AreaSums":
        """The table of a value per cell, row by row."""
        if values.shape != (side * side,):
            raise bad_argument("values", values.shape, f"one per cell ({side * side},)")
        before = np.zeros((side + 1, side + 1))
        before[1:, 1:] = values.reshape(side, side).cumsum(0).cumsum(1)
        before.flags.writeable = False
        return AreaSums(before)

    def within(
        self,
        top: npt.ArrayLike,
        left: npt.ArrayLike,
        bottom: npt.ArrayLike,
        right: npt.ArrayLike,
    ) -> Reals:
        """The sum over `top ≤ row < bottom` and `left ≤ column < right`, for one or many."""
        row, column, row_end, column_end = (
            np.asarray(ends, np.int64) for ends in (top, left, bottom, right)
        )
        at = self.before
        summed = at[row_end, column_end] - at[row, column_end] - at[row_end, column]
        # What was summed in another order may end a little below zero.
        found: Reals = np.maximum(summed + at[row, column], 0.0)
        return found

    def upto(self, top: int, left: int, bottom: int, right: int, axis: Axis) -> Reals:
        """The sums of the first 1, 2, … rows or columns of a rectangle, without the whole."""
        at = self.before
        if axis == "rows":
            lines = at[top + 1 : bottom, right] - at[top + 1 : bottom, left]
            summed = lines - (at[top, right] - at[top, left])
        else:
            lines = at[bottom, left + 1 : right] - at[top, left + 1 : right]
            summed = lines - (at[bottom, left] - at[top, left])
        found: Reals = np.maximum(summed, 0.0)
        return found
