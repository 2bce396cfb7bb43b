"""An index of rectangles that finds those around a point, in time that grows with their number.

A side of the bounds has 2²⁶ places. A rectangle is filed under the cell of its lower corner, in a
grid whose cells are as wide as the rectangle or up to twice as wide, and in the same way as high:
then a point inside it lies in that cell, or in the next one to the right or above. So for every
size of cells that occurs, two stretches of the sorted keys have all the rectangles around a point.
On average, a constant share of these candidates are matches.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

from skewless.kernels.ordering import HashArray, IndexArray

Reals = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
_BITS = 26
_PLACES = 1 << _BITS
# A key: the size of its cell (5 bits for the width, 5 for the height), then its row and column.
_WIDTH, _HEIGHT, _ROW = 59, 54, 27


@dataclass(frozen=True)
class Extent:
    """The bounds of a map, in which coordinates become places: whole numbers below 2²⁶."""

    x_min: float
    y_min: float
    x_max: float
    y_max: float

    def columns(self, x: Reals) -> IndexArray:
        return self._places(x, self.x_min, self.x_max)

    def rows(self, y: Reals) -> IndexArray:
        return self._places(y, self.y_min, self.y_max)

    def keys(self, boxes: "Boxes") -> HashArray:
        """The key under which every rectangle is filed."""
        left, right = self.columns(boxes.x_min), self.columns(boxes.x_max)
        low, high = self.rows(boxes.y_min), self.rows(boxes.y_max)
        width, height = _bit_length(right - left), _bit_length(high - low)
        key = (width << _WIDTH) | (height << _HEIGHT) | (low >> height << _ROW) | (left >> width)
        return key.view(np.uint64)

    def _places(self, values: Reals, least: float, most: float) -> IndexArray:
        # It rises with the value, whatever the rounding; outside the bounds the last place counts.
        places = np.floor((values - least) * (_PLACES / (most - least)))
        return np.clip(places, 0, _PLACES - 1).astype(np.int64)


@dataclass(frozen=True)
class Boxes:
    """Rectangles with their edges."""

    x_min: Reals
    y_min: Reals
    x_max: Reals
    y_max: Reals

    def __len__(self) -> int:
        return len(self.x_min)

    def among(self, chosen: Mask | IndexArray) -> "Boxes":
        """Some of them."""
        edges = (self.x_min, self.y_min, self.x_max, self.y_max)
        return Boxes(*(edge[chosen] for edge in edges))


@dataclass(frozen=True)
class Found:
    """Some of the pairs of a search, by their numbers."""

    points: IndexArray
    boxes: IndexArray


@dataclass(frozen=True)
class Needles:
    """Points that rectangles are looked for around; one search after the other may be for them."""

    extent: Extent
    x: Reals
    y: Reals
    _orders: dict[tuple[int, int], IndexArray] = field(default_factory=dict, repr=False)

    def __len__(self) -> int:
        return len(self.x)

    @cached_property
    def columns(self) -> IndexArray:
        return self.extent.columns(self.x)

    @cached_property
    def rows(self) -> IndexArray:
        return self.extent.rows(self.y)

    def ordered(self, width: int, height: int) -> IndexArray:
        """The points as rectangles of a size are filed: one is found near the one before."""
        if (width, height) not in self._orders:
            places = (self.rows >> height << _ROW) | (self.columns >> width)
            self._orders[width, height] = np.argsort(places)
        return self._orders[width, height]


@dataclass(frozen=True)
class RectangleIndex:
    """Rectangles in the order of their keys."""

    extent: Extent
    keys: HashArray
    boxes: Boxes

    @cached_property
    def groups(self) -> IndexArray:
        """For every size of cells that occurs: the bits of its width and height, and its range."""
        sizes = np.arange(1 << 10, dtype=np.uint64)
        bounds = np.searchsorted(self.keys, sizes << np.uint64(_HEIGHT))
        bounds = np.append(bounds, len(self.keys))
        occur = np.flatnonzero(np.diff(bounds))
        columns = (occur >> 5, occur & 31, bounds[occur], bounds[occur + 1])
        return np.ascontiguousarray(np.column_stack(columns).astype(np.int64))

    def around(self, needles: Needles, alive: Mask | None = None) -> "Search":
        """A search for the rectangles around each of these points; `alive` leaves out the others.

        A point on an edge is inside.
        """
        return Search(self, needles, alive)


class Search:
    """The pairs of a search, dealt out in portions so that they never exist all at once."""

    def __init__(self, index: RectangleIndex, needles: Needles, alive: Mask | None) -> None:
        self._index = index
        self._needles = needles
        self._alive = frozen(np.zeros(0, np.bool_) if alive is None else alive)
        self.compared = np.zeros(len(needles), np.int64)  # rectangles looked at, for every point

    def portions(self, at_most: int) -> Iterator[Found]:
        """Pairs of numbers, at most so many at a time; those of a point come one after another."""
        index, needles, boxes = self._index, self._needles, self._index.boxes
        if not len(index.groups) or not len(needles):
            return
        # As most of the rectangles are filed.
        width, height, begin, end = index.groups.T
        most = int((end - begin).argmax())
        order = needles.ordered(int(width[most]), int(height[most]))
        edges = tuple(frozen(e) for e in (boxes.x_min, boxes.y_min, boxes.x_max, boxes.y_max))
        position, cursors = np.zeros(4, np.int64), index.groups[:, [2, 2]].copy()
        points, found = np.empty(at_most, np.int64), np.empty(at_most, np.int64)
        while position[0] < len(order):
            filled = _search(
                order,
                frozen(needles.x),
                frozen(needles.y),
                needles.columns,
                needles.rows,
                index.groups,
                cursors,
                frozen(index.keys),
                edges,
                self._alive,
                position,
                points,
                found,
                self.compared,
            )
            if filled:
                yield Found(points[:filled].copy(), found[:filled].copy())


@njit(cache=True, nogil=True)
def _first_not_below(keys, key, begin, end):  # type: ignore[no-untyped-def]
    while begin < end:
        middle = (begin + end) >> 1
        if keys[middle] < key:
            begin = middle + 1
        else:
            end = middle
    return begin


@njit(cache=True, nogil=True)
def _first_from(keys, key, begin, end):  # type: ignore[no-untyped-def]
    """The first key that is not below, where that is likely to be near the beginning."""
    step = 1
    while begin + step < end and keys[begin + step] < key:
        begin += step
        step *= 2
    return _first_not_below(keys, key, begin, min(begin + step + 1, end))


@njit(cache=True, nogil=True)
def _search(  # type: ignore[no-untyped-def]
    order,
    x,
    y,
    columns,
    rows,
    groups,
    cursors,
    keys,
    edges,
    alive,
    position,
    points,
    found,
    compared,
):
    """Goes on at `position` (place in the order, group, stretch, key + 1) until there is no room.

    `cursors` has where the last search in a group and stretch has ended.
    """
    x_min, y_min, x_max, y_max = edges
    some_ended = len(alive) > 0
    filled = 0
    for place in range(position[0], len(order)):
        point = order[place]
        here_x, here_y = x[point], y[point]
        for group in range(position[1], len(groups)):
            width, height = groups[group, 0], groups[group, 1]
            begin, end = groups[group, 2], groups[group, 3]
            size = np.uint64((width << 59) | (height << 54))
            column = columns[point] >> width
            for below in range(position[2], 2):
                row = (rows[point] >> height) - below
                if row < 0:
                    continue
                line = size | (np.uint64(row) << np.uint64(27))
                first, last = line | np.uint64(max(column - 1, 0)), line | np.uint64(column)
                low = cursors[group, below]
                if low < end and keys[low] < first:
                    low = _first_from(keys, first, low, end)
                else:
                    low = _first_not_below(keys, first, begin, low)
                cursors[group, below] = low
                high = _first_from(keys, last + np.uint64(1), low, end)
                if position[3] == 0:
                    compared[point] += high - low
                start = max(low, position[3] - 1)
                if high - start <= len(points) - filled:
                    # There is room for all: a pair is written anyway, and stays if it is one. A
                    # branch could not be predicted, and cost more than what it saves.
                    for at in range(start, high):
                        inside = (x_min[at] <= here_x) & (here_x <= x_max[at])
                        inside &= (y_min[at] <= here_y) & (here_y <= y_max[at])
                        if some_ended:
                            inside &= alive[at]
                        points[filled] = point
                        found[filled] = at
                        filled += inside
                    position[3] = 0
                    continue
                for at in range(start, high):
                    inside = x_min[at] <= here_x and here_x <= x_max[at]
                    inside = inside and y_min[at] <= here_y and here_y <= y_max[at]
                    if not inside or (some_ended and not alive[at]):
                        continue
                    if filled == len(points):
                        position[0], position[1] = place, group
                        position[2], position[3] = below, at + 1
                        return filled
                    points[filled] = point
                    found[filled] = at
                    filled += 1
                position[3] = 0
            position[2] = 0
        position[1] = 0
    position[0] = len(order)
    return filled


def frozen(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """A read-only view, as mapped arrays are: so that numba compiles a function once, not twice."""
    view = array.view()
    view.flags.writeable = False
    return view


def _bit_length(numbers: IndexArray) -> IndexArray:
    """The number of bits of whole numbers below 2⁵³."""
    return np.frexp(numbers.astype(np.float64))[1].astype(np.int64)
