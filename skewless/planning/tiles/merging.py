"""Tiles of the same instances that form a rectangle become one tile."""

from collections.abc import Iterable
from dataclasses import replace

from skewless.routing.tiles import Tile


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
