"""Auto's search on a map: tiles, and parts of tiles, leave the straggler; hot cells are shared."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from skewless.load.areas import AreaSums
from skewless.planning.snapshot import Loads
from skewless.planning.tiles.merging import merged
from skewless.routing.tiles import Axis, Tile, TileRoute

# A cell is shared from this share of the level on, if nothing else relieves its instance, and
# folded back below FOLD. Smaller cells can always be moved instead.
SHARE = 0.25
FOLD = 0.15
# A step that brings less than this part of what is wanted counts only if there is no other.
_ENOUGH = 0.5
# What a new tile, and one as long as the map, costs beside a load that is off by so much of the
# level: few, compact tiles are worth a little imbalance.
_NEW_TILE = 0.02
_LONG_LINE = 0.02
# Beyond this many tiles per instance, tiles with next to no load join their neighbours.
_AMPLE = 4
_SMALL = 0.05


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
    """Pieces that take the place of one; `passed` is the load that leaves the straggler."""

    old: Piece
    new: tuple[Piece, ...]
    passed: float
    score: float  # the lower, the better


def reachable(work: AreaSums, loads: Loads, *, share: bool) -> float:
    """The load that the straggler can come down to: the mean, unless a cell has more than that and
    must not be shared."""
    mean = float(loads.mean())
    if share:
        return mean
    cells = np.diff(np.diff(work.before, axis=0), axis=1)
    return max(mean, float(cells.max(initial=0.0)))


def relieved(
    work: AreaSums,
    route: TileRoute,
    *,
    level: float,
    tolerance: float,
    share: bool,
    max_moves: int | None = None,
) -> TileRoute:
    """Tiles such that no instance is more than `tolerance` above the level, as far as can be.

    Every step takes load from the straggler and leaves the pair's higher load lower than it was,
    so the result is never worse, and asked again it changes next to nothing.
    """
    pieces = [Piece(t, float(work.within(*_ends(t))), t.members) for t in route.tiles]
    ceiling = level * (1 + tolerance)
    least = tolerance * level / 8
    stuck: set[int] = set()
    # Every step relieves somebody by `least`, or cuts out a cell, or finds an instance stuck.
    for _ in range(64 + 16 * route.count):
        loads = _loads(pieces, route.count)
        high = max((i for i in range(route.count) if i not in stuck), key=lambda i: loads[i])
        if loads[high] <= ceiling:
            break
        step = _step(work, pieces, loads, high, level, ceiling, least, share)
        changed = None if step is None else _applied(pieces, step)
        if changed is None or _too_many(changed, max_moves):
            stuck.add(high)
            if len(stuck) == route.count:
                break
        else:
            pieces = changed
    tiles = merged(piece.tile for piece in pieces)
    if len(tiles) > _AMPLE * route.count and max_moves is None:
        tiles = _tidied(work, tiles, route.count, level, ceiling)
    return TileRoute(route.grid, route.count, tiles)


def _too_many(pieces: Sequence[Piece], max_moves: int | None) -> bool:
    return max_moves is not None and sum(piece.moved for piece in pieces) > max_moves


def _applied(pieces: Sequence[Piece], step: Step) -> list[Piece]:
    return [*(piece for piece in pieces if piece is not step.old), *step.new]


def _loads(pieces: Sequence[Piece], instances: int) -> Loads:
    loads = np.zeros(instances)
    for piece in pieces:
        for member in piece.tile.members:
            loads[member] += piece.share
    return loads


def _step(
    work: AreaSums,
    pieces: Sequence[Piece],
    loads: Loads,
    high: int,
    level: float,
    ceiling: float,
    least: float,
    share: bool,
) -> Step | None:
    """The best step that relieves an instance; None if there is none."""
    low = int(loads.argmin())
    wanted = min(loads[high] - level, level - loads[low])
    mine = [piece for piece in pieces if high in piece.tile.members and piece.load > 0]
    best: Step | None = None
    for step in _handovers(work, mine, high, low, wanted, level):
        room = loads[low] + step.passed <= max(ceiling, loads[high] - least)
        if step.passed >= least and room and (best is None or step.score < best.score):
            best = step
    if best is not None and best.passed >= _ENOUGH * wanted:
        return best
    hot = _hot_cell(work, mine, level, share)
    if hot is None:
        return best
    piece, cell = hot
    if piece.tile.area > 1:
        return _carved(work, piece, cell)
    return _shared(piece, loads, high, least) or best


def _handovers(
    work: AreaSums, mine: Sequence[Piece], high: int, low: int, wanted: float, level: float
) -> Iterator[Step]:
    """The ways to pass load on: a tile, a place among members, or a part of a tile."""
    for piece in mine:
        tile = piece.tile
        if low not in tile.members:
            members = tuple(low if m == high else m for m in tile.members)
            off = abs(piece.share - wanted) / level
            given = replace(piece, tile=tile.given(members))
            yield Step(piece, (given,), piece.share, off)
        if tile.members == (high,):
            yield from _cuts(work, piece, low, wanted, level)


def _cuts(work: AreaSums, piece: Piece, low: int, wanted: float, level: float) -> Iterator[Step]:
    """The best line for either part in rows and in columns."""
    tile, side = piece.tile, len(work.before) - 1
    axes: tuple[tuple[Axis, int, int], ...] = (
        ("rows", tile.rows, tile.columns),
        ("columns", tile.columns, tile.rows),
    )
    for axis, count, length in axes:
        if count == 1:
            continue
        at = np.arange(1, count)
        if axis == "rows":
            first = work.within(tile.top, tile.left, tile.top + at, tile.right)
        else:
            first = work.within(tile.top, tile.left, tile.bottom, tile.left + at)
        price = _NEW_TILE + _LONG_LINE * length / side
        for moves_first, passed in ((True, first), (False, piece.load - first)):
            best = int(np.abs(passed - wanted).argmin())
            parts = tile.cut(axis, best + 1)
            sums = (float(first[best]), piece.load - float(first[best]))
            new = tuple(
                Piece(part.given((low,)) if is_first == moves_first else part, load, piece.origin)
                for part, load, is_first in zip(parts, sums, (True, False), strict=True)
            )
            off = abs(float(passed[best]) - wanted) / level
            yield Step(piece, new, float(passed[best]), off + price)


def _hot_cell(
    work: AreaSums, mine: Sequence[Piece], level: float, share: bool
) -> tuple[Piece, Tile] | None:
    """The heaviest cell of an instance, if it may be shared and is worth it."""
    if not share:
        return None
    best: tuple[float, Piece, Tile] | None = None
    for piece in mine:
        tile = piece.tile
        within = work.before[tile.top : tile.bottom + 1, tile.left : tile.right + 1]
        cells = np.diff(np.diff(within, axis=0), axis=1)
        row, column = (int(n) for n in np.unravel_index(int(cells.argmax()), cells.shape))
        load = float(cells[row, column])
        if load >= SHARE * level and (best is None or load / len(tile.members) > best[0]):
            top, left = tile.top + row, tile.left + column
            cell = Tile(top, left, top + 1, left + 1, tile.members)
            best = load / len(tile.members), piece, cell
    return None if best is None else best[1:]


def _carved(work: AreaSums, piece: Piece, cell: Tile) -> Step:
    """The cell by itself, and the rest of its tile in up to four pieces. Nothing moves yet."""
    tile = piece.tile
    around = (
        replace(tile, bottom=cell.top),
        replace(tile, top=cell.bottom),
        replace(tile, top=cell.top, bottom=cell.bottom, right=cell.left),
        replace(tile, top=cell.top, bottom=cell.bottom, left=cell.right),
    )
    parts = (cell, *(part for part in around if part.rows > 0 and part.columns > 0))
    new = tuple(Piece(p, float(work.within(*_ends(p))), piece.origin) for p in parts)
    return Step(piece, new, 0.0, 0.0)


def _shared(piece: Piece, loads: Loads, high: int, least: float) -> Step | None:
    """One more member for a cell; None if that relieves nobody."""
    members = piece.tile.members
    others = [i for i in range(len(loads)) if i not in members]
    if not others:
        return None
    newcomer = min(others, key=lambda i: loads[i])
    share = piece.load / (len(members) + 1)
    passed = piece.share - share
    if passed < least or loads[newcomer] + share > loads[high] - least:
        return None
    tile = piece.tile.given((*members, newcomer))
    return Step(piece, (replace(piece, tile=tile),), passed, 0.0)


def _tidied(
    work: AreaSums, tiles: tuple[Tile, ...], instances: int, level: float, ceiling: float
) -> tuple[Tile, ...]:
    """Fewer tiles: those with next to no load go to a neighbour's instance that can take them, if
    the two form a rectangle."""
    pieces = [Piece(t, float(work.within(*_ends(t))), t.members) for t in tiles]
    loads = _loads(pieces, instances)
    small = sorted((p for p in pieces if p.load <= _SMALL * level), key=lambda p: p.load)
    current = {(p.tile.top, p.tile.left): p.tile for p in pieces}
    for piece in small:
        tile = current[piece.tile.top, piece.tile.left]
        for other in sorted(current.values()):
            members = other.members
            if members == tile.members or len(members) > 1 or not _form_rectangle(tile, other):
                continue
            if loads[members[0]] + piece.load > ceiling:
                continue
            for member in tile.members:
                loads[member] -= piece.share
            loads[members[0]] += piece.load
            current[tile.top, tile.left] = tile.given(members)
            break
    return merged(current.values())


def _form_rectangle(one: Tile, other: Tile) -> bool:
    beside = (one.top, one.bottom) == (other.top, other.bottom)
    below = (one.left, one.right) == (other.left, other.right)
    return (beside and (one.right == other.left or other.right == one.left)) or (
        below and (one.bottom == other.top or other.bottom == one.top)
    )


def _ends(tile: Tile) -> tuple[int, int, int, int]:
    return tile.top, tile.left, tile.bottom, tile.right
