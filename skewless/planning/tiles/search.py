"""Auto's search on a map: tiles, and parts of tiles, leave the straggler; hot cells are shared."""

from collections.abc import Iterable, Sequence

import numpy as np

from skewless.load.areas import AreaSums
from skewless.load.imbalance import falls
from skewless.planning.snapshot import Loads
from skewless.planning.tiles.handovers import (
    Piece,
    Step,
    carved,
    handovers,
    hot_cell,
    shared,
    single_cells,
)
from skewless.planning.tiles.merging import merged, tidied
from skewless.routing.tiles import TileRoute

# A step that brings less than this part of what is wanted counts only if there is no other.
_ENOUGH = 0.5
# Beyond this many tiles per instance, tiles with next to no load join their neighbours.
_AMPLE = 4


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

    Every step takes load from the straggler. A cell that is shared may be too much for its new
    member, which then passes on something else; so the best tiles on the way are the result.
    """
    pieces = best = [Piece(t, float(work.within(*t.ends)), t.members) for t in route.tiles]
    lowest = _loads(pieces, route.count)
    ceiling = level * (1 + tolerance)
    least = tolerance * level / 8
    stuck: set[int] = set()
    # Every step relieves somebody by `least`, or cuts out a cell, or finds an instance stuck.
    for _ in range(64 + 16 * route.count):
        loads = _loads(pieces, route.count)
        if falls(lowest, loads):
            best, lowest = pieces, loads
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
    tiles = merged(piece.tile for piece in best)
    if len(tiles) > _AMPLE * route.count and max_moves is None:
        tiles = tidied(work, tiles, route.count, level, ceiling)
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
    spare, room = float(loads[high] - level), float(level - loads[low])
    mine = [piece for piece in pieces if high in piece.tile.members and piece.load > 0]

    def best(steps: Iterable[Step]) -> Step | None:
        useful = (
            step
            for step in steps
            if step.passed >= least and loads[low] + step.taken <= max(ceiling, loads[high] - least)
        )
        return min(useful, key=lambda step: step.score, default=None)

    simple = best(handovers(work, mine, high, low, spare, room, level))
    if simple is not None and simple.passed >= _ENOUGH * min(spare, room):
        return simple
    hot = hot_cell(work, mine, level) if share else None
    if hot is not None:
        piece, cell = hot
        # Nothing moves when a cell is cut out. It can be shared in the next step.
        step = carved(work, piece, cell) if piece.tile.area > 1 else shared(piece, loads, least)
        if step is not None:
            return step
    return simple or best(single_cells(work, mine, low, min(spare, room)))
