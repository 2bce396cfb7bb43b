"""LLFD: the paper's example, its bound, and what it does when nothing fits."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skewless.planning.keys.descending import descending
from skewless.planning.keys.llfd import llfd, pack
from skewless.planning.keys.plan import validate_keys
from skewless.planning.keys.reach import reach
from skewless.planning.keys.units import Units, units_of
from tests.planning.keys.cases import perfect, placed, snapshot, worked_example, zipf


def test_the_papers_example() -> None:
    example = worked_example()
    plan = llfd(example, 0.0)
    assert placed(plan, example) == [[2, 4, 5], [1, 3, 6]]
    assert plan.table_size == 4
    assert plan.skewness_after == 0
    validate_keys(plan, example, table_limit=4)


@given(
    instances=st.integers(2, 12), seed=st.integers(0, 10**6), theta_max=st.sampled_from([0, 0.1])
)
def test_the_bound_of_theorem_1(instances: int, seed: int, theta_max: float) -> None:
    possible = perfect(instances, np.random.default_rng(seed))
    plan = llfd(possible, theta_max)
    validate_keys(plan, possible)
    loads = possible.loads_of(
        pack(
            units_of(possible), possible.standing, descending(possible.cost), theta_max
        ).instances()
    )
    bound = max(theta_max, (1 - 1 / instances) / 3)
    assert loads.max() <= (1 + bound) * 60 + 1e-6


@pytest.mark.parametrize("theta_max", [0.02, 0.08, 0.3])
def test_many_keys_are_brought_below_the_ceiling(theta_max: float) -> None:
    skewed = zipf(20_000, 10)
    plan = llfd(skewed, theta_max)
    assert plan.skewness_before > 0.3
    assert plan.skewness_after <= theta_max + 1e-9


@pytest.mark.parametrize(
    ("name", "cost", "home", "rest", "after"),
    [
        ("even already", [5, 5], [0, 1], [0, 0], [5, 5]),
        ("one moves", [5, 5], [0, 0], [0, 0], [5, 5]),
        ("a giant is left alone", [9, 1, 1], [0, 0, 1], [0, 0, 0], [9, 1, 1]),
        ("two giants part", [9, 9, 1, 1], [0, 0, 0, 0], [0, 0, 0, 0], [9, 9, 1, 1]),
        ("what cannot move is avoided", [2, 2, 2, 2], [0, 0, 0, 0], [8, 0, 0], [8, 4, 4]),
        ("nothing but what cannot move", [], [], [3, 1], [3, 1]),
    ],
)
def test_cases(
    name: str, cost: list[float], home: list[int], rest: list[float], after: list[float]
) -> None:
    of = snapshot(cost, home, rest=rest)
    plan = llfd(of, 0.0)
    validate_keys(plan, of)
    at = pack(units_of(of), of.standing, descending(of.cost), 0.0).instances()
    assert sorted(of.loads_of(at).tolist(), reverse=True) == sorted(after, reverse=True), name


def test_the_second_plan_moves_nothing() -> None:
    skewed = zipf(5_000, 8)
    first = llfd(skewed, 0.05)
    assert not first.does_nothing
    settled = snapshot(
        skewed.cost.tolist(),
        skewed.home.tolist(),
        pack(units_of(skewed), skewed.home, descending(skewed.cost), 0.05).instances().tolist(),
        rest=[0.0] * 8,
    )
    assert llfd(settled, 0.05).does_nothing


def test_keys_that_stand_for_several_are_packed_like_them() -> None:
    one_by_one = snapshot([4.0] * 6 + [1.0] * 12, home=[0] * 18, rest=[0, 0, 0])
    home = np.zeros(2, np.int64)
    both = np.array([4.0, 1.0])
    records = Units(both, both, home, home, home, np.array([6, 12]), np.zeros(3))
    loads = pack(records, home, records.by_cost, 0.0).loads(records)
    single = units_of(one_by_one)
    assert loads.tolist() == pack(single, single.home, single.by_cost, 0.0).loads(single).tolist()
    assert loads.tolist() == [12, 12, 12]


def test_a_level_that_leaves_out_what_nobody_can_relieve() -> None:
    found = reach(snapshot([30, 2, 2, 1, 1], home=[0, 0, 0, 1, 2], rest=[1, 1, 1, 1]))
    assert found.least.tolist() == [31, 1, 1, 1]
    assert found.level == pytest.approx(3)
    assert found.deviations(np.array([31.0, 3, 3, 3])).max() == 0
    assert found.deviations(np.array([35.0, 3, 3, 0])) == pytest.approx([4 / 3, 0, 0, 1])


@given(st.lists(st.floats(0, 1e300), max_size=50), st.integers(0, 5_000))
def test_descending_is_a_stable_sort(values: list[float], zeros: int) -> None:
    padded = np.array(values + [0.0] * zeros)
    assert descending(padded).tolist() == np.argsort(-padded, kind="stable").tolist()
