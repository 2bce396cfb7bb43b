"""Heavy keys of a task are counted exactly."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from skewless.load.counts import TaskCounts


@given(
    left=st.lists(st.integers(0, 8), max_size=60),
    right=st.lists(st.integers(0, 8), max_size=60),
    found=st.lists(st.tuples(st.integers(0, 8), st.integers(0, 50)), max_size=60),
)
def test_counts_of_every_key_that_stands_out_are_exact(left, right, found) -> None:
    loads = TaskCounts(4)
    for side, keys in (("left", left), ("right", right)):
        if keys:
            loads.add_rows(side, np.sort(np.array(keys, np.uint64)))
    found.sort()
    if found:
        hashes = np.array([h for h, _ in found], np.uint64)
        loads.add_matches(hashes, np.array([n for _, n in found], np.int64))
    matches = {h: sum(n for g, n in found if g == h) for h, _ in found}
    told = {k.hash: k for k in loads.hot_keys()}
    for key, load in told.items():
        assert load.rows.get("left", 0) in (left.count(key), 0)
        assert load.rows.get("right", 0) in (right.count(key), 0)
        assert load.matches in (matches.get(key, 0), 0)
    for key in range(9):
        if left.count(key) >= 2:
            assert told[key].rows["left"] == left.count(key)
        if matches.get(key, 0) >= max(2, 0.01 * sum(matches.values())):
            assert told[key].matches == matches[key]


def test_only_the_keys_that_stand_out_leave_the_task() -> None:
    loads = TaskCounts(4)
    rare = np.arange(1, 10_001, dtype=np.uint64)
    hot = np.full(500, 2**63, np.uint64)
    loads.add_rows("input", np.concatenate([rare, hot]))
    (only,) = loads.hot_keys()
    assert (only.hash, only.rows) == (2**63, {"input": 500}), "by the side that has them"
