"""Basic windows cover the bounds of a join, each in one direction."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skewless.errors import SkewlessError
from skewless.shedding.windows import FAR_US, BasicWindows

BOUND = st.integers(-(10**9), 10**9)


@given(bounds=st.tuples(BOUND, BOUND), count=st.integers(1, 50))
def test_every_pair_within_the_bounds_has_one_window(bounds: tuple[int, int], count: int) -> None:
    lower, upper = min(bounds), max(bounds)
    windows = BasicWindows.over(lower, upper, count)
    assert (windows.edges_us[0], windows.edges_us[-1]) == (lower, upper + 1)
    # The ends and 0 may cut a window in two.
    assert 1 <= len(windows) <= count + 2
    apart = np.array([lower, upper, (lower + upper) // 2, *windows.edges_us[:-1]])
    places = windows.of(apart)
    assert (windows.edges[places] <= apart).all()
    assert (apart < windows.edges[places + 1]).all()


@given(bounds=st.tuples(BOUND, BOUND), count=st.integers(1, 50))
def test_no_window_goes_in_both_directions(bounds: tuple[int, int], count: int) -> None:
    windows = BasicWindows.over(min(bounds), max(bounds), count)
    for begin, end, of_left in zip(
        windows.edges[:-1], windows.edges[1:], windows.of_left, strict=True
    ):
        assert begin >= 0 if of_left else end <= 0 or begin == min(bounds) >= 0


def test_windows_of_an_open_end_become_longer() -> None:
    windows = BasicWindows.over(None, 5_000_000, 20)
    assert windows.edges_us[0] == -FAR_US
    assert windows.edges_us[-4:] == (1_000_000, 2_000_000, 4_000_000, 5_000_001)
    assert windows.lengths.tolist() == [1.0] * len(windows)
    assert windows.of(np.array([-(2**61), 0, 5_000_000])).tolist() == [
        0,
        len(windows) - 4,
        len(windows) - 1,
    ]


def test_the_newest_are_those_whose_rows_are_near_in_time() -> None:
    windows = BasicWindows((-20, -10, 0, 10, 20))
    assert windows.newest_first().tolist() == [2, 1, 3, 0]


def test_edges_must_rise() -> None:
    with pytest.raises(SkewlessError, match="edges_us"):
        BasicWindows((1, 1))


def test_windows_survive_a_commit() -> None:
    windows = BasicWindows.over(-7, 11, 3)
    assert BasicWindows.from_json(windows.to_json()) == windows
