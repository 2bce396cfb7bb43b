"""What policies for maps have in common, and what each of them does first."""

import json

import numpy as np
import pytest

import skewless as sk
from skewless.errors import SkewlessError
from skewless.planning.policy import Policy
from skewless.planning.replicated import Replicated
from skewless.planning.staticgrid import StaticGrid
from skewless.planning.swarm import Swarm
from skewless.planning.tiles.auto import AutoTiles
from skewless.planning.tiles.policy import TilePolicy
from skewless.routing.tiles import Tile, TileRoute, even_tiles
from tests.planning.tiles.cases import grid_of, planned, snapshot

POINTS = np.random.default_rng(3).random((500, 2)) ** 3
POLICIES: list[TilePolicy] = [
    Swarm(4),
    StaticGrid(4),
    StaticGrid(4, history=POINTS),
    Replicated(4),
    AutoTiles(4),
]
NAMES = ["Swarm", "StaticGrid", "StaticGrid from history", "Replicated", "AutoTiles"]


@pytest.mark.parametrize("policy", POLICIES, ids=NAMES)
def test_a_policy_is_described_and_remembers_in_json(policy: TilePolicy) -> None:
    described = policy.describe()
    assert described["policy"] == type(policy).__name__.removesuffix("Tiles")
    assert json.loads(json.dumps(described)) == described
    memory: dict = {}
    route = policy.tiles(grid_of(64), 2)
    for seed in range(6):
        load = np.random.default_rng(seed).pareto(1.0, (64, 64))
        plan, memory = planned(policy, snapshot(route, load), memory)
        assert json.loads(json.dumps(memory)) == memory
        assert plan.reason
        route = plan.route


@pytest.mark.parametrize("policy", POLICIES, ids=NAMES)
def test_the_loop_can_ask_every_policy_the_same_questions(policy: TilePolicy) -> None:
    assert isinstance(policy, Policy)
    assert policy.every == 1
    assert policy.busy_ms > 0
    assert policy.cells == 64
    assert policy.start(cores=2) == policy.tiles(grid_of(64), cores=2)
    route = policy.start(cores=2)
    again = snapshot(route, np.zeros((64, 64)))
    decision = policy.plan(again, {})
    assert decision.route == route
    assert set(decision.plan.told()) >= {
        "moves",
        "movedKeys",
        "movedRows",
        "imbalanceBefore",
        "imbalanceAfter",
    }
    for instances in (1, 2, 9):
        assert policy.resized(route, instances).instances in (instances, policy.instances)


@pytest.mark.parametrize("kind", [Swarm, StaticGrid, Replicated, AutoTiles])
def test_without_instances_there_is_one_per_core(kind: type[TilePolicy]) -> None:
    assert [kind().start(cores).instances for cores in (0, 1, 3, 30)] == [1, 1, 3, 30]
    grown = kind().resized(kind().start(3), 5)
    working = {m for tile in grown.tiles for m in tile.members}
    assert working == set(range(5))


def test_static_grids_and_replicas_never_change() -> None:
    for policy in POLICIES[1:4]:
        taken = snapshot(policy.start(4), np.random.default_rng(1).pareto(1.0, (64, 64)))
        assert planned(policy, taken, {})[0].does_nothing


def test_a_resized_replica_is_still_one() -> None:
    whole = Replicated().resized(Replicated().start(1), 3)
    assert whole.tiles == (Tile(0, 0, 64, 64, (0, 1, 2)),)


def test_history_is_described_by_a_digest() -> None:
    one, same = (StaticGrid(4, history=POINTS.tolist()) for _ in range(2))
    assert one == same == StaticGrid(4, history=POINTS)
    assert one != StaticGrid(4, history=POINTS[1:])
    assert one.describe() == {
        "policy": "StaticGrid",
        "instances": 4,
        "history": one.history.digest,
        "cells": 64,
    }
    assert StaticGrid(4).describe()["history"] is None


def test_history_is_placed_in_the_bounds_of_the_map() -> None:
    tiles = StaticGrid(4, history=POINTS).tiles(grid_of(64), 4)
    assert tiles != even_tiles(grid_of(64), 4)
    counts = np.bincount(grid_of(64).cells(*POINTS.T), minlength=64 * 64)
    loads = np.bincount(tiles.table.owners, counts, 4)
    assert loads.max() < 1.3 * loads.mean()


def swarm_rounds(policy: Swarm, rounds: int, load: np.ndarray) -> tuple[TileRoute, list]:
    route, memory, plans = policy.start(1), {}, []
    for _ in range(rounds):
        plan, memory = planned(policy, snapshot(route, load), memory)
        route = plan.route
        plans.append(plan)
    return route, plans


def test_swarm_follows_its_stages() -> None:
    load = np.random.default_rng(2).pareto(1.0, (64, 64))
    _, plans = swarm_rounds(Swarm(4), 8, load)
    assert ["do nothing" in plan.reason for plan in plans] == [
        *([True] * 3),  # to the left end
        *([False] * 2),
        *([True] * 2),
        False,
    ]
    assert all(len(plan.moves) <= 1 for plan in plans[:4])


def test_swarm_may_make_several_reductions_in_a_round() -> None:
    load = np.random.default_rng(2).pareto(1.0, (64, 64))
    _, plans = swarm_rounds(Swarm(8, reductions=5), 4, load)
    assert plans[3].reason.count("instance") == 10
    assert plans[3].imbalance_after < plans[3].imbalance_before


def test_swarm_merges_now_and_then() -> None:
    load = np.random.default_rng(2).pareto(1.0, (64, 64))
    route, _ = swarm_rounds(Swarm(2, reductions=20), 5, load)
    largest = max(route.tiles, key=lambda tile: tile.area)
    parts = (*largest.cut("rows", 1), *(tile for tile in route.tiles if tile != largest))
    cut = TileRoute(route.grid, route.count, parts)
    plan, _ = planned(Swarm(2, merge_every=10), snapshot(cut, load), {"rounds": 9})
    assert plan.reason.startswith("tiles merged")
    assert plan.does_nothing
    assert len(plan.route.tiles) < len(cut.tiles)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Swarm(0), "instances: got 0"),
        (lambda: Swarm(cells=65), "cells: got 65; takes a power of two from 1 to 256"),
        (lambda: Swarm(cells=True), "cells: got True"),
        (lambda: Swarm(beta=0), "beta: got 0"),
        (lambda: Swarm(reductions=1.5), "reductions: got 1.5"),
        (lambda: StaticGrid(cells=0), "cells: got 0"),
        (lambda: StaticGrid(history=[1.0, 2.0]), "history: points: got (2,)"),
        (lambda: Replicated(-1), "instances: got -1"),
    ],
)
def test_a_wrong_argument_is_refused(make: object, says: str) -> None:
    with pytest.raises(SkewlessError) as refusal:
        make()  # type: ignore[operator]
    assert says in str(refusal.value)


def test_they_are_public() -> None:
    assert (sk.Swarm, sk.StaticGrid, sk.Replicated) == (Swarm, StaticGrid, Replicated)
