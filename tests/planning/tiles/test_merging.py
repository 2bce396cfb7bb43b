"""Merging changes no cell's members, and leaves no two tiles that form a rectangle."""

from hypothesis import given

from skewless.planning.tiles.merging import merged
from skewless.routing.tiles import Tile, TileRoute
from tests.routing.tilings import tile_routes


def members(route: TileRoute) -> list[tuple[int, ...]]:
    return [route.tiles[number].members for number in route.tile_of_cell]


@given(tile_routes(most=3))
def test_merged_tiles_say_the_same(route: TileRoute) -> None:
    tiles = merged(route.tiles)
    together = TileRoute(route.grid, route.count, tiles)
    assert members(together) == members(route)
    assert merged(tiles) == tiles
    for one in tiles:
        for other in tiles:
            beside = one.right == other.left and (one.top, one.bottom) == (other.top, other.bottom)
            below = one.bottom == other.top and (one.left, one.right) == (other.left, other.right)
            assert not ((beside or below) and one.members == other.members)


def test_a_cut_tile_is_whole_again() -> None:
    tile = Tile(0, 0, 8, 8, (0,))
    left, right = tile.cut("columns", 3)
    assert merged([*left.cut("rows", 2), *right.cut("rows", 2)]) == (tile,)
    assert len(merged([left, right.given((1,))])) == 2
