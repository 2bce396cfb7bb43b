"""Rows and matches of every partition of a task are counted exactly."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from skewless.load.counts import TaskCounts
from skewless.routing.partitions import partition_of


@given(
    rows=st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=60),
    matches=st.lists(st.tuples(st.integers(0, 2**64 - 1), st.integers(1, 9)), max_size=60),
)
def test_partitions_have_all_rows_and_matches(rows, matches) -> None:
    counts = TaskCounts(7)
    counts.add_rows("left", np.sort(np.array(rows, np.uint64)))
    matches.sort()
    if matches:
        hashes = np.array([h for h, _ in matches], np.uint64)
        counts.add_matches(hashes, np.array([n for _, n in matches], np.int64))
    told = counts.partitions()
    for place, row_count, match_count in zip(told.partitions, told.rows, told.matches, strict=True):
        here = partition_of(np.array(rows, np.uint64), 7) == place
        assert row_count == here.sum()
        hit = [partition_of(np.array([h], np.uint64), 7)[0] == place for h, _ in matches]
        assert match_count == sum(n for (_, n), at in zip(matches, hit, strict=True) if at)
    assert sum(told.rows) == len(rows)
    assert sum(told.matches) == sum(n for _, n in matches)
