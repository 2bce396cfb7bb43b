"""The control loop of a join, from reports to the next route."""

import json
from typing import Any

import numpy as np
import pytest

from skewless.control.loop import Balance, adopt, key_snapshot, next_round
from skewless.load.report import HotKeyLoad, PartitionLoads, Report
from skewless.planning.auto import Auto
from skewless.planning.hash import Hash
from skewless.planning.keys.policies import PKG, Mixed
from skewless.planning.plan import Plan
from skewless.planning.snapshot import HotKey, Snapshot
from skewless.routing.partitions import PartitionTable, partition_of
from skewless.routing.route import Route
from skewless.routing.splits import Split
from skewless.state.commit import OperatorState


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
    route = Route(PartitionTable(2, (0, 0, 0, 0, 1, 1, 1, 1)))
    loads = [report(0, dict.fromkeys(range(4), 90_000)), report(1, {4: 10_000})]
    turn = next_round(Auto(instances=2), route, Balance.initial(2), loads, ())
    assert turn.plan is not None
    assert turn.plan.moves
    assert turn.plan.imbalance_after < turn.plan.imbalance_before
    told = turn.to_json()
    assert [len(move) for move in told["moves"]] == [3] * len(turn.plan.moves)
    assert "straggler" in told["reason"]
    still = next_round(Hash(2), route, Balance.initial(2), loads, ())
    assert still.route == route
    assert still.balance.order == (0, 1), "the heaviest instance starts first"
    swapped = [report(1, dict.fromkeys(range(4, 8), 90_000)), report(0, {0: 10})]
    assert next_round(Hash(2), route, Balance.initial(2), swapped, ()).balance.order == (1, 0)


def test_a_key_hotter_than_an_instance_is_split() -> None:
    key = 5 << 58
    place = int(partition_of(np.array([key], np.uint64), 8)[0])
    route = Route(PartitionTable(2, (0, 1) * 4))
    hot = HotKeyLoad(key, {"left": 40_000, "right": 60_000}, 1_000_000)
    loads = {p: 5_000 for p in range(8) if p != place}
    reports = [report(0, {place: 100_000}, (hot,)), report(1, loads)]
    turn = next_round(Auto(instances=2), route, Balance.initial(2), reports, ())
    (split,) = turn.route.splits
    assert (split.hash, split.partition, split.members) == (key, place, (0, 1))
    assert split.lines == 1, "the side with fewer rows is replicated"


def test_a_policy_is_asked_as_often_as_it_says() -> None:
    route = Route(PartitionTable(2, (0, 0, 1, 1)))
    uneven = [report(0, {0: 90_000, 1: 90_000}), report(1, {2: 10})]
    balance = Balance.initial(2)
    moved = []
    for _ in range(4):
        turn = next_round(Auto(instances=2, every=3), route, balance, uneven, ())
        moved.append(turn.plan is not None and bool(turn.plan.moves))
        balance = Balance.from_json(json.loads(json.dumps(turn.balance.to_json())))
    assert moved == [False, False, True, False]


class Mistaken:
    """A policy whose plan loses partitions."""

    def table(self, cores: int) -> PartitionTable:
        return PartitionTable(2, (0, 1))

    def describe(self) -> dict[str, Any]:
        return {"policy": "Mistaken"}

    def plan(self, snapshot: Snapshot, state: dict[str, Any]) -> tuple[Plan, dict[str, Any]]:
        return Plan(PartitionTable(2, (0,)), (), (), "oops", 1.0, 0.0, 0.0), {"kept": True}


def test_a_mistaken_plan_is_refused_and_nothing_changes() -> None:
    route = Route(PartitionTable(2, (0, 1)))
    turn = next_round(Mistaken(), route, Balance.initial(2), [report(0, {0: 5})], ())
    assert turn.route == route
    assert turn.reason.startswith("refused: ")
    assert turn.to_json()["moves"] == []


@pytest.mark.parametrize("rows", [0, 1])
def test_batches_without_work_change_nothing(rows: int) -> None:
    route = Route(PartitionTable(2, (0, 1, 0, 1)))
    empty = [report(0, {0: rows} if rows else {}), report(1, {})]
    turn = next_round(Auto(instances=2), route, Balance.initial(2), empty, ())
    assert turn.route.table == route.table


