"""What batches have shown becomes the plan of the next one."""

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from skewless.shedding.account import Account
from skewless.shedding.memory import ProbingMemory
from skewless.shedding.plan import ProbePlan
from skewless.shedding.policy import RandomDrop, Shed, Shedding
from skewless.shedding.windows import BasicWindows

WINDOWS = BasicWindows((-20, -10, 0, 10, 20))
LIMIT_MS = 1_000.0


def account(rows: int = 1_000, **changed: Any) -> Account:
    """A task of 20 ms and 10 µs a row, 1 µs a comparison and 2 µs a match."""
    fields = {
        "rows": rows,
        "dropped": {"left": 0, "right": 0},
        "keep": 1.0,
        "offered": 40_000,
        "comparisons": 40_000,
        "matches": 10_000,
        "rest_ms": 20.0 + 0.01 * rows,
        "compare_ms": 40.0,
        "match_ms": 20.0,
    }
    return Account(**{**fields, **changed})


def learned(*accounts: Account, batches: int = 6, elapsed_ms: float = 300.0) -> ProbingMemory:
    memory = ProbingMemory.of(Shed(), WINDOWS).after(accounts, None, LIMIT_MS, cores=2)
    for _ in range(batches):
        memory = memory.after(accounts, elapsed_ms, LIMIT_MS, cores=2)
    return memory


def plan_of(memory: ProbingMemory, shedding: Shedding | None = None) -> ProbePlan:
    return memory.plan(
        shedding or Shed(), WINDOWS, instances=2, cores=2, limit_ms=LIMIT_MS, batch=7
    )


def test_costs_are_measured() -> None:
    costs = learned(account(), account(3_000)).costs
    whole = costs.task + 2_000 * costs.row + 40_000 * costs.comparison + 10_000 * costs.match
    assert whole == pytest.approx(100.0, rel=0.2)
    # The longer task takes 110 ms, so 190 ms are around it.
    assert costs.batch + 4_000 * costs.batch_row == pytest.approx(190.0, rel=0.2)


def test_a_comparison_costs_what_more_of_them_cost_more() -> None:
    """What does not grow with their number is no part of it: few of them cost hardly less."""
    few = account(comparisons=1_000, matches=100, compare_ms=31.0, match_ms=10.2)
    many = account(comparisons=101_000, matches=50_100, compare_ms=131.0, match_ms=110.2)
    costs = learned(few, many, batches=20).costs
    assert costs.comparison == pytest.approx(1e-3, rel=0.2)
    assert costs.match == pytest.approx(2e-3, rel=0.2)


def test_the_first_batch_is_slow_and_says_little() -> None:
    new = ProbingMemory.of(Shed(), WINDOWS)
    slow = new.after([account()], None, LIMIT_MS, cores=2)
    assert slow.costs == new.costs
    assert slow.margin == new.margin


def test_before_the_first_batch_nothing_is_shed() -> None:
    assert plan_of(ProbingMemory.of(Shed(), WINDOWS)).time_ms is None


def test_cells_are_ranked_by_what_a_millisecond_gives() -> None:
    cells = {
        "cell_comparisons": [1000.0, 1000.0, 1000.0, 1000.0],
        "cell_matches": [10.0, 500.0, 0.0, 100.0],
        "cell_values": [10.0, 500.0, 0.0, 100.0],
    }
    plan = plan_of(learned(account(**cells), account()))
    assert plan.order == (1, 3, 0, 2)
    assert plan.match_rates == pytest.approx((0.01, 0.5, 0.0, 0.1))


def test_where_all_cells_give_the_same_the_newest_come_first() -> None:
    same = [123.0, 456.0, 789.0, 42.0]
    cells = {"cell_comparisons": same, "cell_matches": same, "cell_values": same}
    assert plan_of(learned(account(**cells), account())).order == (2, 1, 3, 0)


