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
    none = np.zeros((3, 0), np.int64)
    found = np.zeros((3, _walk(hashes, ends, parts.side, parts.shift, owned, none)), np.int64)
    _walk(hashes, ends, parts.side, parts.shift, owned, found)
    return Stretches(found[0], found[1], found[2])


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
def _walk(hashes, ends, side, shift, owned, found):  # type: ignore[no-untyped-def]
    """Writes the stretches into `found` as far as there is room; how many there are."""
    left, top, right, bottom = ends
    count = 0
    part_shift = np.uint64(shift - 8)
    for rectangle in range(len(left)):
        for row in range(top[rectangle] >> 4, (bottom[rectangle] >> 4) + 1):
            low = max(top[rectangle] - row * 16, 0)
            high = min(bottom[rectangle] - row * 16, 15)
            for column in range(left[rectangle] >> 4, (right[rectangle] >> 4) + 1):
                cell = row * side + column
                if not owned[cell]:
                    continue
                base = np.uint64(cell) << np.uint64(shift % 64)
                last = base | (np.uint64(255) << part_shift)
                begin = _first_not_below(hashes, base, 0, len(hashes))
                end = _first_not_below(hashes, last + np.uint64(1), begin, len(hashes))
                if begin == end:
                    continue
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
