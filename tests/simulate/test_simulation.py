"""The simulated cluster: exact queues, M/M/1, moves, splits, and the planners in its loop."""

from typing import Any

import numpy as np
import pytest

from skewless.errors import SkewlessError
from skewless.lab.workloads.zipf import Zipf
from skewless.planning.auto import Auto
from skewless.planning.contrand import ContRand
from skewless.planning.decision import Decision
from skewless.planning.fastjoin import FastJoin
from skewless.planning.hash import Hash
from skewless.planning.joinmatrix import JoinMatrix
from skewless.planning.lsstream import LsStream
from skewless.planning.minmig import MinMig
from skewless.planning.mintable import MinTable
from skewless.planning.mixed import Mixed
from skewless.planning.pkg import PKG
from skewless.planning.plan import Plan, moves_between, stay
from skewless.planning.policy import RoutingPolicy
from skewless.planning.readj import Readj
from skewless.planning.snapshot import Snapshot
from skewless.routing.partitions import PartitionTable, partition_of
from skewless.simulate import Cluster, Costs, Course, Streams, kernel, simulate
from skewless.simulate.routes import routes_of
from tests.simulate.reference import latencies

COSTS = Costs.scan(tuple_s=1e-4, compare_s=1e-8, migrate_s=1e-5)
SHORT = Course(duration_s=6.0, warm_up_s=4.0, period_s=0.5, window_s=2.0)


def zipf(exponent: float, rate: float, keys: int = 2_000) -> Streams:
    shares = Zipf(exponent, keys, np.random.default_rng(5)).probabilities()
    return Streams(shares, shares, rate)


@pytest.mark.parametrize("scope", ["instance", "partition"])
def test_one_pass_gives_what_events_give(scope: Any) -> None:
    streams = zipf(0.8, rate=2_000.0, keys=50)
    costs = Costs.scan(tuple_s=8e-4, compare_s=3e-6, match_s=2e-6, scope=scope)
    table = Hash(3).table(3)
    partitions = partition_of(streams.hashes, table.partitions)
    routes = routes_of(Hash(3).start(3), streams.hashes, partitions)
    arrivals = streams.between(0.0, 0.7, np.random.default_rng(8))
    n = len(arrivals.key)
    log = kernel.with_room(None, n)
    stored = kernel.empty_stored(streams.keys, table.partitions, routes, 3)
    work = kernel.empty_work(streams.keys, table.partitions, 3)
    prices = kernel.Prices(False, scope == "instance", 8e-4, 3e-6, 2e-6)
    copy_of, copy_at, copy_s = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n)
    copies = kernel.offer(
        arrivals.time_s, arrivals.key, arrivals.side, np.zeros(n, np.int64), log, stored, routes,
        partitions, work, prices, 0.2, copy_of, copy_at, copy_s,
    )  # fmt: skip
    done_s = np.zeros(n)
    kernel.serve(arrivals.time_s, copy_of, copy_at, copy_s, np.ones(3), np.zeros(3), done_s)
    exact = latencies(arrivals, partitions.tolist(), table.owners.tolist(), 3, costs, 0.2)
    assert copies == n
    np.testing.assert_allclose(done_s - arrivals.time_s, exact, rtol=1e-9)
    assert max(exact) > 5e-3  # there were queues


def test_an_instance_is_an_mm1_queue() -> None:
    one = np.array([1.0])
    costs = Costs.scan(tuple_s=1e-3, compare_s=0.0, exponential=True)
    course = Course(duration_s=2_000.0, warm_up_s=100.0, period_s=50.0, window_s=1.0)
    found = simulate(
        Hash(1), Streams(one, one, 700.0), Cluster(1), costs, course, np.random.default_rng(3)
    )
    assert found.mean_latency_s == pytest.approx(1 / (1_000 - 700), rel=0.03)
    assert found.utilisation == pytest.approx(0.7, rel=0.01)


def test_equal_seeds_give_equal_runs() -> None:
    runs = [
        simulate(
            LsStream(4), zipf(1.0, 5_000.0), Cluster(4), COSTS, SHORT, np.random.default_rng(2),
            clock=lambda: 0.0,
        )
        for _ in range(2)
    ]  # fmt: skip
    assert runs[0] == runs[1]


@pytest.mark.parametrize(
    "policy",
    [Hash(6), ContRand(6), JoinMatrix(6), LsStream(6), FastJoin(6), Auto(6), Mixed(6), Readj(6)],
    ids=str,
)
def test_counts_stay_true_under_every_policy(policy: Any) -> None:
    """Every tuple is served, and the window holds what came in it."""
    found = simulate(policy, zipf(1.2, 4_000.0), Cluster(6), COSTS, SHORT, np.random.default_rng(1))
    assert found.throughput == pytest.approx(found.rate, rel=0.02)
    assert found.rate == pytest.approx(4_000, rel=0.05)
    # A group of 2 is probed whole; on the grid of 2 × 3 a left row has 3 copies, a right row 2.
    # Auto may split a key, whose rows then have more.
    visits = {ContRand: 1.5, JoinMatrix: 2.5}.get(type(policy), 1.0)
    assert found.copies == pytest.approx(visits, abs=2.0 if isinstance(policy, Auto) else 0.02)


