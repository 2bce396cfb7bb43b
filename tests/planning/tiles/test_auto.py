"""Auto on a map: readable cases, sharing and folding, patience, caps, no ping-pong."""

import json
from dataclasses import replace

import numpy as np
import pytest

from skewless.errors import SkewlessError
from skewless.planning.auto import Auto
from skewless.planning.partitions.hotkeys import PATIENCE
from skewless.planning.tiles.auto import AutoTiles
from skewless.routing.tiles import Tile, TileRoute, even_tiles
from tests.planning.tiles.cases import grid_of, loads, planned, snapshot, split_rows

NONE = [0] * 4


@pytest.mark.parametrize(
    ("name", "members", "load", "after"),
    [
        ("a whole tile", [(0,), (0,), (1,)], [[4, 4, 0, 0], [8, 0, 0, 0], NONE, NONE], [8, 8]),
        ("a part of a tile", [(1,), (0,)], [NONE, [4] * 4, [4] * 4, NONE], [16, 16]),
        ("what is even stays", [(0,), (1,)], [[6] * 4, [2] * 4, [2] * 4, [2] * 4], [24, 24]),
        ("nothing to do", [(0,), (1,)], [NONE] * 4, [0, 0]),
        ("a hot cell is shared", [(1,), (0,)], [NONE, [0, 64, 0, 0], NONE, NONE], [32, 32]),
        ("two hot cells", [(1,), (0,)], [NONE, [0, 64, 0, 60], NONE, NONE], [60, 64]),
        ("and around it", [(1,), (0,)], [[8, 0, 0, 0], [0, 64, 0, 8], NONE, NONE], [40, 40]),
    ],
)
def test_balancing(name: str, members: list, load: list, after: list) -> None:
    taken = snapshot(split_rows(4, *members), load)
    plan, _ = planned(AutoTiles(2), taken, {})
    assert sorted(loads(taken, plan.route)) == pytest.approx(sorted(after)), name


def hot(load: float, instances: int = 8, side: int = 16) -> np.ndarray:
    """A map with one unit per instance, and a hot cell."""
    values = np.full((side, side), instances / side**2)
    values[5, 9] += load
    return values


def test_a_cell_hotter_than_an_instance_is_shared_by_as_many_as_it_takes() -> None:
    for load, least in ((2.0, 2), (8.0, 4), (40.0, 7)):
        taken = snapshot(even_tiles(grid_of(16), 8), hot(load))
        plan, _ = planned(AutoTiles(8), taken, {})
        (shared,) = [tile for tile in plan.route.tiles if len(tile.members) > 1]
        assert (shared.top, shared.left, shared.area) == (5, 9, 1)
        assert len(shared.members) >= least
        assert plan.imbalance_after < 0.06
        assert "hot cells shared: 1" in plan.reason


def test_no_cell_is_shared_if_told_so() -> None:
    taken = snapshot(even_tiles(grid_of(16), 8), hot(40.0))
    plan, memory = planned(AutoTiles(8, split=False), taken, {})
    assert all(len(tile.members) == 1 for tile in plan.route.tiles)
    again, _ = planned(AutoTiles(8, split=False), replace(taken, route=plan.route), memory)
    assert again.does_nothing
    shared, _ = planned(AutoTiles(8), taken, {})
    folded, _ = planned(AutoTiles(8, split=False), replace(taken, route=shared.route), {})
    assert all(len(tile.members) == 1 for tile in folded.route.tiles)


def test_a_shared_cell_is_folded_when_it_has_cooled_for_a_while() -> None:
    policy = AutoTiles(8)
    taken = snapshot(even_tiles(grid_of(16), 8), hot(8.0))
    plan, memory = planned(policy, taken, {})
    assert plan.told()["shared"]
    for load in (6.0, 1.0, 0.3):
        plan, memory = planned(policy, snapshot(plan.route, hot(load)), memory)
        assert plan.told()["shared"], load
    for _ in range(PATIENCE - 1):
        plan, memory = planned(policy, snapshot(plan.route, hot(0.0)), memory)
        assert plan.told()["shared"]
        memory = json.loads(json.dumps(memory))
    plan, memory = planned(policy, snapshot(plan.route, hot(0.0)), memory)
    assert not plan.told()["shared"]
    assert "folded back" in plan.reason


