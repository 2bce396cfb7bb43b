"""The control loop of a join, from reports to the next route."""

import json
from typing import Any

import numpy as np
import pytest

from skewless.control.loop import ControlLoop
from skewless.control.memory import Balance, Planner
from skewless.load.report import HotKeyLoad, PartitionLoads, Report
from skewless.planning.auto import Auto
from skewless.planning.contrand import ContRand
from skewless.planning.decision import Decision, Limits
from skewless.planning.hash import Hash
from skewless.planning.joinmatrix import JoinMatrix
from skewless.planning.keys.snapshot import key_snapshot
from skewless.planning.mixed import Mixed
from skewless.planning.pkg import PKG
from skewless.planning.plan import Plan, moves_between
from skewless.planning.policy import RoutingPolicy
from skewless.planning.snapshot import HotKey, Snapshot
from skewless.routing.entries import Entry
from skewless.routing.partitions import PartitionTable, partition_of
from skewless.routing.table import TableRoute


def report(instance: int, loads: dict[int, int], hot: tuple[HotKeyLoad, ...] = ()) -> Report:
    """A task whose partitions had so many rows, with ten matches each."""
    rows = sum(loads.values())
    return Report(
        instance=instance,
        rows={"left": rows, "right": 0},
        replicas={"left": 0, "right": 0},
        late={"left": 0, "right": 0},
        null_keys={"left": 0, "right": 0},
        bad_rows={"left": 0, "right": 0},
        max_time_us={"left": 0, "right": 0},
        matches=10 * rows,
        cpu_ms=rows / 1000,
        wall_ms=5 + rows / 1000,
        peak_memory_bytes=0,
        segments=[],
        replaced=[],
        partitions=PartitionLoads(
            list(loads), list(loads.values()), [10 * n for n in loads.values()]
        ),
        hot_keys=list(hot),
    )


def test_a_straggler_is_relieved_and_starts_first() -> None:
    route = TableRoute(PartitionTable(2, (0, 0, 0, 0, 1, 1, 1, 1)))
    loads = [report(0, dict.fromkeys(range(4), 90_000)), report(1, {4: 10_000})]
    turn = ControlLoop(Auto(instances=2)).next_round(route, Balance.initial(2), loads, ())
    assert turn.plan is not None
    assert turn.plan.moves
    assert turn.plan.imbalance_after < turn.plan.imbalance_before
    told = turn.to_json()
    assert [len(move) for move in told["moves"]] == [3] * len(turn.plan.moves)
    assert "straggler" in told["reason"]
    still = ControlLoop(Hash(2)).next_round(route, Balance.initial(2), loads, ())
    assert still.route == route
    assert still.balance.order == (0, 1), "the heaviest instance starts first"
    swapped = [report(1, dict.fromkeys(range(4, 8), 90_000)), report(0, {0: 10})]
    turned = ControlLoop(Hash(2)).next_round(route, Balance.initial(2), swapped, ())
    assert turned.balance.order == (1, 0)


def test_a_key_hotter_than_an_instance_is_split() -> None:
    key = 5 << 58
    place = int(partition_of(np.array([key], np.uint64), 8)[0])
    route = TableRoute(PartitionTable(2, (0, 1) * 4))
    hot = HotKeyLoad(key, {"left": 40_000, "right": 60_000}, 1_000_000)
    loads = {p: 5_000 for p in range(8) if p != place}
    reports = [report(0, {place: 100_000}, (hot,)), report(1, loads)]
    turn = ControlLoop(Auto(instances=2)).next_round(route, Balance.initial(2), reports, ())
    (split,) = turn.route.splits
    assert (split.hash, split.partition, split.members) == (key, place, (0, 1))
    assert split.lines == 1, "the side with fewer rows is replicated"


def test_a_policy_is_asked_as_often_as_it_says() -> None:
    route = TableRoute(PartitionTable(2, (0, 0, 1, 1)))
    uneven = [report(0, {0: 90_000, 1: 90_000}), report(1, {2: 10})]
    balance = Balance.initial(2)
    moved = []
    for _ in range(4):
        turn = ControlLoop(Auto(instances=2, every=3)).next_round(route, balance, uneven, ())
        moved.append(turn.plan is not None and bool(turn.plan.moves))
        balance = Balance.from_json(json.loads(json.dumps(turn.balance.to_json())))
    assert moved == [False, False, True, False]


