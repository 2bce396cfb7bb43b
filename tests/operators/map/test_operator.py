"""The map as the engine sees it: what one batch teaches makes the next even, and is kept."""

import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from skewless.planning.leastwork import LeastWork
from skewless.planning.posg import Posg
from skewless.planning.roundrobin import RoundRobin
from skewless.state.faults import Fault, Faults, SimulatedKill
from tests.operators.map.maps import LocalMap

SCHEMA = pa.schema([("i", pa.int64()), ("h", pa.string())])


class Work:
    """A clock, and a function that makes it run by what a row costs; nothing really waits."""

    def __init__(self, costs: dict[str, float]) -> None:
        self.costs = costs
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def row(self, row):
        self.now += self.costs[row["h"]]
        return row

    def batch(self, batch):
        self.now += sum(self.costs[key] for key in batch.column("h").to_pylist())
        return batch


def table(rng: np.random.Generator, costs: dict[str, float], size: int) -> pa.Table:
    keys = rng.choice(list(costs), size)
    return pa.table({"i": np.arange(size), "h": keys}, schema=SCHEMA)


def made(path: Path, work: Work, policy, **options) -> LocalMap:
    """Columns have the names of helper columns on purpose."""
    fn = work.row if options.get("per_row") else work.batch
    local = LocalMap(str(path), fn, SCHEMA, policy, columns=["i", "h"], key="h", **options)
    plain = local.operator.task

    def timed(*args, **kwargs):
        task = plain(*args, **kwargs)
        object.__setattr__(task, "clock", work)
        return task

    object.__setattr__(local.operator, "task", timed)
    return local


COSTS = {f"k{n}": 1e-3 * (50.0 if n == 0 else 1.0) for n in range(20)}


def test_rows_come_out_once_each(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    for policy in (RoundRobin(3), LeastWork(3), Posg(3, window=50)):
        local = made(tmp_path / type(policy).__name__, Work(COSTS), policy)
        for batch in range(4):
            rows = table(rng, COSTS, 500)
            found = local.step(batch, rows)
            assert sorted(r["i"] for r in found) == list(range(500))
            assert sorted(r["h"] for r in found) == sorted(rows.column("h").to_pylist())
            assert local.progress[-1]["rows"] == local.progress[-1]["outputRows"] == 500


def test_costs_learned_in_one_batch_even_out_the_next(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    work = Work(COSTS)
    local = made(tmp_path, work, LeastWork(4), per_row=True)
    plain = made(tmp_path / "plain", work, RoundRobin(4), per_row=True)
    for batch in range(4):
        rows = table(rng, COSTS, 300)
        local.step(batch, rows)
        plain.step(batch, rows)
    uneven = [p["imbalance"] for p in plain.progress]
    even = [p["imbalance"] for p in local.progress[1:]]
    assert max(even) < 1.1
    assert max(even) < min(uneven[1:])
    balance = local.progress[-1]["balance"]
    assert balance["policy"] == "LeastWork"
    assert balance["costliest"][0]["costMs"] == pytest.approx(50.0)


def test_costs_that_change_at_run_time_are_learned_again(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    work = Work(dict(COSTS))
    local = made(tmp_path, work, LeastWork(4), per_row=True)
    for batch in range(12):
        if batch == 6:
            work.costs = {**COSTS, "k0": 1e-3, "k7": 50e-3}
        local.step(batch, table(rng, COSTS, 300))
    assert local.progress[-1]["imbalance"] < 1.1
    heaviest = local.progress[-1]["balance"]["costliest"][0]
    assert heaviest["costMs"] > 45.0


def test_batch_functions_are_learned_from_the_time_of_mixed_calls(tmp_path) -> None:
    rng = np.random.default_rng(4)
    costs = {f"k{n}": 1e-6 * (200.0 if n % 25 == 0 else 1.0) for n in range(100)}
    local = made(tmp_path, Work(costs), LeastWork(4))
    for batch in range(8):
        local.step(batch, table(rng, costs, 20_000))
    assert max(p["imbalance"] for p in local.progress[-3:]) < 1.05
    dealing = local.operator.policy.route(local.state.planner["memory"], 4)
    hashes = local.packed(pa.table({"i": [0, 1], "h": ["k0", "k1"]})).column("h").to_numpy()
    dear, cheap = dealing.costs(hashes.view(np.uint64))
    assert dear > 5 * cheap, "a costly key is told from a cheap one"


def test_what_was_learned_outlives_a_crash(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    local = made(tmp_path, Work(COSTS), LeastWork(4), per_row=True)
    local.step(0, table(rng, COSTS, 300))
    local.faults = Faults((Fault("in_task", 1),))
    rows = table(rng, COSTS, 300)
    with pytest.raises(SimulatedKill):
        local.step(1, rows)
    again = made(tmp_path, Work(COSTS), LeastWork(4), per_row=True)
    again.state = local.state
    assert len(again.step(1, rows)) == 300
    assert again.progress[-1]["imbalance"] < 1.1, "batch 1 was dealt by what batch 0 taught"


def test_another_policy_begins_anew_and_other_cores_keep_the_costs(tmp_path) -> None:
    rng = np.random.default_rng(6)
    local = made(tmp_path, Work(COSTS), LeastWork(), per_row=True)
    local.step(0, table(rng, COSTS, 300))
    state = local.state
    more = local.operator.adopt(state, cores=6)
    assert more.route.instances == 6
    assert more.planner == state.planner
    other = made(tmp_path / "o", Work(COSTS), LeastWork(decay=0.9)).operator
    assert other.adopt(state, cores=2).planner["memory"] == {}
    assert local.operator.adopt(state, cores=2) is state
    assert local.operator.output_watermark_us(state) is None


def test_an_empty_batch_is_fine(tmp_path: Path) -> None:
    local = made(tmp_path, Work(COSTS), LeastWork(2))
    empty = table(np.random.default_rng(0), COSTS, 0)
    assert local.step(0, empty) == []
    assert local.step(1, empty) == []
    assert local.progress[-1]["imbalance"] == 1.0


def test_real_time_is_measured(tmp_path: Path) -> None:
    def fn(row):
        ends = time.perf_counter() + (0.004 if row["h"] == "k0" else 0.0)
        while time.perf_counter() < ends:
            pass
        return row

    local = LocalMap(
        str(tmp_path), fn, SCHEMA, LeastWork(2), columns=["i", "h"], key="h", per_row=True
    )
    local.step(0, table(np.random.default_rng(7), COSTS, 200))
    heaviest = local.progress[-1]["balance"]["costliest"][0]
    assert heaviest["costMs"] >= 4.0
