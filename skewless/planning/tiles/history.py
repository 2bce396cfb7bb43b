"""Tiles by what a stream looked like before: one per instance, of equal cost."""

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from skewless.errors import bad_argument
from skewless.load.corners import CornerCounts
from skewless.load.lines import Lines
from skewless.routing.cells import CellGrid, Reals
from skewless.routing.tiles import Axis, Tile

# The cost has three factors. A part for k instances that are alike has k³ times the cost of one.
_FACTORS = 3


@dataclass(frozen=True, eq=False)
class History:
    """Points (x, y) and, if known, rectangles (x_min, y_min, x_max, y_max) of an earlier time."""

    points: Reals
    rectangles: Reals

    def __post_init__(self) -> None:
        for name, values, columns in (
            ("points", self.points, 2),
            ("rectangles", self.rectangles, 4),
        ):
            if values.ndim != 2 or values.shape[1] != columns:
                raise bad_argument(f"history: {name}", values.shape, f"rows of {columns} numbers")
            if not np.isfinite(values).all():
                raise bad_argument(f"history: {name}", "values that are not finite", "numbers")
        if not len(self.points):
            raise bad_argument("history", "no points", "at least one point")
        if (self.rectangles[:, :2] > self.rectangles[:, 2:]).any():
            takes = "x_min ≤ x_max and y_min ≤ y_max"
            raise bad_argument("history: rectangles", "an inverted one", takes)

    @staticmethod
    def of(given: Any) -> "History":
        """From an array of points, or a pair of points and rectangles."""
        if isinstance(given, History):
            return given
        pair = isinstance(given, tuple) and len(given) == 2
        points, rectangles = given if pair else (given, np.zeros((0, 4)))
        return History(_array("points", points), _array("rectangles", rectangles))

    @cached_property
    def digest(self) -> str:
        """A short name for its content."""
        content = hashlib.blake2b(digest_size=8)
        for values in (self.points, self.rectangles):
            content.update(np.ascontiguousarray(values).tobytes())
        return content.hexdigest()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, History) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    def counts(self, grid: CellGrid) -> tuple[Reals, CornerCounts]:
        """Points per cell, and the rectangles.

        Without rectangles, subscriptions are taken to be where the points are, as small as a cell.
        """
        x, y = self.points.T
        cells = grid.cells(x, y)
        points = np.bincount(cells, minlength=grid.count).astype(np.float64)
        if not len(self.rectangles):
            row, column = cells // grid.side, cells % grid.side
            return points, CornerCounts.of(grid.side, row, column, row, column)
        left, top, right, bottom = self.rectangles.T
        corners = (grid.rows(top), grid.columns(left), grid.rows(bottom), grid.columns(right))
        return points, CornerCounts.of(grid.side, *corners)

    def tiles(self, grid: CellGrid, instances: int) -> tuple[Tile, ...]:
        """A tile for every instance: the map is cut in two, and each part again, such that in the
        end all cost about the same."""
        points, queries = self.counts(grid)
        done: list[Tile] = []
        waiting = [Tile(0, 0, grid.side, grid.side, tuple(range(instances)))]
        while waiting:
            tile = waiting.pop()
            if len(tile.members) == 1 or tile.area == 1:
                done.append(tile)
            else:
                waiting.extend(_halved(tile, points, queries))
        return tuple(sorted(done))


def _array(name: str, values: npt.ArrayLike) -> Reals:
    try:
        array = np.array(values, np.float64)
    except (TypeError, ValueError) as failure:
        takes = "an array of points (x, y), or a pair of points and rectangles"
        raise bad_argument(f"history: {name}", type(values).__name__, takes) from failure
    array.flags.writeable = False
    return array


def _halved(tile: Tile, points: Reals, queries: CornerCounts) -> tuple[Tile, Tile]:
    """Two parts, each for half of the instances, at the line where an instance of either would cost
    the same. Of two lines that do equally well, the shorter is taken."""
    half = len(tile.members) // 2
    shares = (half, len(tile.members) - half)
    best: tuple[float, int, Axis, int] | None = None
    axes: tuple[tuple[Axis, int, int], ...] = (
        ("rows", tile.rows, tile.columns),
        ("columns", tile.columns, tile.rows),
    )
    for axis, count, length in axes:
        if count == 1:
            continue
        # In history everything has arrived once, so R = N + Q.
        lines = Lines.of(tile, axis, points, points, queries, queries)
        first, second = (part.cost for part in lines.parts(np.arange(1, count)))
        each = [cost / share**_FACTORS for cost, share in zip((first, second), shares, strict=True)]
        # Equal costs come first; where all costs are nothing, equal areas.
        total = each[0] + each[1]
        uneven = np.abs(each[0] - each[1]) / np.where(total > 0, total, 1.0)
        off = np.abs(np.arange(1, count) / count - shares[0] / sum(shares))
        at = int(np.lexsort((off, uneven))[0])
        found = (float(uneven[at]), length, axis, at + 1)
        best = found if best is None else min(best, found)
    assert best is not None, "a tile of several cells has a line to cut at"
    upper, lower = tile.cut(best[2], best[3])
    return upper.given(tile.members[:half]), lower.given(tile.members[half:])
