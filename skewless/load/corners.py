"""How many rectangles meet any window of a map, from counts of their corners."""

import base64
import zlib
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from skewless.errors import bad_argument

Numbers = npt.NDArray[np.int64]
# Counts are stored in the smallest of these types that holds them.
_WIDTHS = ("<i1", "<i2", "<i4", "<i8")


@dataclass(frozen=True, eq=False)
class CornerCounts:
    """Rectangles of cells on a map of `side` × `side`, by the cells of their four corners.

    `corners` has four matrices: how many rectangles have their (top, left), (top, right),
    (bottom, left) and (bottom, right) corner in a cell. All ends are inclusive. Counts of any
    window are exact, whatever tiles there were before. A difference may have negative counts.

    >>> counts = CornerCounts.of(4, [0, 2], [0, 1], [1, 2], [3, 1])
    >>> int(counts.meeting(1, 0, 3, 1)), int(counts.meeting(2, 2, 3, 3))
    (2, 0)
    """

    side: int
    corners: Numbers

    def __post_init__(self) -> None:
        if self.corners.shape != (4, self.side, self.side):
            takes = f"four matrices of {self.side} × {self.side}"
            raise bad_argument("corners", self.corners.shape, takes)
        self.corners.flags.writeable = False

    @staticmethod
    def empty(side: int) -> "CornerCounts":
        return CornerCounts(side, np.zeros((4, side, side), np.int64))

    @staticmethod
    def of(
        side: int,
        top: npt.ArrayLike,
        left: npt.ArrayLike,
        bottom: npt.ArrayLike,
        right: npt.ArrayLike,
    ) -> "CornerCounts":
        """The counts of these rectangles."""
        rows = [np.asarray(ends, np.int64) for ends in (top, bottom)]
        columns = [np.asarray(ends, np.int64) for ends in (left, right)]
        for name, (first, last) in (("rows", rows), ("columns", columns)):
            if not first.size:
                continue
            if first.min() < 0 or last.max() >= side or (first > last).any():
                got = (int(first.min()), int(last.max()))
                raise bad_argument(name, got, f"first ≤ last, from 0 to {side - 1}")
        cells = [row * side + column for row in rows for column in columns]
        counted = [np.bincount(corner, minlength=side * side) for corner in cells]
        return CornerCounts(side, np.array(counted, np.int64).reshape(4, side, side))

    def __add__(self, other: "CornerCounts") -> "CornerCounts":
        return CornerCounts(self.side, self.corners + other.corners)

    def __sub__(self, other: "CornerCounts") -> "CornerCounts":
        return CornerCounts(self.side, self.corners - other.corners)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, CornerCounts):
            return NotImplemented
        return np.array_equal(self.corners, other.corners)

    __hash__ = None  # type: ignore[assignment]

    @property
    def total(self) -> int:
        """The number of rectangles."""
        return int(self.corners[0].sum())

    @cached_property
    def _before(self) -> Numbers:
        """Per kind of corner, how many are above row r and left of column c."""
        before = np.zeros((4, self.side + 1, self.side + 1), np.int64)
        before[:, 1:, 1:] = self.corners.cumsum(1).cumsum(2)
        return before

    def meeting(
        self,
        top: npt.ArrayLike,
        left: npt.ArrayLike,
        bottom: npt.ArrayLike,
        right: npt.ArrayLike,
    ) -> Numbers:
        """How many rectangles meet the window, for one window or many.

        Of all rectangles, those miss the window that end before it or begin behind it, in rows or
        in columns. A rectangle cannot do both in rows, nor in columns, so inclusion and exclusion
        ends after pairs. Written as a product, (begins by the end − ends before the start) in rows
        × the same in columns, it takes four lookups.
        """
        row, column = np.asarray(top, np.int64), np.asarray(left, np.int64)
        row_end, column_end = np.asarray(bottom, np.int64) + 1, np.asarray(right, np.int64) + 1
        top_left, top_right, bottom_left, bottom_right = self._before
        begin_in_rows = top_left[row_end, column_end] - top_right[row_end, column]
        end_before_rows = bottom_left[row, column_end] - bottom_right[row, column]
        found: Numbers = begin_in_rows - end_before_rows
        return found

    def crossing_rows(
        self, row: npt.ArrayLike, left: npt.ArrayLike, right: npt.ArrayLike
    ) -> Numbers:
        """How many rectangles that meet these columns reach from row − 1 into row: spanQ.

        They neither end before the row nor begin at it, which is an empty window in rows.
        """
        first = np.asarray(row, np.int64)
        return self.meeting(first, left, first - 1, right)

    def crossing_columns(
        self, column: npt.ArrayLike, top: npt.ArrayLike, bottom: npt.ArrayLike
    ) -> Numbers:
        """How many rectangles that meet these rows reach from column − 1 into column."""
        first = np.asarray(column, np.int64)
        return self.meeting(top, first, bottom, first - 1)

    def to_json(self) -> dict[str, Any]:
        """For a commit: compressed, so empty cells take no room."""
        most = int(np.abs(self.corners).max(initial=0))
        width = next(w for w in _WIDTHS if most <= np.iinfo(w).max)
        # The fastest level: a commit is written in every batch.
        packed = zlib.compress(self.corners.astype(width).tobytes(), 1)
        return {"side": self.side, "type": width, "corners": base64.b64encode(packed).decode()}

    @staticmethod
    def from_json(record: dict[str, Any]) -> "CornerCounts":
        side = record["side"]
        packed = zlib.decompress(base64.b64decode(record["corners"]))
        corners = np.frombuffer(packed, record["type"]).astype(np.int64)
        return CornerCounts(side, corners.reshape(4, side, side))
