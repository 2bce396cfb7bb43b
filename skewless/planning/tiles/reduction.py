"""How SWARM relieves a machine: it moves some of its tiles to the cheapest, or a part of one."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from skewless.load.lines import Lines
from skewless.planning.snapshot import Loads
from skewless.planning.tiles.measure import SwarmCost, by_instance
from skewless.planning.tiles.snapshot import TileSnapshot
from skewless.routing.tiles import Axis, Tile, TileRoute

_NOTHING = 1e-6


@dataclass(frozen=True)
class Reduction:
    """The next tiles, and what was done in words."""

    tiles: tuple[Tile, ...]
    reason: str


@dataclass(frozen=True)
class Cut:
    """A line at which a tile is split, counted from its first; the moved part is the first one, or
    the second. `difference` is C_diff: what would be left between the two machines."""

    axis: Axis
    at: int
    moves_first: bool
    difference: float
    highest: float  # the larger cost of the two machines afterwards


def reduction(snapshot: TileSnapshot, route: TileRoute) -> Reduction | None:
    """Relieve the costliest machine that can be relieved, by way of the cheapest (Fig. 10)."""
    costs = SwarmCost().of_tiles(snapshot, route.tiles)
    loads = by_instance(route, costs)
    low = int(loads.argmin())
    # Costs differ by many orders of magnitude: what is lost in rounding relieves nobody.
    least = _NOTHING * float(loads.max())
    for high in np.argsort(-loads, kind="stable").tolist():
        if loads[high] <= loads[low]:
            return None
        owned = [n for n, tile in enumerate(route.tiles) if tile.members == (high,)]
        owned.sort(key=lambda n: -costs[n])
        gap = float(loads[high] - loads[low])
        subset = find_subset(costs[owned], gap / 2)
        if costs[owned][subset].sum() > least:
            moved = {owned[n] for n in subset}
            tiles = [t.given((low,)) if n in moved else t for n, t in enumerate(route.tiles)]
            what = f"{len(moved)} tile{'s' if len(moved) > 1 else ''}"
            return Reduction(tuple(tiles), f"{what} of instance {high} to instance {low}")
        cut = _cut_of(snapshot, [route.tiles[n] for n in owned], loads, high, low)
        if cut is not None and loads[high] - cut[0].highest > least:
            _, tile, parts = cut
            tiles = [t for t in route.tiles if t != tile]
            reason = f"a part of a tile of instance {high} to instance {low}"
            return Reduction(tuple(sorted((*tiles, *parts))), reason)
    return None


def find_subset(costs: Loads, most: float) -> list[int]:
    """Algorithm 3: tiles, the costliest first, as long as their total is at most `most`.

    Tiles that cost nothing stay: moving them relieves nobody.

    >>> find_subset(np.array([9.0, 4.0, 3.0, 2.0, 0.0]), most=6.0)
    [1, 3]
    """
    chosen: list[int] = []
    total = 0.0
    for place, cost in enumerate(costs.tolist()):
        if cost > 0 and total + cost <= most:
            total += cost
            chosen.append(place)
    return chosen


def _cut_of(
    snapshot: TileSnapshot, tiles: Sequence[Tile], loads: Loads, high: int, low: int
) -> tuple[Cut, Tile, tuple[Tile, Tile]] | None:
    """The best cut of the costliest tile larger than a cell, the tile and its two parts."""
    tile = next((tile for tile in tiles if tile.area > 1), None)
    if tile is None:
        return None
    cut = best_cut(snapshot, tile, float(loads[high]), float(loads[low]))
    if cut is None:
        return None
    first, second = tile.cut(cut.axis, cut.at)
    if cut.moves_first:
        return cut, tile, (first.given((low,)), second)
    return cut, tile, (first, second.given((low,)))


def best_cut(snapshot: TileSnapshot, tile: Tile, high: float, low: float) -> Cut | None:
    """The split with the smallest |C_diff|, by up to four binary searches (§4.3.2): over rows and
    over columns, with either part moved. `high` and `low` are the costs of the two machines."""
    best: Cut | None = None
    axes: tuple[Axis, Axis] = ("rows", "columns")
    for axis in axes:
        lines = snapshot.lines(tile, axis)
        for moves_first in (True, False):
            found = _search(lines, axis, high, low, moves_first)
            if found is not None and (best is None or abs(found.difference) < abs(best.difference)):
                best = found
            if best is not None and best.difference == 0:
                return best
    return best


def _search(lines: Lines, axis: Axis, high: float, low: float, moves_first: bool) -> Cut | None:
    """A binary search. With every line that joins the first part, that part costs more and the
    second less, so C_diff falls if the first moves, and rises if the second does."""
    best: Cut | None = None
    first, last = 1, lines.count - 1
    whole = float(lines.whole.cost[0])
    while first <= last:
        at = (first + last) // 2
        before, after = (float(part.cost) for part in lines.parts(at))
        moved, kept = (before, after) if moves_first else (after, before)
        left, right = high - whole + kept, low + moved
        cut = Cut(axis, at, moves_first, left - right, max(left, right))
        if best is None or abs(cut.difference) < abs(best.difference):
            best = cut
        if cut.difference == 0:
            break
        # Above zero too little has moved, below it too much.
        if (cut.difference > 0) == moves_first:
            first = at + 1
        else:
            last = at - 1
    return best
