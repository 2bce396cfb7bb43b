"""Algorithm 4: the comparisons stay the same, and the better window has as many as it can take."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skewless.errors import SkewlessError
from skewless.shedding.direction import directed

fractions = st.floats(0.0, 1.0)
lengths = st.floats(0.1, 1e6)
pairs = st.tuples(lengths, lengths)
yields = st.tuples(st.floats(0.0, 1.0), st.floats(0.0, 1.0))


@given(fractions, pairs, yields)
def test_the_number_of_comparisons_stays(
    fraction: float, windows: tuple[float, float], productivity: tuple[float, float]
) -> None:
    found = directed(fraction, windows, productivity)
    assert all(0 <= r <= 1 for r in found)
    used = sum(r * w for r, w in zip(found, windows, strict=True))
    assert used == pytest.approx(fraction * sum(windows), rel=1e-9, abs=1e-9)


@given(fractions, pairs, yields)
def test_the_other_window_is_probed_only_when_the_better_one_is_used_up(
    fraction: float, windows: tuple[float, float], productivity: tuple[float, float]
) -> None:
    first, second = directed(fraction, windows, productivity)
    if productivity[0] == productivity[1]:
        assert first == second == fraction
    elif productivity[0] > productivity[1]:
        assert first == 1 or second == pytest.approx(0, abs=1e-9)
    else:
        assert second == 1 or first == pytest.approx(0, abs=1e-9)


@given(fractions, pairs, yields)
def test_both_sides_are_treated_alike(
    fraction: float, windows: tuple[float, float], productivity: tuple[float, float]
) -> None:
    first, second = directed(fraction, windows, productivity)
    assert directed(fraction, windows[::-1], productivity[::-1]) == (second, first)


@given(fractions, lengths, yields)
def test_a_window_of_no_length_leaves_all_to_the_other(
    fraction: float, length: float, productivity: tuple[float, float]
) -> None:
    assert directed(fraction, (0.0, length), productivity) == pytest.approx((1.0, fraction))


def test_without_shedding_both_are_probed_whole() -> None:
    assert directed(1.0, (20.0, 5.0), (0.1, 0.2)) == (1.0, 1.0)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("fraction", (1.5, (1.0, 1.0), (0.0, 0.0))),
        ("windows", (0.5, (1.0, -1.0), (0.0, 0.0))),
        ("windows", (0.5, (1.0,), (0.0, 0.0))),
        ("productivity", (0.5, (1.0, 1.0), (0.0, float("nan")))),
    ],
)
def test_wrong_arguments_are_named(name: str, arguments: tuple) -> None:  # type: ignore[type-arg]
    with pytest.raises(SkewlessError, match=f"^{name}: "):
        directed(*arguments)
