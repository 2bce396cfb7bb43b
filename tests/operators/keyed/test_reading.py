"""Stored rows are read in portions that never part a key."""

from itertools import pairwise

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from skewless.kernels.runs import SortedRun
from skewless.operators.keyed.reading import portions, within

hashes = st.lists(st.sampled_from([0, 1, 2, 2**63, 2**64 - 2, 2**64 - 1]), max_size=30)


@given(parts=st.lists(hashes, max_size=3), at_most=st.integers(1, 10))
def test_portions_hold_every_hash_once(parts: list[list[int]], at_most: int) -> None:
    arrays = [np.array(part, np.uint64) for part in parts]
    ranges = list(portions(arrays, at_most))
    assert ranges[0][0] == 0
    assert ranges[-1][1] == 2**64 - 1
    for (_, end), (begin, _) in pairwise(ranges):
        assert begin == end + 1
    every = [h for part in parts for h in part]
    for low, high in ranges:
        inside = [h for h in every if low <= h <= high]
        # Larger only by the rows of one key that begins within it.
        largest = max((inside.count(h) for h in inside), default=0)
        assert len(inside) < at_most + max(largest, 1)


def test_the_rows_of_a_range_are_not_copied() -> None:
    found = np.array([1, 1, 5, 2**64 - 1], np.uint64)
    run = SortedRun(found, np.arange(4), pa.record_batch({"v": [0, 1, 2, 3]}), False)
    assert within(run, 0, 2**64 - 1) is run
    middle = within(run, 1, 5)
    assert middle.rows["v"].to_pylist() == [0, 1, 2]
    assert np.shares_memory(middle.hashes, found)
    assert len(within(run, 6, 9)) == 0
