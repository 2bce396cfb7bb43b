"""Executors on a map: what flows, what waits, what is held, against sums by hand."""

import numpy as np
import pytest

from skewless.errors import SkewlessError
from skewless.load.corners import CornerCounts
from skewless.planning.replicated import Replicated
from skewless.planning.staticgrid import StaticGrid
from skewless.planning.swarm import Swarm
from skewless.planning.tiles.auto import AutoTiles
from skewless.routing.cells import CellGrid
from skewless.simulate.tiles import Map, MapRound, MapRun, ProbeCost, Stage, simulate_map

SIDE = 8
GRID = CellGrid(SIDE, (0.0, 0.0, 1.0, 1.0))
NONE = CornerCounts.empty(SIDE)
ONE_PER_CELL = CornerCounts.of(SIDE, *np.divmod(np.arange(64), SIDE) * 2)
FLAT = ProbeCost(fixed=1_000.0, probe=0.0, match=0.0, insert=0.0, send=0.0)


def rounds(shares: np.ndarray, count: int = 40) -> list[MapRound]:
    flat = shares.ravel() / shares.sum()
    return [MapRound(flat, ONE_PER_CELL if n == 0 else NONE, NONE) for n in range(count)]


def even() -> np.ndarray:
    return np.ones((SIDE, SIDE))


def one_hot_corner() -> np.ndarray:
    shares = even()
    shares[:4, :4] += 9
    return shares


def run(policy: object, shares: np.ndarray, **given: object) -> MapRun:
    options = {"cost": FLAT, "stage": Stage(), **given}
    return simulate_map(policy, Map(GRID, 100, 0.01), rounds(shares), **options)


def test_even_points_flow_as_fast_as_all_executors_can() -> None:
    last = run(StaticGrid(4, cells=SIDE), even()).rounds[-1]
    assert last.rate == pytest.approx(4_000, rel=0.05)  # 4 executors, 1 ms a point
    assert last.utilisation.min() > 0.95
    assert last.queries == 6_400
    assert last.work == last.queries * last.rate
    assert last.execution_us == pytest.approx(1_000)


def test_the_slowest_executor_holds_all_back() -> None:
    shares = one_hot_corner()
    last = run(StaticGrid(4, cells=SIDE), shares).rounds[-1]
    share = shares[:4, :4].sum() / shares.sum()
    assert last.rate == pytest.approx(1_000 / share, rel=0.06)
    assert last.utilisation.max() > 0.99
    assert last.utilisation.mean() < 0.5


def test_routers_pass_on_no_more_than_they_can() -> None:
    last = run(StaticGrid(4, cells=SIDE), even(), stage=Stage(most=800.0)).rounds[-1]
    assert last.rate == 800
    # 0.2 of the time busy: 0.2 / 0.8 service times of 1 ms
    assert last.waiting_ms == pytest.approx(0.25)


@pytest.mark.parametrize("policy", [Swarm(4, cells=SIDE), AutoTiles(4, cells=SIDE)])
def test_policies_that_follow_the_points_get_more_done(policy: object) -> None:
    static = run(StaticGrid(4, cells=SIDE), one_hot_corner())
    moving = run(policy, one_hot_corner())
    assert moving.rounds[-1].rate > 1.5 * static.rounds[-1].rate
    assert moving.mean(lambda r: r.moves) > 0
    assert moving.route != static.route


def test_a_replica_holds_everything_everywhere_and_may_not_fit() -> None:
    replica = run(Replicated(4), one_hot_corner())
    assert replica.rounds[-1].rate == pytest.approx(4_000, rel=0.05)
    assert replica.rounds[-1].held == 6_400
    full = run(Replicated(4), one_hot_corner(), stage=Stage(holds=6_000))
    assert full.out_of_memory
    assert full.rounds == ()
    assert not run(StaticGrid(4, cells=SIDE), even(), stage=Stage(holds=6_000)).out_of_memory


def test_a_probe_costs_more_in_a_larger_index() -> None:
    cost = ProbeCost(fixed=1.0, probe=2.0, exponent=0.5, match=3.0)
    assert cost.of_points(np.array([100.0]), np.array([4.0])).tolist() == [33.0]
    probing = ProbeCost(fixed=0.0, probe=10.0, exponent=1.0, match=0.0, insert=0.0)
    few = run(StaticGrid(4, cells=SIDE), even(), cost=probing)
    all_of_them = run(Replicated(4), even(), cost=probing)
    assert all_of_them.execution_us == pytest.approx(4 * few.execution_us)


def test_subscriptions_that_come_are_work_and_those_that_go_are_gone() -> None:
    busy = ProbeCost(fixed=1_000.0, probe=0.0, match=0.0, insert=1_000.0)
    map_ = Map(GRID, 1_000, 0.01)
    happens = rounds(even(), 6)
    happens[3] = MapRound(happens[3].shares, ONE_PER_CELL, NONE)
    happens[5] = MapRound(happens[5].shares, NONE, ONE_PER_CELL)
    made = simulate_map(StaticGrid(4, cells=SIDE), map_, happens, cost=busy, stage=Stage())
    assert [r.queries for r in made.rounds] == [64_000] * 3 + [128_000] * 2 + [64_000]
    assert made.rounds[3].rate < 0.2 * made.rounds[2].rate


def test_the_tiles_of_every_round_are_shown() -> None:
    seen = []
    run(Swarm(4, cells=SIDE), one_hot_corner(), watch=lambda n, route: seen.append((n, route)))
    assert [n for n, _ in seen] == list(range(40))
    assert len({route for _, route in seen}) > 1


def test_a_cost_below_nothing_is_refused() -> None:
    with pytest.raises(SkewlessError, match="probe: got -1"):
        ProbeCost(probe=-1.0)
