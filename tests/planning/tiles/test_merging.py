"""Merging changes no cell's members, and leaves no two tiles that form a rectangle."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from skewless.load.areas import AreaSums
from skewless.planning.tiles.measure import by_instance
from skewless.planning.tiles.merging import merged, tidied
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


@given(tile_routes(), st.integers(0, 2**32))
def test_tidying_makes_fewer_tiles_and_no_straggler(route: TileRoute, seed: int) -> None:
    rng = np.random.default_rng(seed)
    load = rng.pareto(0.5, route.partitions) * (rng.random(route.partitions) < 0.3)
    work = AreaSums.of(route.grid.side, load)

    def loads(of: TileRoute) -> np.ndarray:
        return by_instance(of, np.array([work.within(*tile.ends) for tile in of.tiles]))

    before = loads(route)
    level, ceiling = float(before.mean()), 1.05 * float(before.mean())
    tiles = tidied(work, route.tiles, route.count, level, ceiling)
    after = TileRoute(route.grid, route.count, tiles)
    assert len(tiles) <= len(route.tiles)
    assert (loads(after) <= np.maximum(before, ceiling) * (1 + 1e-9)).all()


def test_an_empty_tile_joins_its_neighbour() -> None:
    tiles = (Tile(0, 0, 2, 1, (0,)), Tile(0, 1, 1, 2, (1,)), Tile(1, 1, 2, 2, (0,)))
    work = AreaSums.of(2, np.array([4.0, 4.0, 0.0, 0.0]))
    assert tidied(work, tiles, 2, level=4.0, ceiling=4.2) == (
        Tile(0, 0, 2, 1, (0,)),
        Tile(0, 1, 2, 2, (1,)),
    )
