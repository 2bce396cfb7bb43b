"""Tiles: rectangles of cells that cover a map, each with the instances that work on it."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt

from skewless.errors import SkewlessError, bad_argument
from skewless.routing.cells import CellGrid, Numbers
from skewless.routing.partitions import PartitionTable, partition_of
from skewless.routing.route import Hashes, Instances, Route, Side, Visits, at_home, scaled

Axis = Literal["rows", "columns"]


@dataclass(frozen=True, order=True)
class Tile:
    """The cells with `top ≤ row < bottom` and `left ≤ column < right`, and who works on them.

    The first member owns the tile. Where there are several, each point goes to one of them, and a
    subscription to all.
    """

    top: int
    left: int
    bottom: int
    right: int
    members: tuple[int, ...]

    @property
    def rows(self) -> int:
        return self.bottom - self.top

    @property
    def columns(self) -> int:
        return self.right - self.left

    @property
    def ends(self) -> tuple[int, int, int, int]:
        """top, left, bottom, right."""
        return self.top, self.left, self.bottom, self.right

    @property
    def area(self) -> int:
        """The number of its cells."""
        return self.rows * self.columns

    def given(self, members: Iterable[int]) -> "Tile":
        """The same cells, worked on by others."""
        return replace(self, members=tuple(members))

    def split(self, *, row: int | None = None, column: int | None = None) -> tuple["Tile", "Tile"]:
        """Two tiles, before and from a row or a column on.

        >>> Tile(0, 0, 4, 4, (1,)).split(row=1)[1]
        Tile(top=1, left=0, bottom=4, right=4, members=(1,))
        """
        if row is not None:
            return replace(self, bottom=row), replace(self, top=row)
        assert column is not None, "a tile is split at a row or at a column"
        return replace(self, right=column), replace(self, left=column)

    def cut(self, axis: Axis, at: int) -> tuple["Tile", "Tile"]:
        """The first `at` rows, or columns, of the tile, and the others.

        >>> Tile(2, 0, 4, 4, (1,)).cut("rows", 1)[1]
        Tile(top=3, left=0, bottom=4, right=4, members=(1,))
        """
        if axis == "rows":
            return self.split(row=self.top + at)
        return self.split(column=self.left + at)

    def to_json(self) -> list[Any]:
        return [self.top, self.left, self.bottom, self.right, list(self.members)]

    @staticmethod
    def from_json(record: list[Any]) -> "Tile":
        top, left, bottom, right, members = record
        return Tile(top, left, bottom, right, tuple(members))


@dataclass(frozen=True)
class Bands:
    """A map of tiles in three short lists: edges are few, so columns and rows fall into few bands.

    A column of cells is in a band of columns, a row in a band of rows, and two bands name a tile:
    `tiles[row_band · width + column_band]`.
    """

    columns: tuple[int, ...]  # the band of every column
    rows: tuple[int, ...]
    tiles: tuple[int, ...]
    width: int  # how many bands of columns there are


@dataclass(frozen=True)
class TileRoute(Route):
    """A point goes to its tile's instance, or to one of them. Contract: each cell has one tile.

    The hash of a row names its cell (`CellGrid.hashes`).
    """

    kind: ClassVar[str] = "tiles"

    grid: CellGrid
    count: int  # of instances
    tiles: tuple[Tile, ...]

    def __post_init__(self) -> None:
        if self.count < 1:
            raise bad_argument("instances", self.count, "a whole number of at least 1")
        side = self.grid.side
        covered = np.zeros((side, side), np.int64)
        for tile in self.tiles:
            inside = 0 <= tile.top < tile.bottom <= side and 0 <= tile.left < tile.right <= side
            if not inside:
                raise bad_argument("tiles", tile, f"rectangles within {side} × {side} cells")
            members = tile.members
            if not members or len(set(members)) < len(members):
                raise bad_argument("tiles", tile, "members, each of them once")
            if not 0 <= min(members) <= max(members) < self.count:
                raise bad_argument("tiles", tile, f"members from 0 to {self.count - 1}")
            covered[tile.top : tile.bottom, tile.left : tile.right] += 1
        if (covered != 1).any():
            row, column = (int(n) for n in np.argwhere(covered != 1)[0])
            times = int(covered[row, column])
            raise SkewlessError(
                f"tiles: cover the cell in row {row}, column {column} {times} times; take each once"
            )

    @cached_property
    def table(self) -> PartitionTable:  # type: ignore[override]
        """The owner of every cell."""
        owners = np.array([tile.members[0] for tile in self.tiles])
        return PartitionTable(self.count, tuple(owners[self.tile_of_cell].tolist()))

    @cached_property
    def tile_of_cell(self) -> Numbers:
        """The number of the tile of every cell."""
        side = self.grid.side
        numbers = np.zeros((side, side), np.int64)
        for number, tile in enumerate(self.tiles):
            numbers[tile.top : tile.bottom, tile.left : tile.right] = number
        flat: Numbers = numbers.ravel()
        flat.flags.writeable = False
        return flat

    @cached_property
    def bands(self) -> Bands:
        """The same map by its bands."""
        side = self.grid.side
        lefts = sorted({tile.left for tile in self.tiles})
        tops = sorted({tile.top for tile in self.tiles})
        places = np.arange(side)
        columns = np.searchsorted(lefts, places, side="right") - 1
        rows = np.searchsorted(tops, places, side="right") - 1
        tiles = self.tile_of_cell.reshape(side, side)[np.ix_(tops, lefts)].ravel()
        return Bands(
            tuple(columns.tolist()), tuple(rows.tolist()), tuple(tiles.tolist()), len(lefts)
        )

    @property
    def instances(self) -> int:
        return self.count

    @property
    def partitions(self) -> int:
        return self.grid.count

    @property
    def spreads(self) -> bool:
        return any(len(tile.members) > 1 for tile in self.tiles)

    @property
    def replicates(self) -> bool:
        return False

    @property
    def replicas_meet(self) -> bool:
        return False

    def homes(self, side: Side, hashes: Hashes, spread: Hashes) -> Instances:
        """Where points go."""
        tiles = self.tile_of_cell[partition_of(hashes, self.partitions)]
        sizes, first, members = self._members
        home: Instances = members[first[tiles] + scaled(spread, sizes[tiles])]
        return home

    def visits(self, side: Side, hashes: Hashes, spread: Hashes) -> Visits:
        return at_home(self.homes(side, hashes, spread))

    def reached(self, top: Numbers, left: Numbers, bottom: Numbers, right: Numbers) -> Visits:
        """The instances that work on any cell of these rectangles, whose ends are inclusive.

        The home is the owner of the first cell.
        """
        side = self.grid.side
        names = self.tile_of_cell.reshape(side, side)
        rows, tiles = [], []
        for number, tile in enumerate(self.tiles):
            meets = (top < tile.bottom) & (bottom >= tile.top)
            meets &= (left < tile.right) & (right >= tile.left)
            found = np.flatnonzero(meets)
            rows.append(found)
            tiles.append(np.full(len(found), number))
        row, tile_number = np.concatenate(rows), np.concatenate(tiles)
        sizes, first, members = self._members
        repeated = np.repeat(np.arange(len(row)), sizes[tile_number])
        place = np.arange(len(repeated)) - np.repeat(
            np.cumsum(sizes[tile_number]) - sizes[tile_number], sizes[tile_number]
        )
        instance = members[first[tile_number[repeated]] + place]
        visited = np.unique(row[repeated] * self.count + instance)
        row, instance = visited // self.count, visited % self.count
        home = members[first[names[top, left]]]
        return Visits(row, instance, instance == home[row])

    @cached_property
    def _members(self) -> tuple[Numbers, Numbers, Numbers]:
        """How many members every tile has, where they begin among all, and all of them."""
        sizes = np.array([len(tile.members) for tile in self.tiles], np.int64)
        members = np.array([m for tile in self.tiles for m in tile.members], np.int64)
        return sizes, np.cumsum(sizes) - sizes, members

    def reads(self, instance: int) -> frozenset[int]:
        worked_on = np.array([instance in tile.members for tile in self.tiles])
        return frozenset(np.flatnonzero(worked_on[self.tile_of_cell]).tolist())

    def mask(self, tile: Tile) -> npt.NDArray[np.bool_]:
        """The cells of a tile, as flags."""
        flags = np.zeros((self.grid.side, self.grid.side), np.bool_)
        flags[tile.top : tile.bottom, tile.left : tile.right] = True
        return flags.ravel()

    def resized(self, instances: int) -> "TileRoute":
        """Tiles of instances that have gone pass to those with the fewest cells; new instances take
        halves of the largest tiles."""
        cells = np.zeros(instances)
        kept: list[Tile] = []
        orphans: list[Tile] = []
        for tile in self.tiles:
            members = tuple(m for m in tile.members if m < instances)
            (kept if members else orphans).append(tile.given(members))
            if members:
                cells[members[0]] += tile.area
        for tile in sorted(orphans, key=lambda t: -t.area):
            target = int(cells.argmin())
            kept.append(tile.given((target,)))
            cells[target] += tile.area
        for newcomer in range(self.count, instances):
            largest = max(kept, key=lambda t: t.area)
            if largest.area == 1:
                break  # it gets work when the planner shares a cell
            kept.remove(largest)
            first, second = halves(largest)
            kept += [first, second.given((newcomer,))]
        return TileRoute(self.grid, instances, tuple(sorted(kept)))

    def _fields(self) -> dict[str, Any]:
        return {
            "grid": self.grid.to_json(),
            "instances": self.count,
            "tiles": [tile.to_json() for tile in self.tiles],
        }

    @classmethod
    def from_json(cls, record: dict[str, Any]) -> Self:
        tiles = tuple(Tile.from_json(tile) for tile in record["tiles"])
        return cls(CellGrid.from_json(record["grid"]), record["instances"], tiles)


def halves(tile: Tile) -> tuple[Tile, Tile]:
    """A tile of several cells cut across its longer side."""
    if tile.rows >= tile.columns:
        return tile.split(row=(tile.top + tile.bottom) // 2)
    return tile.split(column=(tile.left + tile.right) // 2)


def even_tiles(grid: CellGrid, instances: int) -> TileRoute:
    """One tile for every instance, by halving the largest (§4.1.1 of SWARM).

    With more instances than cells, the last ones share cells with others.

    >>> even_tiles(CellGrid(4, (0.0, 0.0, 1.0, 1.0)), 3).tiles[0]
    Tile(top=0, left=0, bottom=2, right=2, members=(0,))
    """
    tiles = [Tile(0, 0, grid.side, grid.side, (0,))]
    while len(tiles) < min(instances, grid.count):
        # The first of the largest, so that every process makes the same tiles.
        largest = max(tiles, key=lambda tile: tile.area)
        place = tiles.index(largest)
        tiles[place : place + 1] = halves(largest)
    shared = [tile.given(range(n, instances, len(tiles))) for n, tile in enumerate(tiles)]
    return TileRoute(grid, instances, tuple(shared))