def test_rows_that_are_worth_more_come_first() -> None:
    shedding = Shed(value="worth")
    memory = ProbingMemory.of(shedding, WINDOWS)
    assert memory.cells == 4 * len(WINDOWS)
    compared, worth = np.full(16, 100.0), np.repeat([1.0, 2.0, 5.0, 50.0], 4)
    seen = account(
        cell_comparisons=compared.tolist(),
        cell_matches=(compared / 2).tolist(),
        cell_values=worth.tolist(),
        values=list(range(100)),
    )
    memory = memory.after([seen, seen], 300.0, LIMIT_MS, cores=2)
    plan = plan_of(memory, shedding)
    assert plan.value_edges == pytest.approx((49.5, 79.5, 94.5), abs=1)
    assert [cell // 4 for cell in plan.order] == [3] * 4 + [2] * 4 + [1] * 4 + [0] * 4


def test_a_batch_that_takes_too_long_makes_the_next_less_ambitious_until_they_fit() -> None:
    memory = learned(account(), account())
    slower = memory.after([account(), account()], 1.25 * LIMIT_MS, LIMIT_MS, cores=2)
    assert slower.margin == pytest.approx(max(0.6, memory.margin / 1.25))
    for _ in range(30):
        slower = slower.after([account(), account()], 0.5 * LIMIT_MS, LIMIT_MS, cores=2)
    assert slower.margin == memory.margin


def test_rows_are_dropped_last() -> None:
    tasks = [account(fraction=0.3), account(fraction=0.3)]
    late = learned(*tasks).after(tasks, 2 * LIMIT_MS, LIMIT_MS, cores=2)
    assert late.most_rows is None, "there is probing left to shed"
    hardly = [replace(a, fraction=0.01) for a in tasks]
    late = late.after(hardly, 2 * LIMIT_MS, LIMIT_MS, cores=2)
    assert late.most_rows is None, "it is not the rows that take so long"
    crowd = [replace(a, rows=100_000, rest_ms=1_020.0) for a in hardly]
    late = late.after(crowd, 2 * LIMIT_MS, LIMIT_MS, cores=2)
    assert late.most_rows == pytest.approx(100_000.0), "half of the 200,000 rows"
    for _ in range(20):
        late = late.after(tasks, 0.5 * LIMIT_MS, LIMIT_MS, cores=2)
    assert late.most_rows is None, "all rows again"


def test_instances_get_time_by_their_work() -> None:
    assert plan_of(learned(account(), account(compare_ms=400.0))).parallel == (1.0, 1.0)
    crowd = [account(), account(), account(), account(compare_ms=180.0)]
    crowded = learned(*crowd).plan(
        Shed(), WINDOWS, instances=4, cores=2, limit_ms=LIMIT_MS, batch=1
    )
    *light, heavy = crowded.parallel
    assert light == pytest.approx([light[0]] * 3)
    assert 1.9 * light[0] < heavy < 1.0
    assert sum(crowded.parallel) == pytest.approx(2.0)


def test_another_number_of_instances_shares_equally() -> None:
    plan = learned(account(), account(3_000)).plan(
        Shed(), WINDOWS, instances=5, cores=5, limit_ms=LIMIT_MS, batch=1
    )
    assert plan.row_shares == (0.2,) * 5


def test_dropping_at_random_knows_the_work_of_all_rows() -> None:
    half = account(keep=0.5, compare_ms=10.0, match_ms=15.0)
    memory = learned(half, half)
    plan = plan_of(memory, RandomDrop())
    # 25 ms with a quarter of the pairs: 100 ms for all of 1,000 rows.
    assert plan.square_ms == pytest.approx(100.0 / 1_000**2)


def test_memory_survives_a_commit() -> None:
    memory = learned(account(values=[1.0, 2.0]), account())
    again = ProbingMemory.from_json(json.loads(json.dumps(memory.to_json())))
    assert plan_of(again) == plan_of(memory)
    told = account(cell_matches=[1.0, 2.0])
    assert Account.from_json(json.loads(json.dumps(told.to_json()))) == told
