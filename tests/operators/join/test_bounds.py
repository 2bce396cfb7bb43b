"""What the time condition lets a join match, drop and forget."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skewless.errors import SkewlessError
from skewless.kernels.intervals import UNBOUNDED
from skewless.operators.join.bounds import LEFT, RIGHT, Bounds, late_until_us, merged_max
from skewless.state.watermark import Delays

Bound = int | None


def delays(left: Bound = 0, right: Bound = 0) -> Delays:
    return Delays({LEFT: left, RIGHT: right})


@pytest.mark.parametrize(
    ("bounds", "delays", "left", "right"),
    [
        # left: W − upper, right: W + lower
        (Bounds(-10, 20), delays(), 1_000 - 20, 1_000 - 10),
        (Bounds(5, 20), delays(), 1_000 - 20, 1_000 + 5),
        (Bounds(-20, -5), delays(), 1_000 + 5, 1_000 - 20),
        (Bounds(0, 0), delays(), 1_000, 1_000),
        # only where the bound is there
        (Bounds(None, 20), delays(), 980, None),
        (Bounds(-10, None), delays(), None, 990),
        (Bounds(None, None), delays(), None, None),
        # and only if the other side has a watermark
        (Bounds(-10, 20), delays(left=None), 980, None),
        (Bounds(-10, 20), delays(right=None), None, 990),
        (Bounds(-10, 20), delays(None, None), None, None),
        # the delays are in W already
        (Bounds(-10, 20), delays(500, 700), 980, 990),
    ],
)
def test_what_is_kept_at_a_watermark_of_1000(
    bounds: Bounds, delays: Delays, left: Bound, right: Bound
) -> None:
    assert bounds.keep_from_us(1_000, delays) == {LEFT: left, RIGHT: right}
    assert bounds.keep_from_us(None, delays) == {LEFT: None, RIGHT: None}


ENDS = st.none() | st.integers(-20, 20)
LATENESS = st.none() | st.just(0)


@given(
    lower=ENDS,
    upper=ENDS,
    left_delay=LATENESS,
    right_delay=LATENESS,
    watermark=st.integers(-5, 5),
    left=st.integers(-60, 60),
    right=st.integers(-60, 60),
)
def test_what_is_forgotten_can_match_nothing_that_may_still_come(
    lower: Bound,
    upper: Bound,
    left_delay: Bound,
    right_delay: Bound,
    watermark: int,
    left: int,
    right: int,
) -> None:
    if lower is not None and upper is not None and lower > upper:
        lower, upper = upper, lower
    bounds, rule = Bounds(lower, upper), delays(left_delay, right_delay)
    away = right - left
    joined = (lower is None or away >= lower) and (upper is None or away <= upper)
    keep = bounds.keep_from_us(watermark, rule)
    for side, stored, coming_side, coming in (
        (LEFT, left, RIGHT, right),
        (RIGHT, right, LEFT, left),
    ):
        late_until = late_until_us(coming_side, watermark, rule)
        may_come = late_until is None or coming > late_until
        bound = keep[side]
        if joined and may_come and bound is not None:
            assert stored >= bound


@pytest.mark.parametrize(
    ("side", "watermark", "delays", "late_until"),
    [
        (LEFT, 100, delays(), 100),
        (RIGHT, 100, delays(), 100),
        (LEFT, None, delays(), None),
        (LEFT, 100, delays(left=None), None),
        (RIGHT, 100, delays(left=None), 100),
        (RIGHT, 100, delays(right=None), None),
    ],
)
def test_a_side_without_a_delay_is_never_late(
    side: str, watermark: Bound, delays: Delays, late_until: Bound
) -> None:
    assert late_until_us(side, watermark, delays) == late_until


@pytest.mark.parametrize(
    ("bounds", "left", "right"),
    [
        (Bounds(-10, 20), (-10, 20), (-20, 10)),
        (Bounds(5, 20), (5, 20), (-20, -5)),
        (Bounds(None, 20), (-UNBOUNDED, 20), (-20, UNBOUNDED)),
        (Bounds(None, None), (-UNBOUNDED, UNBOUNDED), (-UNBOUNDED, UNBOUNDED)),
    ],
)
def test_the_bounds_as_either_side_sees_them(
    bounds: Bounds, left: tuple[int, int], right: tuple[int, int]
) -> None:
    assert bounds.around(LEFT) == left
    assert bounds.around(RIGHT) == right


def test_reversed_bounds_are_refused() -> None:
    with pytest.raises(SkewlessError, match=r"within: the lower bound \(5 microseconds\) is above"):
        Bounds(5, 4)
    Bounds(5, 5)


@pytest.mark.parametrize(
    ("bounds", "delays", "window"),
    [
        (Bounds(-10, 10), delays(), 20),
        (Bounds(-10, 10), delays(3, 7), 27),
        (Bounds(5, 20), delays(), 20),
        (Bounds(-20, -5), delays(), 20),
        (Bounds(0, 0), delays(), 0),
        (Bounds(None, 10), delays(), None),
        (Bounds(-10, None), delays(), None),
        (Bounds(-10, 10), delays(left=None), None),
    ],
)
def test_how_long_a_row_stays(bounds: Bounds, delays: Delays, window: Bound) -> None:
    assert bounds.window_us(delays) == window


@pytest.mark.parametrize(
    ("seen", "more", "merged"),
    [
        ((None, None), (None, None), (None, None)),
        ((1, None), (None, 2), (1, 2)),
        ((5, -3), (4, -2), (5, -2)),
        ((0, -1), (None, None), (0, -1)),
    ],
)
def test_the_later_of_two_times(
    seen: tuple[Bound, Bound], more: tuple[Bound, Bound], merged: tuple[Bound, Bound]
) -> None:
    def by_side(times: tuple[Bound, Bound]) -> dict[str, Bound]:
        return {LEFT: times[0], RIGHT: times[1]}

    assert merged_max(by_side(seen), by_side(more)) == by_side(merged)