@pytest.mark.parametrize(
    "policy",
    [LsStream(8), FastJoin(8, partitions=4_096), Auto(8), Mixed(8), MinTable(8), MinMig(8)],
    ids=str,
)
def test_planners_relieve_the_straggler(policy: Any) -> None:
    streams = zipf(1.0, 8_000.0)
    plain, own = (
        simulate(p, streams, Cluster(8), COSTS, SHORT, np.random.default_rng(4))
        for p in (Hash(8), policy)
    )
    assert own.utilisation < 0.9 * plain.utilisation
    assert own.moved_rows > 0
    assert plain.moved_rows == 0


def test_a_key_too_hot_for_one_instance_is_split() -> None:
    shares = np.full(1_000, 0.4 / 999)
    shares[7] = 0.6
    streams = Streams(shares, shares, 4_000.0)
    whole, split = (
        simulate(p, streams, Cluster(8), COSTS, SHORT, np.random.default_rng(4))
        for p in (Auto(8, split=False), Auto(8))
    )
    assert split.entries >= 1
    assert split.utilisation < 0.7 * whole.utilisation


def test_a_key_table_is_what_the_router_looks_up() -> None:
    found = simulate(
        Mixed(8, table_limit=20), zipf(1.0, 8_000.0), Cluster(8), COSTS, SHORT,
        np.random.default_rng(4),
    )  # fmt: skip
    assert 0 < found.entries <= 20
    assert any("the table fits" in look.reason for look in found.looks)


def test_a_policy_is_asked_as_often_as_it_says() -> None:
    found = simulate(
        LsStream(4, every=3), zipf(1.0, 2_000.0), Cluster(4), COSTS, SHORT,
        np.random.default_rng(2),
    )  # fmt: skip
    asked = [not look.reason.startswith("plans every 3") for look in found.looks]
    assert asked == [n % 3 == 2 for n in range(len(asked))]


class MoveOnce(RoutingPolicy):
    """Moves every partition of instance 0 to instance 1 at its first chance."""

    def table(self, cores: int) -> PartitionTable:
        return PartitionTable(2, (0, 0, 0, 0, 0, 0, 1, 1))

    def describe(self) -> dict[str, Any]:
        return {}

    def plan(self, snapshot: Snapshot, memory: dict[str, Any]) -> Decision:
        if memory:
            return stay(snapshot, "done", 0.0).decision(memory)
        table = PartitionTable(2, (0, 0, 0, 0, 1, 1, 1, 1))
        moves = moves_between(snapshot.table, table)
        rows = float(snapshot.stored[[4, 5]].sum())
        return Plan(table, moves, (), "once", 1.0, 0.0, rows).decision({"done": 1})


def test_a_move_costs_time_and_holds_tuples_back() -> None:
    streams = zipf(0.0, 1_000.0)
    course = Course(duration_s=4.0, warm_up_s=0.5, period_s=0.5, window_s=2.0)
    free, dear = (
        simulate(
            MoveOnce(), streams, Cluster(2),
            Costs.scan(tuple_s=1e-5, compare_s=0.0, migrate_s=cost), course,
            np.random.default_rng(6),
        )
        for cost in (0.0, 1e-3)
    )  # fmt: skip
    assert free.moved_rows == dear.moved_rows == free.looks[0].moved_rows
    assert dear.moved_rows == pytest.approx(1_000 / 2 * 2.0 * 2 / 8, rel=0.2)
    assert dear.max_latency_s == pytest.approx(dear.moved_rows * 1e-3, rel=0.1)
    assert free.max_latency_s < 1e-3
    assert dear.throughput == pytest.approx(dear.rate, rel=0.01)


def test_instances_of_a_node_share_its_cores() -> None:
    streams = zipf(0.0, 7_000.0)
    own, shared = (
        simulate(
            Hash(8), streams, Cluster(8, nodes=nodes, cores_per_node=1.0),
            Costs.scan(tuple_s=1e-3, compare_s=0.0), SHORT, np.random.default_rng(1),
        )
        for nodes in (8, 2)
    )  # fmt: skip
    assert not own.saturated
    assert shared.saturated
    assert shared.throughput == pytest.approx(2_000, rel=0.1)


def test_wrong_arguments_are_refused() -> None:
    half = np.array([0.5, 0.5])
    for build in (
        lambda: Streams(half, np.array([1.0]), 1.0),
        lambda: Streams(half, half * 2, 1.0),
        lambda: Streams(half, half, 0.0),
        lambda: Costs.scan(tuple_s=-1.0, compare_s=0.0),
        lambda: Cluster(0),
        lambda: Cluster(8, nodes=1, cores_per_node=1.0, overhead=0.2),
        lambda: Course(duration_s=1.0, warm_up_s=1.0),
        lambda: simulate(
            Hash(3), Streams(half, half, 9.0), Cluster(2), COSTS, SHORT, np.random.default_rng(1)
        ),
        lambda: simulate(
            PKG(2), Streams(half, half, 9.0), Cluster(2), COSTS, SHORT, np.random.default_rng(1)
        ),
        lambda: simulate(
            Auto((1, 2)),
            Streams(half, half, 9.0),
            Cluster(2),
            COSTS,
            SHORT,
            np.random.default_rng(1),
        ),
    ):
        with pytest.raises(SkewlessError):
            build()