def keys_in(partition: int, partitions: int, count: int) -> list[int]:
    """So many hashes of one partition."""
    width = 2**64 // partitions
    return [partition * width + (i + 1) * (width // (count + 1)) for i in range(count)]


def hot(keys: list[int], rows: int) -> tuple[HotKeyLoad, ...]:
    return tuple(HotKeyLoad(key, {"input": rows}, 10 * rows) for key in keys)


def test_a_key_policy_moves_keys_out_of_one_partition() -> None:
    keys = keys_in(0, 4, 6)
    route = Route(PartitionTable(2, (0, 1, 0, 1)))
    reports = [report(0, {0: 60_000, 2: 1_000}, hot(keys, 10_000)), report(1, {1: 1_000})]
    turn = next_round(Mixed(instances=2), route, Balance.initial(2), reports, ())
    assert turn.route.table == route.table, "partitions stay where they are"
    assert [split.members for split in turn.route.splits] == [(1,)] * 3
    assert {split.hash for split in turn.route.splits} < set(keys)
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
        splits=(Split(idle, 0, (1,), 1),),
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
    route = Route(PartitionTable(2, (0, 1, 0, 1)))
    reports = [report(0, {0: 90_000}, hot([key], 90_000)), report(1, {1: 1_000})]
    turn = next_round(PKG(instances=2), route, Balance.initial(2), reports, ())
    (split,) = turn.route.splits
    assert sorted(split.members) == [0, 1]


def test_instances_are_added_while_all_are_busy_and_filled_in_one_round() -> None:
    policy = Mixed(instances=(2, 4), busy_ms=50.0)
    route = Route(PartitionTable(2, (0, 1) * 4))
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
        turn = next_round(policy, route, balance, reports, ())
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
            route.splits,
        )
    )
    assert after.skewness <= 1 / 8, "the new instances have their share at once, but for one key"


def test_instances_go_when_all_are_idle_for_long() -> None:
    policy = Auto(instances=(1, 4), busy_ms=1_000.0)
    route = Route(PartitionTable(4, tuple(range(4)) * 2))
    balance = Balance.initial(4)
    counts = []
    for _ in range(6):
        reports = [report(i, {i: 1_000}) for i in range(route.instances)]
        turn = next_round(policy, route, balance, reports, ())
        route, balance = turn.route, Balance.from_json(turn.balance.to_json())
        counts.append(route.instances)
        assert len(balance.order) == route.instances
    assert counts == [4, 4, 4, 4, 1, 1]


def state_of(policy: Any, route: Route) -> OperatorState:
    balance = Balance.initial(route.instances)
    planner = {"policy": policy.describe(), "balance": balance.to_json(), "round": {}, "own": 7}
    return OperatorState(route, {"left": 5}, 3, (), json.loads(json.dumps(planner)))


def test_another_number_of_instances_keeps_the_table() -> None:
    key = keys_in(3, 4, 1)[0]
    route = Route(PartitionTable(2, (1, 1, 0, 1)), (Split(key, 3, (0,), 1),))
    policy = Mixed(instances=3)
    after = adopt(policy, Route(policy.table(1)), state_of(Mixed(instances=2), route), 1)
    assert after.route.table.assignment == (2, 1, 0, 1), "the newcomer takes from the fullest"
    assert after.route.instances == 3
    assert after.route.splits == route.splits
    assert (after.planner["own"], after.watermark_us) == (7, 3), "what is the operator's stays"
    assert after.planner["policy"] == policy.describe()
    assert after.planner["balance"]["order"] == [0, 1, 2]


def test_the_same_policy_changes_nothing_and_another_starts_anew() -> None:
    route = Route(PartitionTable(2, (1, 1, 0, 1)))
    policy = Mixed(instances=(1, 3))
    state = state_of(policy, route)
    assert adopt(policy, Route(policy.table(1)), state, 1) is state, "a number that it has chosen"
    other = Auto(instances=2)
    after = adopt(other, Route(other.table(1)), state, 1)
    assert after.route == Route(other.table(1))
