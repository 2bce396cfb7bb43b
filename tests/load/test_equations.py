"""The papers' equations on their worked examples, and what they say at the edges."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from skewless.load.benefit import latency_benefit, migration_impact, resource_benefit
from skewless.load.imbalance import falls, imbalance, overload
from skewless.load.queueing import (
    idle_probability,
    occupancy_probability,
    queue_length,
    sojourn,
    sojourn_in_window,
)
from skewless.load.rates import input_rates, trimmed_mean
from skewless.load.resources import compute, memory, per_instance, resources

# Fig. 4: stored S and queued R of p0..p3; j0 = {p0, p1}, j1 = {p2, p3}.
STORED = np.array([4.0, 4.0, 2.0, 1.0])
QUEUED = np.array([3.0, 4.0, 2.0, 3.0])
OWNERS = np.array([0, 0, 1, 1])
E, MU = np.array([80.0]), np.array([100.0])

LOADS = arrays.arrays(np.float64, st.integers(1, 12), elements=st.floats(0, 1e6))


def test_the_worked_example_of_the_resource_model() -> None:
    assert per_instance(memory(STORED, QUEUED), OWNERS, 2).tolist() == [15, 8]
    assert per_instance(compute(STORED, QUEUED), OWNERS, 2).tolist() == [28, 7]
    loads = per_instance(resources(STORED, QUEUED, gamma=0.5), OWNERS, 2)
    assert loads.tolist() == [21.5, 7.5]
    assert imbalance(loads) == pytest.approx(0.4828, abs=5e-5)


def test_the_printed_example_leaves_gamma_out_and_has_the_same_imbalance() -> None:
    assert imbalance(np.array([43.0, 15.0])) == imbalance(np.array([21.5, 7.5]))


@pytest.mark.parametrize(
    ("name", "loads", "degree", "above"),
    [
        ("even", [5, 5, 5], 0.0, 0.0),
        ("nothing at all", [0, 0], 0.0, 0.0),
        ("one does everything", [12, 0, 0], 2.0, 2.0),
        ("one does nothing", [3, 3, 0], 1.0, 0.5),
        ("alone", [7], 0.0, 0.0),
    ],
)
def test_the_imbalance_degree(name: str, loads: list[float], degree: float, above: float) -> None:
    assert imbalance(np.array(loads, float)) == pytest.approx(degree)
    assert overload(np.array(loads, float)) == pytest.approx(above)


@pytest.mark.parametrize(
    ("name", "before", "after", "better"),
    [
        ("the straggler is relieved", [5, 1], [3, 3], True),
        ("one of two stragglers is relieved", [5, 5, 1], [5, 3, 3], True),
        ("names change, loads do not", [5, 1], [1, 5], False),
        ("nothing changes", [5, 1], [5, 1], False),
        ("the other one is the straggler now", [5, 1], [0, 6], False),
        ("only rounding", [0.1 + 0.2, 1], [0.3, 1], False),
    ],
)
def test_loads_fall_from_the_heaviest_down(
    name: str, before: list[float], after: list[float], better: bool
) -> None:
    assert falls(np.array(before, float), np.array(after, float)) is better


@given(loads=LOADS)
def test_loads_do_not_fall_below_themselves(loads: np.ndarray) -> None:
    assert not falls(loads, np.random.default_rng(1).permutation(loads))


def test_input_rates_add_up_over_the_dispatchers() -> None:
    assert input_rates(np.array([[10.0, 0.0], [5.0, 7.0]])).tolist() == [15, 7]


@pytest.mark.parametrize(
    ("name", "samples", "mean"),
    [
        ("one sample", [4], 4),
        ("two samples are both kept", [4, 8], 6),
        ("the extremes go, and so does their share of the divisor", [0, 10, 20, 1_000], 15),
        ("of equal extremes one goes", [1, 1, 5, 9, 9], 5),
    ],
)
def test_the_trimmed_mean(name: str, samples: list[float], mean: float) -> None:
    assert trimmed_mean(np.array(samples, float)[:, None]).tolist() == [mean]


def test_a_mean_of_no_samples_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one"):
        trimmed_mean(np.zeros((0, 2)))


def test_the_worked_example_of_the_queue() -> None:
    assert queue_length(E, MU).tolist() == [4]
    assert sojourn(E, MU).tolist() == [0.05]
    assert sojourn_in_window(memory=800.0 * E / 80, service=MU, window=10.0).tolist() == [0.05]


def test_the_occupancies_are_a_distribution_with_the_queue_length_as_mean() -> None:
    rows = range(400)
    chances = [float(occupancy_probability(E, MU, n)[0]) for n in rows]
    assert chances[0] == pytest.approx(float(idle_probability(E, MU)[0]))
    assert sum(chances) == pytest.approx(1)  # eq. 17 and 18
    assert sum(n * p for n, p in zip(rows, chances, strict=True)) == pytest.approx(4)  # eq. 16


def test_a_queue_that_grows_for_ever_has_an_infinite_sojourn() -> None:
    assert np.isinf(sojourn(np.array([100.0, 120.0]), np.array([100.0, 100.0]))).all()


def test_what_moves_counts_twice() -> None:
    high, low, moved = 21.5, 7.5, np.array([4.0])
    gap_before, gap_after = high - low, (high - moved) - (low + moved)
    assert resource_benefit(moved).tolist() == (gap_before - gap_after).tolist()  # eq. 22


def test_the_latency_benefit_is_that_of_the_closed_form() -> None:
    high, low, moved, mu = 80.0, 20.0, 30.0, 100.0
    one = np.ones(1)
    got = latency_benefit(high * one, low * one, moved * one, mu * one, mu * one)
    expected = moved / ((mu - high) * (mu - high + moved)) - moved / (
        (mu - low) * (mu - low - moved)
    )  # eq. 24 with μ' = μ
    assert got.tolist() == pytest.approx([expected])


def test_the_impact_is_per_row_moved() -> None:
    impact = migration_impact(np.array([8.0, 8.0]), np.zeros(2), np.array([4.0, 0.0]))
    assert impact.tolist() == [2, 8]
