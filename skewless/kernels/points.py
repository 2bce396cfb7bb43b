"""Stored points in the order of a map: finds those that lie in rectangles.

A cell of the map is cut into 16 × 16 parts, and points are sorted by cell and part. The parts of a
rectangle are then few stretches of the order: whole cells are one, others one for each line.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from numba import njit

from skewless.kernels.ordering import HashArray, IndexArray
from skewless.kernels.rectangles import frozen

Reals = npt.NDArray[np.float64]
_PARTS = 16
_ROOM = 1024  # for stretches that are found at the first try


@dataclass(frozen=True)
class Parts:
    """The parts of the cells of a map with `side` × `side` cells; hashes begin with the cell."""

    side: int
    bounds: tuple[float, float, float, float]
    shift: int  # of the cell in the hash

    def columns(self, x: Reals) -> IndexArray:
        return self._places(x, self.bounds[0], self.bounds[2])

    def rows(self, y: Reals) -> IndexArray:
        return self._places(y, self.bounds[1], self.bounds[3])

    def hashes(self, x: Reals, y: Reals) -> HashArray:
        """The hash of every point: its cell, then the part of it."""
        column, row = self.columns(x), self.rows(y)
        cell = (row // _PARTS) * self.side + column // _PARTS
        part = (row % _PARTS) * _PARTS + column % _PARTS
        return _hash(cell, part, self.shift)

    def _places(self, values: Reals, least: float, most: float) -> IndexArray:
        # A power of two more than the cells: the same rounding, so the same cells.
        places = np.floor((values - least) * (self.side / (most - least)) * _PARTS)
        return np.clip(places, 0, self.side * _PARTS - 1).astype(np.int64)


def _hash(cell: IndexArray, part: IndexArray, shift: int) -> HashArray:
    of_cell = cell.astype(np.uint64) << np.uint64(shift % 64)  # a single cell is number 0
    return of_cell | (part.astype(np.uint64) << np.uint64(shift - 8))


@dataclass(frozen=True)
class Stretches:
    """Parts of the order that may lie in rectangles: the rectangle, where it begins, how long."""

    rectangle: IndexArray
    start: IndexArray
    count: IndexArray

    @property
    def total(self) -> int:
        return int(self.count.sum())


def stretches(
    hashes: HashArray,
    parts: Parts,
    edges: tuple[Reals, Reals, Reals, Reals],
    owned: npt.NDArray[np.bool_],
) -> Stretches:
    """The stretches of sorted hashes that may lie in rectangles (x_min, y_min, x_max, y_max).

    Only cells that are `owned` are looked at.
    """
    left, right = parts.columns(edges[0]), parts.columns(edges[2])
    top, bottom = parts.rows(edges[1]), parts.rows(edges[3])
    ends = (left, top, right, bottom)
    hashes, owned = frozen(hashes), frozen(owned)
    found = np.empty((3, _ROOM + 16 * len(left)), np.int64)
    count = _walk(hashes, ends, parts.side, parts.shift, owned, found)
    if count > found.shape[1]:  # seldom: rectangles that cut through many cells
        found = np.empty((3, count), np.int64)
        _walk(hashes, ends, parts.side, parts.shift, owned, found)
    return Stretches(found[0, :count], found[1, :count], found[2, :count])


@njit(cache=True, nogil=True)
def _first_not_below(hashes, key, begin, end):  # type: ignore[no-untyped-def]
    while begin < end:
        middle = (begin + end) >> 1
        if hashes[middle] < key:
            begin = middle + 1
        else:
            end = middle
    return begin


@njit(cache=True, nogil=True)
def _first_of(cell, shift):  # type: ignore[no-untyped-def]
    """The least hash of a cell; a single cell is number 0."""
    return np.uint64(cell) << np.uint64(shift % 64)


@njit(cache=True, nogil=True)
def _cell_of(key, shift):  # type: ignore[no-untyped-def]
    return np.int64(key >> np.uint64(shift % 64))


@njit(cache=True, nogil=True)
def _after(hashes, cell, shift, begin, end):  # type: ignore[no-untyped-def]
    """Where the points of a cell end."""
    last = _first_of(cell, shift) | (np.uint64(255) << np.uint64(shift - 8))
    return _first_not_below(hashes, last + np.uint64(1), begin, end)


@njit(cache=True, nogil=True)
def _walk(hashes, ends, side, shift, owned, found):  # type: ignore[no-untyped-def]
    """Writes the stretches into `found` as far as there is room; how many there are."""
    left, top, right, bottom = ends
    count = 0
    part_shift = np.uint64(shift - 8)
    for rectangle in range(len(left)):
        for row in range(top[rectangle] >> 4, (bottom[rectangle] >> 4) + 1):
            low = max(top[rectangle] - row * 16, 0)
            high = min(bottom[rectangle] - row * 16, 15)
            # The cells of a row are neighbours in the order: only those that have points are met.
            leftmost = row * side + (left[rectangle] >> 4)
            rightmost = row * side + (right[rectangle] >> 4)
            end = _first_not_below(hashes, _first_of(leftmost, shift), 0, len(hashes))
            row_end = _after(hashes, rightmost, shift, end, len(hashes))
            while end < row_end:
                begin = end
                cell = leftmost if leftmost == rightmost else _cell_of(hashes[begin], shift)
                end = _after(hashes, cell, shift, begin, row_end)
                if not owned[cell]:
                    continue
                column = cell - row * side
                base = _first_of(cell, shift)
                first = max(left[rectangle] - column * 16, 0)
                final = min(right[rectangle] - column * 16, 15)
                whole = first == 0 and final == 15
                lines = 1 if whole else high - low + 1
                for line in range(low, low + lines):
                    upto = high if whole else line
                    start = base | (np.uint64(line * 16 + first) << part_shift)
                    stop = base | (np.uint64(upto * 16 + final) << part_shift)
                    at = _first_not_below(hashes, start, begin, end)
                    after = _first_not_below(hashes, stop + np.uint64(1), at, end)
                    if after > at:
                        if count < found.shape[1]:
                            found[0, count] = rectangle
                            found[1, count] = at
                            found[2, count] = after - at
                        count += 1
    return count
