"""The control loop of a join, from reports to the next route."""

import json
from typing import Any

import numpy as np
import pytest

from skewless.load.report import HotKeyLoad, PartitionLoads, Report
from skewless.operators.control import Balance, next_round
from skewless.planning.auto import Auto
from skewless.planning.hash import Hash
from skewless.planning.plan import Plan
from skewless.planning.snapshot import Snapshot
from skewless.routing.partitions import PartitionTable, partition_of
from skewless.routing.route import Route


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
    hot = HotKeyLoad(key, 40_000, 60_000, 1_000_000)
    loads = {p: 5_000 for p in range(8) if p != place}
    reports = [report(0, {place: 100_000}, (hot,)), report(1, loads)]
    turn = next_round(Auto(instances=2), route, Balance.initial(2), reports, ())
    (split,) = turn.route.splits
    assert (split.hash, split.partition, split.members) == (key, place, (0, 1))
    assert split.replicated == "left", "the side with fewer rows is replicated"


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
