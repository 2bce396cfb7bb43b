"""SWARM's reductions: the subset, the cut by binary search, the next machine."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skewless.load.corners import CornerCounts
from skewless.planning.tiles.measure import SwarmCost, by_instance
from skewless.planning.tiles.reduction import best_cut, find_subset, reduction
from skewless.planning.tiles.snapshot import TileSnapshot
from skewless.routing.tiles import Tile, TileRoute
from tests.planning.tiles.cases import grid_of, snapshot, split_rows
from tests.routing.tilings import random_tiles


@pytest.mark.parametrize(
    ("name", "costs", "most", "chosen"),
    [
        ("the largest that fit", [9, 4, 3, 2], 6, [1, 3]),
        ("exactly the half", [5, 5], 5, [0]),
        ("nothing fits", [9, 8], 4, []),
        ("what costs nothing stays", [4, 0, 0], 4, [0]),
        ("all of the small ones", [9, 1, 1], 4, [1, 2]),
    ],
)
def test_the_subset_to_move(name: str, costs: list, most: float, chosen: list) -> None:
    assert find_subset(np.array(costs, float), most) == chosen, name


@given(st.lists(st.integers(1, 30), min_size=1, max_size=8), st.integers(1, 100))
def test_the_subset_fits_and_is_at_least_half_as_good_as_the_best(costs: list, most: int) -> None:
    ordered = np.array(sorted(costs, reverse=True), float)
    found = ordered[find_subset(ordered, most)].sum()
    sums = {0.0}
    for cost in ordered:
        sums |= {s + cost for s in sums}
    assert max(s for s in sums if s <= most) / 2 <= found <= most


def measured(seed: int, side: int = 8, instances: int = 4) -> TileSnapshot:
    rng = np.random.default_rng(seed)
    route = random_tiles(rng, grid_of(side), instances, 5, shared=0.0)
    ends = np.sort(rng.integers(0, side, (2, 2, 60)), axis=0)
    queries = (ends[0, 0], ends[0, 1], ends[1, 0], ends[1, 1])
    points = rng.pareto(1.0, side * side).round(2)
    corners = CornerCounts.of(side, *queries)
    arrived = CornerCounts.of(side, *(q[:20] for q in queries))
    return TileSnapshot(route, points, points, 2 * points, corners, arrived)


@settings(deadline=None)
@given(st.integers(0, 2**32), st.floats(0, 1))
def test_binary_search_finds_the_best_of_all_cuts(seed: int, light: float) -> None:
    taken = measured(seed)
    tile = max(taken.route.tiles, key=lambda t: t.area)
    whole = float(taken.counts((tile,)).cost[0])
    high, low = 1.5 * whole, light * whole
    differences = []
    for axis, count in (("rows", tile.rows), ("columns", tile.columns)):
        for at in range(1, count):
            first, second = taken.counts(tile.cut(axis, at)).cost.tolist()
            differences.append((high - whole + second) - (low + first))
            differences.append((high - whole + first) - (low + second))
    found = best_cut(taken, tile, high, low)
    assert found is not None
    best = min(abs(d) for d in differences)
    assert abs(found.difference) == pytest.approx(best, rel=1e-6, abs=1e-6 * whole)


@settings(deadline=None)
@given(st.integers(0, 2**32))
def test_reductions_end_and_each_lowers_the_costs_from_the_top_down(seed: int) -> None:
    taken = measured(seed)
    route = taken.route
    before = sorted(costs(taken, route), reverse=True)
    for _ in range(200):
        found = reduction(taken, route)
        if found is None:
            break
        route = TileRoute(route.grid, route.count, found.tiles)
        after = sorted(costs(taken, route), reverse=True)
        assert after < before
        before = after
    else:
        raise AssertionError(f"still reducing, seed {seed}")


def costs(taken: TileSnapshot, route: TileRoute) -> list[float]:
    return by_instance(route, SwarmCost().of_tiles(taken, route.tiles)).tolist()


def test_a_subset_is_moved_before_anything_is_cut() -> None:
    taken = snapshot(split_rows(4, (0,), (0,), (1,)), [[4] * 4, [4] * 4, [0] * 4, [0] * 4])
    found = reduction(taken, taken.route)
    assert found is not None
    assert len(found.tiles) == 3
    assert found.reason == "1 tile of instance 0 to instance 1"


def test_a_tile_is_cut_in_the_middle_of_its_cost() -> None:
    whole = TileRoute(grid_of(4), 2, (Tile(0, 0, 4, 4, (0,)),))
    found = reduction(snapshot(whole, np.ones((4, 4))), whole)
    assert found is not None
    assert [tile.area for tile in found.tiles] == [8, 8]
    assert {tile.members for tile in found.tiles} == {(0,), (1,)}


def test_a_cell_cannot_be_cut_so_the_next_machine_is_asked() -> None:
    tiles = (Tile(0, 0, 1, 1, (0,)), Tile(0, 1, 1, 2, (2,)), Tile(1, 0, 2, 2, (1,)))
    hot = snapshot(TileRoute(grid_of(2), 3, tiles), [[99, 0], [5, 5]])
    found = reduction(hot, hot.route)
    assert found is not None
    assert found.reason == "a part of a tile of instance 1 to instance 2"
    assert Tile(0, 0, 1, 1, (0,)) in found.tiles