def test_a_small_excess_waits_a_round_and_must_be_the_same_straggler() -> None:
    policy = AutoTiles(2)
    one = snapshot(split_rows(4, (0,), (1,)), [[6.4] * 4, [2] * 4, [2] * 4, [1] * 4])
    other = snapshot(split_rows(4, (0,), (1,)), [[4.2] * 4, [2] * 4, [2] * 4, [2] * 4])
    first, memory = planned(policy, one, {})
    assert first.does_nothing
    assert "may be a straggler" in first.reason
    elsewhere, _ = planned(policy, other, memory)
    assert elsewhere.does_nothing
    again, _ = planned(policy, one, memory)
    assert not again.does_nothing
    assert again.imbalance_after < again.imbalance_before


def test_no_round_moves_more_than_the_cap() -> None:
    taken = snapshot(even_tiles(grid_of(16), 8), hot(40.0) ** 2)
    policy, memory = AutoTiles(8, max_moves=2), {}
    straggler = [max(loads(taken))]
    for _ in range(12):
        plan, memory = planned(policy, taken, memory)
        assert len(plan.moves) <= 2
        taken = replace(taken, route=plan.route)
        straggler.append(max(loads(taken)))
    assert straggler == sorted(straggler, reverse=True)
    assert straggler[-1] < straggler[0] / 4


@pytest.mark.parametrize("seed", range(20))
def test_asked_again_of_the_same_it_changes_nothing(seed: int) -> None:
    rng = np.random.default_rng(seed)
    instances = int(rng.integers(1, 24))
    load = rng.pareto(rng.choice([0.7, 1.0, 2.0]), (32, 32))
    taken, memory = snapshot(even_tiles(grid_of(32), instances), load), {}
    policy = AutoTiles(instances)
    for _ in range(2):
        plan, memory = planned(policy, taken, memory)
        taken = replace(taken, route=plan.route)
    assert max(loads(taken)) <= 1.1 * np.mean(loads(taken))
    third, _ = planned(policy, taken, memory)
    assert third.route == taken.route, third.reason
    assert policy.plan(taken, memory).route == third.route, "the same twice"


def test_tiles_that_fall_to_one_instance_are_merged() -> None:
    tile = Tile(0, 0, 4, 4, (0,))
    quarters = tuple(part for half in tile.cut("rows", 2) for part in half.cut("columns", 2))
    taken = snapshot(TileRoute(grid_of(4), 1, quarters), np.ones((4, 4)))
    plan, _ = planned(AutoTiles(1), taken, {})
    assert plan.route.tiles == (tile,)
    assert plan.reason == "tiles merged: 4 become 1"


def test_a_hotspot_that_wanders_leaves_few_tiles_behind() -> None:
    policy, memory = AutoTiles(22), {}
    rng = np.random.default_rng(7)
    route = policy.tiles(grid_of(64), 22)
    for step in range(40):
        load = rng.poisson(3.0, (64, 64)).astype(float)
        at = step
        load[at : at + 10, at : at + 10] += rng.poisson(60.0, (10, 10))[: 64 - at, : 64 - at]
        plan, memory = planned(policy, snapshot(route, load), memory)
        route = plan.route
        assert len(route.tiles) < 8 * 22


def test_it_has_the_options_of_auto() -> None:
    auto = Auto(instances=(2, 5), threshold=0.2, max_moves=9, split=False, every=3, busy_ms=50.0)
    policy = AutoTiles.of(auto, cells=32)
    assert policy == AutoTiles((2, 5), 0.2, 9, False, 3, 50.0, 32)
    assert policy.start(cores=8).instances == 5
    with pytest.raises(SkewlessError, match="threshold: got 0"):
        AutoTiles(threshold=0)
    with pytest.raises(SkewlessError, match="cells: got 33"):
        AutoTiles(cells=33)
