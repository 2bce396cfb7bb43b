"""Fewer tiles: those of the same instances that form a rectangle become one."""

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from skewless.load.areas import AreaSums
from skewless.routing.tiles import Tile

# A tile with less than this share of the level has next to no load.
_SMALL = 0.05


def merged(tiles: Iterable[Tile]) -> tuple[Tile, ...]:
    """As few tiles as joining two at a time gives; no cell changes its members.

    >>> left, right = Tile(0, 0, 2, 1, (1,)), Tile(0, 1, 2, 3, (1,))
    >>> merged([left, right])
    (Tile(top=0, left=0, bottom=2, right=3, members=(1,)),)
    """
    found = {(tile.top, tile.left): tile for tile in tiles}
    joined = True
    while joined:
        joined = False
        for place in sorted(found):
            tile = found.get(place)
            while tile is not None and (larger := _joined(tile, found)) is not None:
                found[place] = tile = larger
                joined = True
    return tuple(sorted(found.values()))


def _joined(tile: Tile, found: dict[tuple[int, int], Tile]) -> Tile | None:
    """The tile with its right or its lower neighbour, which leaves `found`."""
    right = found.get((tile.top, tile.right))
    if right is not None and right.bottom == tile.bottom and _together(tile, right):
        del found[right.top, right.left]
        return replace(tile, right=right.right)
    lower = found.get((tile.bottom, tile.left))
    if lower is not None and lower.right == tile.right and _together(tile, lower):
        del found[lower.top, lower.left]
        return replace(tile, bottom=lower.bottom)
    return None


def _together(one: Tile, other: Tile) -> bool:
    # The first member owns the tile, so a different order is a different owner.
    return one.members == other.members


def tidied(
    work: AreaSums, tiles: tuple[Tile, ...], instances: int, level: float, ceiling: float
) -> tuple[Tile, ...]:
    """Tiles with next to no load join a neighbour, if the two form a rectangle and the neighbour's
    instance stays below the ceiling."""
    work_of = {tile: float(work.within(*tile.ends)) for tile in tiles}
    loads = np.zeros(instances)
    for tile, load in work_of.items():
        loads[list(tile.members)] += load / len(tile.members)
    current = {(tile.top, tile.left): tile for tile in tiles}
    for tile in sorted(tiles, key=lambda t: (work_of[t], t)):
        load = work_of[tile]
        if load > _SMALL * level:
            break
        for other in sorted(current.values()):
            alone = len(other.members) == 1 and other.members != tile.members
            if not alone or not _form_rectangle(tile, other):
                continue
            taker = other.members[0]
            if loads[taker] + load <= ceiling:
                loads[list(tile.members)] -= load / len(tile.members)
                loads[taker] += load
                current[tile.top, tile.left] = tile.given(other.members)
                break
    return merged(current.values())


def _form_rectangle(one: Tile, other: Tile) -> bool:
    beside = (one.top, one.bottom) == (other.top, other.bottom)
    below = (one.left, one.right) == (other.left, other.right)
    return (beside and (one.right == other.left or other.right == one.left)) or (
        below and (one.bottom == other.top or other.bottom == one.top)
    )
