"""Auto's search on a map: tiles, and parts of tiles, leave the straggler; hot cells are shared."""

from collections.abc import Iterable, Iterator

import numpy as np

from skewless.load.areas import AreaSums
from skewless.load.imbalance import falls
from skewless.planning.snapshot import Loads
from skewless.planning.tiles.handovers import (
    Offer,
    Piece,
    Step,
    carved,
    handovers,
    hot_cell,
    shared,
    single_cells,
)
from skewless.planning.tiles.merging import merged, tidied
from skewless.routing.tiles import Tile, TileRoute

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
    board = _Board(work, route)
    lowest, best = board.loads.copy(), 0
    ceiling = level * (1 + tolerance)
    least = tolerance * level / 8
    stuck = np.zeros(route.count, np.bool_)
    # Every step relieves somebody by `least`, or cuts out a cell, or finds an instance stuck.
    for _ in range(64 + 16 * route.count):
        high = int(np.where(stuck, -np.inf, board.loads).argmax())
        if stuck[high] or board.loads[high] <= ceiling:
            break
        step = _step(work, board, high, level, ceiling, least, share)
        if step is None or (max_moves is not None and board.moved_after(step) > max_moves):
            stuck[high] = True
            continue
        board.apply(step)
        if falls(lowest, board.loads):
            lowest, best = board.loads.copy(), len(board.steps)
    board.undo(best)
    tiles = merged(piece.tile for piece in board.pieces())
    if len(tiles) > _AMPLE * route.count and max_moves is None:
        tiles = tidied(work, tiles, route.count, level, ceiling)
    return TileRoute(route.grid, route.count, tiles)


class _Board:
    """The pieces of all instances while the search goes on, their loads, and the steps so far."""

    def __init__(self, work: AreaSums, route: TileRoute) -> None:
        ends = np.array([tile.ends for tile in route.tiles], np.int64)
        found = work.within(*ends.T).tolist()
        self.loads = np.zeros(route.count)
        self.steps: list[Step] = []
        self._of: list[dict[Tile, Piece]] = [{} for _ in range(route.count)]
        self._moved = 0
        for tile, load in zip(route.tiles, found, strict=True):
            self._add(Piece(tile, load, tile.members))

    def of(self, instance: int) -> Iterable[Piece]:
        """The pieces that an instance works on."""
        return self._of[instance].values()

    def pieces(self) -> Iterator[Piece]:
        """All pieces, each once."""
        for instance, mine in enumerate(self._of):
            yield from (piece for piece in mine.values() if piece.tile.members[0] == instance)

    def moved_after(self, step: Step) -> int:
        """How many pieces would be elsewhere than before the search."""
        return self._moved - step.old.moved + sum(piece.moved for piece in step.new)

    def apply(self, step: Step) -> None:
        self._take(step.old)
        for piece in step.new:
            self._add(piece)
        self.steps.append(step)

    def undo(self, first: int) -> None:
        """Go back to how it was after the first steps."""
        while len(self.steps) > first:
            step = self.steps.pop()
            for piece in step.new:
                self._take(piece)
            self._add(step.old)

    def _add(self, piece: Piece) -> None:
        for member in piece.tile.members:
            self._of[member][piece.tile] = piece
            self.loads[member] += piece.share
        self._moved += piece.moved

    def _take(self, piece: Piece) -> None:
        for member in piece.tile.members:
            del self._of[member][piece.tile]
            self.loads[member] -= piece.share
        self._moved -= piece.moved


def _step(
    work: AreaSums,
    board: _Board,
    high: int,
    level: float,
    ceiling: float,
    least: float,
    share: bool,
) -> Step | None:
    """The best step that relieves an instance; None if there is none."""
    loads = board.loads
    low = int(loads.argmin())
    spare, room = float(loads[high] - level), float(level - loads[low])
    mine = [piece for piece in board.of(high) if piece.load > 0]

    def best(offers: Iterable[Offer]) -> Offer | None:
        most = max(ceiling, loads[high] - least) - loads[low]
        useful = (offer for offer in offers if offer.passed >= least and offer.taken <= most)
        return min(useful, key=lambda offer: offer.score, default=None)

    offer = best(handovers(work, mine, high, low, spare, room, level))
    if offer is not None and offer.passed >= _ENOUGH * min(spare, room):
        return offer.step()
    hot = hot_cell(work, mine, level) if share else None
    if hot is not None:
        piece, cell = hot
        if piece.tile.area > 1:
            # Nothing moves when a cell is cut out. It can be shared in the next step.
            return carved(work, piece, cell)
        step = shared(piece, loads, level, least)
        if step is not None:
            return step
    offer = offer or best(single_cells(work, mine, low, min(spare, room)))
    return None if offer is None else offer.step()
