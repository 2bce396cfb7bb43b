"""Windows of events, against the definition."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from skewless.kernels.windows import last_ends, pane_us, windows_of

SIZES = st.tuples(st.integers(1, 30), st.integers(1, 30)).map(lambda p: (max(p), min(p)))
TIMES = st.lists(st.integers(-100, 100), max_size=30)


@given(times=TIMES, sizes=SIZES)
def test_every_window_that_holds_an_event(times: list[int], sizes: tuple[int, int]) -> None:
    size, slide = sizes
    rows, ends = windows_of(np.array(times, np.int64), size, slide)
    found = sorted(zip(rows.tolist(), ends.tolist(), strict=True))
    assert found == sorted(
        (row, start + size)
        for row, time in enumerate(times)
        for start in range(time - size + 1, time + 1)
        if start % slide == 0
    )


@given(times=TIMES, sizes=SIZES)
def test_events_of_a_pane_are_in_the_same_windows(times, sizes) -> None:
    size, slide = sizes
    pane = pane_us(size, slide)
    moments = np.array(times, np.int64)
    ends = windows_of(moments, size, slide)
    of_panes = windows_of(moments - np.mod(moments, pane), size, slide)
    assert [a.tolist() for a in ends] == [a.tolist() for a in of_panes]


@given(times=TIMES, sizes=SIZES)
def test_the_last_end_is_the_latest(times, sizes) -> None:
    size, slide = sizes
    moments = np.array(times, np.int64)
    rows, ends = windows_of(moments, size, slide)
    latest = [max(ends[rows == row].tolist()) for row in range(len(times))]
    assert last_ends(moments, size, slide).tolist() == latest
