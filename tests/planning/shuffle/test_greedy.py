"""Greedy assignment: bounds against exhaustive search, fairness, determinism."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skewless.errors import SkewlessError
from skewless.planning.shuffle.greedy import assign_batch, assign_in_order, loads_after

costs = st.lists(st.integers(1, 40), min_size=1, max_size=7).map(lambda c: np.array(c, np.float64))


def makespan(rows, assigned, instances: int) -> float:
    return float(np.bincount(assigned, rows, instances).max())


def best_makespan(rows, instances: int) -> float:
    ways = product(range(instances), repeat=len(rows))
    return min(makespan(rows, np.array(way), instances) for way in ways)


@given(costs, st.integers(1, 4))
def test_greedy_is_within_2_minus_1_over_k_of_the_best(rows, instances) -> None:
    """Theorem 4.2."""
    found = makespan(rows, assign_in_order(rows, np.zeros(instances)), instances)
    assert found <= (2 - 1 / instances) * best_makespan(rows, instances) + 1e-9


@given(costs, st.integers(1, 4), st.integers(0, 9))
def test_heaviest_first_is_within_4_thirds_of_the_best(rows, instances, offset) -> None:
    found = makespan(rows, assign_batch(rows, instances, offset=offset), instances)
    assert found <= (4 / 3 - 1 / (3 * instances)) * best_makespan(rows, instances) + 1e-9


def test_the_bound_of_theorem_4_2_is_reached() -> None:
    """k(k − 1) short tuples, then a long one (§IV-A)."""
    k, long = 4, 4.0
    rows = np.array([long / k] * (k * (k - 1)) + [long])
    assert makespan(rows, assign_in_order(rows, np.zeros(k)), k) == (2 - 1 / k) * long
    assert makespan(rows, assign_batch(rows, k), k) == long


@given(st.integers(0, 50), st.integers(1, 8), st.integers(0, 20), st.sampled_from([1.0, 3.5]))
def test_equal_costs_are_dealt_out_evenly(rows, instances, offset, cost) -> None:
    assigned = assign_batch(np.full(rows, cost), instances, offset=offset)
    counts = np.bincount(assigned, minlength=instances)
    assert counts.max() - counts.min() <= 1
    if rows:
        assert assigned[0] == offset % instances


@given(costs, st.integers(1, 5), st.integers(0, 9))
def test_the_heap_chooses_like_a_plain_search(rows, instances, offset) -> None:
    loads = np.zeros(instances)
    expected = np.empty(len(rows), np.int64)
    order = (np.arange(instances) + offset) % instances
    for row in np.argsort(-rows, kind="stable"):
        chosen = order[np.argmin(loads[order])]
        expected[row] = chosen
        loads[chosen] += rows[row]
    assert assign_batch(rows, instances, offset=offset).tolist() == expected.tolist()


def test_what_remains_of_every_partition_goes_elsewhere() -> None:
    """Eight partitions with nine equal rows for eight instances: nobody gets all the ninths."""
    given = np.concatenate([assign_batch(np.ones(9), 8, offset=p) for p in range(8)])
    assert np.bincount(given).tolist() == [9] * 8


def test_loads_at_the_start_are_made_up_for() -> None:
    rows = np.array([1.0, 1.0, 1.0])
    start = np.array([3.0, 0.0])
    assigned = assign_batch(rows, 2, start)
    assert assigned.tolist() == [1, 1, 1]
    assert loads_after(rows, assigned, start).tolist() == [3.0, 3.0]


def test_a_slow_instance_gets_less() -> None:
    rows = np.ones(300)
    slow = np.array([2.0, 1.0])
    assigned = assign_in_order(rows, np.zeros(2), slowness=slow, heaviest_first=True)
    assert np.bincount(assigned).tolist() == [100, 200]


def test_a_row_may_cost_differently_on_every_instance() -> None:
    """Listing III.2: the least loaded is chosen first, its own estimate is then added."""
    by_instance = np.array([[5.0, 5.0, 5.0], [1.0, 1.0, 1.0]])
    assert assign_in_order(by_instance, np.zeros(2)).tolist() == [0, 1, 1]


@pytest.mark.parametrize(
    "call",
    [
        lambda: assign_batch(np.ones(3), 0),
        lambda: assign_batch(np.ones(3), 2, np.zeros(3)),
        lambda: assign_in_order(np.ones((3, 2)), np.zeros(2)),
    ],
)
def test_wrong_arguments_are_named(call) -> None:
    with pytest.raises(SkewlessError, match=r"instances|start_loads|costs"):
        call()
