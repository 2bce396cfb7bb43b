"""Algorithm 1: the fraction falls with what was missed, grows by the boost, and never dies."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skewless.errors import SkewlessError
from skewless.shedding.rate import LEAST_FRACTION, adapted

fractions = st.floats(LEAST_FRACTION, 1.0)
rows = st.integers(0, 10**9)
boosts = st.floats(1.0, 4.0)


@given(fractions, rows, rows, boosts)
def test_the_fraction_is_always_usable(
    fraction: float, fetched: int, arrived: int, boost: float
) -> None:
    assert LEAST_FRACTION <= adapted(fraction, fetched, arrived, boost) <= 1.0


@given(fractions, rows, st.integers(1, 10**9), boosts)
def test_it_falls_exactly_when_rows_were_missed(
    fraction: float, fetched: int, missed: int, boost: float
) -> None:
    assert adapted(fraction, fetched, fetched + missed, boost) <= fraction
    assert adapted(fraction, fetched + missed, fetched, boost) >= fraction


@given(fractions, rows, rows, rows)
def test_more_fetched_is_never_less_probed(
    fraction: float, first: int, second: int, arrived: int
) -> None:
    less, more = sorted((first, second))
    assert adapted(fraction, less, arrived) <= adapted(fraction, more, arrived)


@given(st.floats(0.01, 1.0))
def test_it_settles_where_the_join_just_keeps_up(capacity: float) -> None:
    """A join that keeps up with a fraction `capacity` is never more than a boost above it."""
    fraction, course = 1.0, []
    for _ in range(60):
        fetched = min(1_000.0, 1_000.0 * capacity / fraction)
        fraction = adapted(fraction, fetched, 1_000.0)
        course.append(fraction)
    assert all(0.999 * capacity <= f <= 1.2001 * capacity for f in course)


def test_a_stall_can_be_recovered_from() -> None:
    fraction = adapted(0.5, fetched=0, arrived=100)
    assert fraction == LEAST_FRACTION
    assert adapted(fraction, fetched=0, arrived=0) > fraction


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("fraction", (0.0, 1, 1)),
        ("fraction", (1.1, 1, 1)),
        ("fraction", (float("nan"), 1, 1)),
        ("fetched", (0.5, -1, 1)),
        ("arrived", (0.5, 1, float("inf"))),
        ("boost", (0.5, 1, 1, 0.9)),
    ],
)
def test_wrong_arguments_are_named(name: str, arguments: tuple[float, ...]) -> None:
    with pytest.raises(SkewlessError, match=f"^{name}: "):
        adapted(*arguments)
