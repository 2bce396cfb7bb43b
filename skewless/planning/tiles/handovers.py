"""The ways in which an instance passes load on: a tile, a part of one, or a share of a hot cell."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from skewless.load.areas import AreaSums
from skewless.planning.snapshot import Loads
from skewless.routing.tiles import Axis, Tile

# A cell is shared from this share of the level on, if nothing else relieves its instance, and
# folded back below FOLD. Smaller cells can always be moved instead.
SHARE = 0.25
FOLD = 0.15
# What a new tile, and one as long as the map, costs beside a load that is off by so much of the
# level: few, compact tiles are worth a little imbalance.
_NEW_TILE = 0.02
_LONG_LINE = 0.02


@dataclass(frozen=True)
class Piece:
    """A tile in the making, its load, and who worked on its cells before."""

    tile: Tile
    load: float
    origin: tuple[int, ...]

    @property
    def share(self) -> float:
        """The load of each of its members."""
        return self.load / len(self.tile.members)

    @property
    def moved(self) -> bool:
        return self.tile.members != self.origin


@dataclass(frozen=True)
class Step:
    """Pieces that take the place of one."""

    old: Piece
    new: tuple[Piece, ...]


@dataclass(frozen=True)
class Offer:
    """A step that could be taken, and what it would do. Most are never taken, so the step is made
    when it is asked for."""

    passed: float  # the load that leaves the straggler
    taken: float  # the load that the lightest gets
    score: float  # the lower, the better
    step: Callable[[], Step]


def handovers(
    work: AreaSums,
    mine: Sequence[Piece],
    high: int,
    low: int,
    spare: float,
    room: float,
    level: float,
) -> Iterator[Offer]:
    """The ways to pass load on: a tile, a place among members, or a part of a tile."""
    for piece in mine:
        members, share = piece.tile.members, piece.share
        if low not in members:
            score = abs(share - min(spare, room)) / level
            yield Offer(share, share, score, partial(_handed_over, piece, high, low))
        if piece.tile.area > 1:
            yield from _cuts(work, piece, low, min(spare * len(members), room), level)


def _handed_over(piece: Piece, high: int, low: int) -> Step:
    members = tuple(low if m == high else m for m in piece.tile.members)
    return Step(piece, (replace(piece, tile=piece.tile.given(members)),))


def _cuts(work: AreaSums, piece: Piece, low: int, wanted: float, level: float) -> Iterator[Offer]:
    """The best line for either part in rows and in columns; that part goes to one instance."""
    tile, side = piece.tile, len(work.before) - 1
    count = len(tile.members)
    # An instance that has a share already takes the shares of the others.
    foreign = 1 - (low in tile.members) / count
    axes: tuple[tuple[Axis, int, int], ...] = (
        ("rows", tile.rows, tile.columns),
        ("columns", tile.columns, tile.rows),
    )
    for axis, lines, length in axes:
        if lines == 1:
            continue
        first = work.upto(*tile.ends, axis)
        price = _NEW_TILE + _LONG_LINE * length / side
        for moves_first, part in ((True, first), (False, piece.load - first)):
            best = int(np.abs(foreign * part - wanted).argmin())
            moved = float(part[best])
            taken = foreign * moved
            score = abs(taken - wanted) / level + price
            make = partial(_cut_off, piece, low, axis, best + 1, moves_first, moved)
            yield Offer(moved / count, taken, score, make)


def _cut_off(piece: Piece, low: int, axis: Axis, at: int, moves_first: bool, moved: float) -> Step:
    goes, stays = piece.tile.cut(axis, at)[:: 1 if moves_first else -1]
    return Step(
        piece,
        (
            Piece(goes.given((low,)), moved, piece.origin),
            Piece(stays, piece.load - moved, piece.origin),
        ),
    )


def hot_cell(work: AreaSums, mine: Sequence[Piece], level: float) -> tuple[Piece, Tile] | None:
    """The cell that gives an instance most to do, if sharing it is worth it."""
    best: tuple[float, Piece, Tile] | None = None
    for piece in mine:
        cells = _cells(work, piece.tile)
        place = int(cells.argmax())
        load, count = float(cells[place]), len(piece.tile.members)
        if load >= SHARE * level and (best is None or load / count > best[0]):
            best = load / count, piece, _cell(piece.tile, place)
    return None if best is None else best[1:]


def single_cells(work: AreaSums, mine: Sequence[Piece], low: int, wanted: float) -> Iterator[Offer]:
    """The cell of every tile whose load is nearest to what is wanted, cut out and given away."""
    for piece in mine:
        if len(piece.tile.members) == 1 and piece.tile.area > 1:
            cells = _cells(work, piece.tile)
            place = int(np.abs(cells - wanted).argmin())
            load = float(cells[place])
            make = partial(_cell_given, work, piece, place, low)
            yield Offer(load, load, abs(load - wanted), make)


def _cell_given(work: AreaSums, piece: Piece, place: int, low: int) -> Step:
    cell, *rest = carved(work, piece, _cell(piece.tile, place)).new
    return Step(piece, (replace(cell, tile=cell.tile.given((low,))), *rest))


def _cells(work: AreaSums, tile: Tile) -> Loads:
    """The load of every cell of a tile, row by row."""
    within = work.before[tile.top : tile.bottom + 1, tile.left : tile.right + 1]
    return np.diff(np.diff(within, axis=0), axis=1).ravel()


def _cell(tile: Tile, place: int) -> Tile:
    row, column = divmod(place, tile.columns)
    top, left = tile.top + row, tile.left + column
    return Tile(top, left, top + 1, left + 1, tile.members)


def carved(work: AreaSums, piece: Piece, cell: Tile) -> Step:
    """The cell by itself, and the rest of its tile in up to four pieces. Nothing moves yet."""
    tile = piece.tile
    around = (
        replace(tile, bottom=cell.top),
        replace(tile, top=cell.bottom),
        replace(tile, top=cell.top, bottom=cell.bottom, right=cell.left),
        replace(tile, top=cell.top, bottom=cell.bottom, left=cell.right),
    )
    parts = (cell, *(part for part in around if part.rows > 0 and part.columns > 0))
    new = tuple(Piece(p, float(work.within(*p.ends)), piece.origin) for p in parts)
    return Step(piece, new)


def shared(piece: Piece, loads: Loads, level: float, least: float) -> Step | None:
    """More members for a cell: at least one more, and as many as it takes for each to have no more
    than the level of it. None if that relieves nobody."""
    members = piece.tile.members
    others = loads.copy()
    others[list(members)] = np.inf
    wanted = max(len(members) + 1, math.ceil(piece.load / level))
    count = min(wanted, len(loads))
    if piece.share - piece.load / count < least:
        return None
    lightest = np.argsort(others, kind="stable")[: count - len(members)]
    return Step(piece, (replace(piece, tile=piece.tile.given((*members, *lightest.tolist()))),))
