"""Streams of sets: sizes, distinct items, the order of time, and the seed."""

import numpy as np

from skewless.lab.workloads.sets import SetStreams


def test_sets_are_distinct_in_time_order_and_repeatable() -> None:
    streams = SetStreams(rows_per_s=20, seconds=50, items=30, exponent=1.0)
    left, right = streams.tables()
    assert left.num_rows == right.num_rows == 1_000
    for side in (left, right):
        sets = side.column("items").to_pylist()
        assert all(len(set(s)) == len(s) >= 1 for s in sets)
        assert 3.5 < np.mean([len(s) for s in sets]) <= 5
        assert {i for s in sets for i in s} <= set(range(30))
        times = side.column("ts").to_pylist()
        assert times == sorted(times)
    assert streams.tables()[0].equals(left)
    assert not left.column("items").equals(right.column("items"))