class Mistaken(RoutingPolicy):
    """A policy whose plan loses partitions."""

    def table(self, cores: int) -> PartitionTable:
        return PartitionTable(2, (0, 1))

    def describe(self) -> dict[str, Any]:
        return {"policy": "Mistaken"}

    def plan(self, snapshot: Snapshot, memory: dict[str, Any]) -> Decision:
        plan = Plan(PartitionTable(2, (0,)), (), (), "oops", 1.0, 0.0, 0.0)
        return plan.decision({"kept": True})


def test_a_mistaken_plan_is_refused_and_nothing_changes() -> None:
    route = TableRoute(PartitionTable(2, (0, 1)))
    turn = ControlLoop(Mistaken()).next_round(route, Balance.initial(2), [report(0, {0: 5})], ())
    assert turn.route == route
    assert turn.reason.startswith("refused: ")
    assert turn.to_json()["moves"] == []


class Hasty(Mistaken):
    """A policy that moves more in a round than it says it does."""

    def plan(self, snapshot: Snapshot, memory: dict[str, Any]) -> Decision:
        table = PartitionTable(2, (0, 1, 0, 1))
        moves = moves_between(snapshot.table, table)
        rows = float(snapshot.stored[[move.partition for move in moves]].sum())
        return Plan(table, moves, (), "hasty", 1.0, 0.0, rows).decision()

    def limits(self, partitions: int) -> Limits:
        return Limits(max_moves=1)


def test_a_plan_with_more_moves_than_the_policy_allows_is_refused() -> None:
    route = TableRoute(PartitionTable(2, (0, 0, 0, 0)))
    reports = [report(0, dict.fromkeys(range(4), 1_000)), report(1, {})]
    turn = ControlLoop(Hasty()).next_round(route, Balance.initial(2), reports, ())
    assert turn.reason == "refused: moves: got 2; takes at most 1 a round"
    assert turn.route == route
    assert Auto(2, max_moves=3).limits(256) == Limits(max_moves=3)
    assert Auto(2).limits(256) == Limits(max_moves=64)
    assert Mixed(2, table_limit=7).limits(256) == Limits(table_limit=7)


@pytest.mark.parametrize("policy", [ContRand(4), JoinMatrix(4)], ids=str)
def test_routes_that_never_change_stay_of_their_kind(policy: RoutingPolicy) -> None:
    loop = ControlLoop(policy)
    route = loop.start(cores=2)
    turn = loop.next_round(route, Balance.initial(4), [report(i, {i: 9}) for i in range(4)], ())
    assert turn.route is route
    assert (turn.to_json()["splits"], turn.to_json()["keyTable"]) == ([], 0)
    assert turn.reason.endswith("nothing moves")


def test_the_clock_is_passed_in_and_the_memory_survives_a_commit() -> None:
    ticks = iter([10.0, 10.25])
    loop = ControlLoop(Auto(instances=2), clock=lambda: next(ticks))
    route = loop.start(cores=2)
    turn = loop.next_round(route, Balance.initial(2), [report(0, {0: 900}), report(1, {1: 1})], ())
    assert turn.to_json()["planMs"] == 250.0
    record = loop.planner(turn.balance, turn)
    again = Planner.from_json(json.loads(json.dumps(record)))
    assert again.to_json() == record
    assert again.round == turn.to_json()
    assert again.balance.order == turn.balance.order


@pytest.mark.parametrize("rows", [0, 1])
def test_batches_without_work_change_nothing(rows: int) -> None:
    route = TableRoute(PartitionTable(2, (0, 1, 0, 1)))
    empty = [report(0, {0: rows} if rows else {}), report(1, {})]
    turn = ControlLoop(Auto(instances=2)).next_round(route, Balance.initial(2), empty, ())
    assert turn.route.table == route.table


