"""Bad rows: which rows are, and what the message shows of the first."""

import numpy as np
import pyarrow as pa
import pytest

from skewless.engine.badrows import bad_time, times_and_bad
from skewless.kernels.intervals import MAX_TIME

TIME = pa.timestamp("us", "UTC")


@pytest.mark.parametrize(
    ("times", "bad"),
    [
        ([], None),
        ([0, -5, MAX_TIME - 1, 1 - MAX_TIME], None),
        ([0, None], [False, True]),
        ([MAX_TIME, 0, -MAX_TIME], [True, False, True]),
        ([None, MAX_TIME, 7], [True, True, False]),
    ],
)
def test_null_and_far_times_are_bad(times, bad) -> None:
    found, mask = times_and_bad(pa.array(times, pa.int64()).cast(TIME))
    assert (None if mask is None else mask.tolist()) == bad
    good = [t for i, t in enumerate(times) if bad is None or not bad[i]]
    assert [int(t) for i, t in enumerate(found) if bad is None or not bad[i]] == good


def test_the_message_shows_the_first_bad_row_and_how_many_there_are() -> None:
    rows = pa.record_batch({"k": ["a", "b", "c"], "v": [1, 2, None]})
    said = str(bad_time("the left input", rows, np.array([False, True, True])))
    assert "the left input has a row" in said
    assert "{'k': 'b', 'v': 2} (such rows in this task: 2)" in said
    assert '.option("badRows", "drop")' in said


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (pa.scalar(None, TIME), "None"),
        (pa.scalar(2**62, TIME), f"{2**62} µs"),
        (pa.scalar(-(2**62), pa.timestamp("us")), f"{-(2**62)} µs"),
        (pa.scalar([2**62], pa.list_(TIME)), f"value out of range: {2**62}"),
        (pa.scalar(2**31 - 1, pa.date32()), "2147483647"),
        (pa.scalar("y" * 5_000), "… and 4,800 more"),
    ],
)
def test_values_that_python_cannot_hold_or_nobody_would_read(value, shown) -> None:
    column = pa.array([value])
    said = str(bad_time("the input", pa.record_batch({"v": column}), np.array([True])))
    assert shown in said
    assert len(said) < 600
