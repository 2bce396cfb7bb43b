"""Lookups of stored rows, against brute force."""

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from skewless.kernels.groups import sorted_keyed_run
from skewless.kernels.lookup import lookup, rows_of_hashes
from skewless.kernels.runs import SortedRun

ROW = st.tuples(st.integers(0, 4), st.integers(0, 4), st.sampled_from(["a", "b", None]))


def run(rows: list[tuple[int, int, str | None]]) -> SortedRun:
    hashes = np.array([h for h, _, _ in rows], np.uint64)
    times = np.array([t for _, t, _ in rows], np.int64)
    batch = pa.RecordBatch.from_pydict({"k0": pa.array([k for _, _, k in rows], pa.string())})
    return sorted_keyed_run(hashes, times, batch, ["k0"], False)


def listed(found: SortedRun) -> list[tuple[int, int, str | None]]:
    keys = found.rows.column("k0").to_pylist()
    return list(zip(found.hashes.tolist(), found.times.tolist(), keys, strict=True))


@given(needles=st.lists(ROW, unique=True, max_size=20), stored=st.lists(ROW, max_size=40))
def test_rows_of_equal_hash_time_and_key_are_found_once(needles, stored) -> None:
    left, right = run(needles), run(stored)
    needle, found = lookup(left, right, ["k0"], False)
    expected = {
        (i, j) for i, a in enumerate(listed(left)) for j, b in enumerate(listed(right)) if a == b
    }
    assert set(zip(needle.tolist(), found.tolist(), strict=True)) == expected
    assert len(found) == len(expected) == len(set(found.tolist()))


@given(
    hashes=st.sets(st.integers(0, 5), max_size=6),
    stored=st.lists(ROW, max_size=40),
    after=st.one_of(st.none(), st.integers(-1, 5)),
)
def test_rows_of_hashes_after_a_moment(hashes, stored, after) -> None:
    right = run(stored)
    found = rows_of_hashes(np.array(sorted(hashes), np.uint64), right, after)
    expected = [
        j
        for j, (h, t, _) in enumerate(listed(right))
        if h in hashes and (after is None or t > after)
    ]
    assert found.tolist() == expected


def test_a_null_that_shares_the_hash_of_a_value_is_not_it() -> None:
    """Also where the hash is one-to-one on the values."""
    left, right = run([(42, 0, "a")]), run([(42, 0, None)])
    assert [len(part) for part in lookup(left, right, ["k0"], True)] == [0, 0]
