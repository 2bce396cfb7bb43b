"""The imbalance degree, and when one plan is better than another."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from skewless.load.imbalance import falls, imbalance, overload

LOADS = arrays.arrays(np.float64, st.integers(1, 12), elements=st.floats(0, 1e6))


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
