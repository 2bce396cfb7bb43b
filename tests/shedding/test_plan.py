"""What a task may do follows from its rows, and the best cells come first within the budget."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skewless.shedding.plan import LEAST_PROBING, Costs, ProbePlan
from skewless.shedding.windows import BasicWindows

COSTS = Costs(task=5.0, row=0.01, comparison=0.001, match=0.002, batch=100.0, batch_row=0.001)
PLAN = ProbePlan(
    windows=BasicWindows((-20, -10, 0, 10, 20)),
    order=(3, 0, 2, 1),
    match_rates=(0.5, 0.0, 0.25, 1.0),
    value_edges=(),
    costs=COSTS,
    time_ms=1_000.0,
    parallel=(1.0, 0.5),
    row_shares=(0.75, 0.25),
    sample=0.1,
    batch=3,
)


def test_the_time_of_a_task_is_what_the_batch_leaves() -> None:
    # 3,000 rows here are 4,000 in the batch: 100 + 4 ms around the tasks.
    assert PLAN.allowance_ms(0, 3_000) == pytest.approx(896.0)
    assert PLAN.budget_ms(0, 3_000, 1.0) == pytest.approx(896.0 - 5.0 - 30.0)
    # A share of a quarter may be out of date: there are two instances, so 2,000 rows are likely.
    assert PLAN.allowance_ms(1, 1_000) == pytest.approx(449.0), "half a core"


def test_some_time_is_always_left_for_probing() -> None:
    rows = 10**7
    assert PLAN.budget_ms(0, rows, 1.0) == pytest.approx(LEAST_PROBING * 1_000.0)


def test_nothing_is_shed_before_anything_is_known() -> None:
    unknown = replace(PLAN, time_ms=None)
    assert unknown.budget_ms(0, 10**9, 1.0) is None
    assert unknown.select(None, np.full(4, 1e9)).is_everything


def test_the_best_cells_come_first_and_the_last_in_part() -> None:
    counts = np.array([1_000.0, 1_000.0, 1_000.0, 1_000.0])
    # A comparison costs 2, 1, 1.5 and 3 µs with its matches: 7.5 ms in all.
    chosen = PLAN.select(4.5, counts)
    assert chosen.fraction == pytest.approx(0.6)
    assert chosen.chance == pytest.approx(0.06)
    # 0.45 ms are for rows probed in full; 4.3 ms for each of the others: 3, and 1.3 of 2.
    assert chosen.kept.tolist() == [False, False, False, True]
    assert chosen.marginal == 0


@given(
    counts=st.lists(st.integers(0, 10**6), min_size=4, max_size=4),
    budget=st.floats(0.01, 5_000.0),
)
def test_what_is_selected_fits_the_budget(counts: list[int], budget: float) -> None:
    offered = np.array(counts, np.float64)
    chosen = PLAN.select(budget, offered)
    work = offered * PLAN.cell_ms
    if work.sum() <= budget:
        assert chosen.is_everything
        return
    rest = 1 - chosen.chance
    spent = chosen.chance * work.sum() + rest * work[chosen.kept].sum()
    assert spent <= budget * (1 + 1e-9)
    assert chosen.marginal is not None
    assert spent + rest * work[chosen.marginal] >= budget * (1 - 1e-9), "no time is wasted"


def test_rows_are_kept_unless_they_are_known_to_be_too_many() -> None:
    assert PLAN.keep(0, 10**9) == 1.0
    few = replace(PLAN, most_rows=1_000.0)
    assert few.keep(0, 700) == 1.0
    assert few.keep(0, 1_500) == pytest.approx(0.5)


def test_dropping_at_random_keeps_the_root_of_what_there_is_time_for() -> None:
    drop = replace(PLAN, square_ms=1e-3)
    left = 896.0 - 5.0 - 30.0
    assert drop.keep(0, 3_000) == pytest.approx((left / 9_000.0) ** 0.5)
    assert drop.budget_ms(0, 3_000, 1.0) is None, "what is stored is probed in full"