def keys_in(partition: int, partitions: int, count: int) -> list[int]:
    """So many hashes of one partition."""
    width = 2**64 // partitions
    return [partition * width + (i + 1) * (width // (count + 1)) for i in range(count)]


def hot(keys: list[int], rows: int) -> tuple[HotKeyLoad, ...]:
    return tuple(HotKeyLoad(key, {"input": rows}, 10 * rows) for key in keys)


def test_a_key_policy_moves_keys_out_of_one_partition() -> None:
    keys = keys_in(0, 4, 6)
    route = TableRoute(PartitionTable(2, (0, 1, 0, 1)))
    reports = [report(0, {0: 60_000, 2: 1_000}, hot(keys, 10_000)), report(1, {1: 1_000})]
    turn = ControlLoop(Mixed(instances=2)).next_round(route, Balance.initial(2), reports, ())
    assert turn.route.table == route.table, "partitions stay where they are"
    assert [entry.members for entry in turn.route.entries] == [(1,)] * 3
    assert {entry.hash for entry in turn.route.entries} < set(keys)
    told = turn.to_json()
    assert (told["keyTable"], told["movedKeys"], told["moves"]) == (3, 3, [])
    assert told["imbalanceAfter"] < 0.1 < told["imbalanceBefore"]
    assert turn.route.reads(1) == {0, 1, 3}, "a moved key is read where it went"


def test_keys_of_the_table_stay_known_when_they_are_idle() -> None:
    (idle, busy) = keys_in(0, 4, 2)
    table = PartitionTable(2, (0, 1, 0, 1))
    load = np.array([8.0, 1.0, 1.0, 2.0])
    snapshot = Snapshot(
        table=table,
        load=load,
        stored=np.array([100.0, 10.0, 10.0, 10.0]),
        queued=np.array([80.0, 10.0, 10.0, 20.0]),
        hot_keys=(HotKey(busy, 0, 6.0, 60, 0),),
        entries=(Entry(idle, 0, (1,)),),
    )
    keys = key_snapshot(snapshot)
    assert keys.hashes.tolist() == [busy, idle]
    assert keys.cost.tolist() == [6.0, 0.0]
    assert (keys.home.tolist(), keys.current.tolist()) == ([0, 0], [0, 1])
    assert keys.state.tolist() == [75.0, 0.0], "its share of the partition's rows"
    assert keys.rest.tolist() == [3.0, 3.0]
    assert keys.loads.sum() == load.sum(), "no load is lost or counted twice"


def test_partial_key_grouping_gives_a_key_two_instances() -> None:
    (key,) = keys_in(0, 4, 1)
    route = TableRoute(PartitionTable(2, (0, 1, 0, 1)))
    reports = [report(0, {0: 90_000}, hot([key], 90_000)), report(1, {1: 1_000})]
    turn = ControlLoop(PKG(instances=2)).next_round(route, Balance.initial(2), reports, ())
    (entry,) = turn.route.entries
    assert sorted(entry.members) == [0, 1]
    assert turn.to_json()["splits"] == [{"hash": key, "members": list(entry.members), "lines": 2}]


def test_instances_are_added_while_all_are_busy_and_filled_in_one_round() -> None:
    policy = Mixed(instances=(2, 4), busy_ms=50.0)
    route = TableRoute(PartitionTable(2, (0, 1) * 4))
    keys = [key for p in range(8) for key in keys_in(p, 8, 4)]
    balance = Balance.initial(2)
    counts = []
    for _ in range(3):
        reports = [
            report(
                i,
                {p: 20_000 for p in range(8) if route.table.owners[p] == i},
                hot(keys, 5_000) if i == 0 else (),
            )
            for i in range(route.instances)
        ]
        turn = ControlLoop(policy).next_round(route, balance, reports, ())
        route, balance = turn.route, turn.balance
        counts.append(route.instances)
    assert counts[0] == 2, "one busy batch is no reason"
    assert counts[1] == 4
    after = key_snapshot(
        Snapshot(
            route.table,
            np.full(8, 20.0),
            np.ones(8),
            np.full(8, 20_000.0),
            tuple(HotKey(k, p // 4, 5.0, 5_000, 0) for p, k in enumerate(keys)),
            entries=route.entries,
        )
    )
    assert after.skewness <= 1 / 8, "the new instances have their share at once, but for one key"


def test_instances_go_when_all_are_idle_for_long() -> None:
    policy = Auto(instances=(1, 4), busy_ms=1_000.0)
    route = TableRoute(PartitionTable(4, tuple(range(4)) * 2))
    balance = Balance.initial(4)
    counts = []
    for _ in range(6):
        reports = [report(i, {i: 1_000}) for i in range(route.instances)]
        turn = ControlLoop(policy).next_round(route, balance, reports, ())
        route, balance = turn.route, Balance.from_json(turn.balance.to_json())
        counts.append(route.instances)
        assert len(balance.order) == route.instances
    assert counts == [4, 4, 4, 4, 1, 1]
