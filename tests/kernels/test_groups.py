"""Groups of rows, against a dictionary: whatever collides, and whatever is null."""

from collections import defaultdict

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skewless.kernels.groups import (
    group_keys,
    group_rows,
    key_codes,
    keyed_run,
    proves_keys,
    same_keys,
    sorted_keyed_run,
)

ROWS = st.lists(
    st.tuples(
        st.sampled_from([0, 7, 2**64 - 1]),
        st.integers(-2, 2),
        st.sampled_from(["a", "b", None]),
        st.sampled_from([0.0, 1.5, float("nan"), None]),
    ),
    min_size=1,
    max_size=40,
)


def columns(rows):
    hashes = np.array([r[0] for r in rows], np.uint64)
    times = np.array([r[1] for r in rows], np.int64)
    return (
        hashes,
        times,
        [
            pa.array([r[2] for r in rows], pa.string()),
            pa.array([r[3] for r in rows], pa.float64()),
        ],
    )


def members(groups) -> set[frozenset[int]]:
    return {frozenset(part.tolist()) for part in np.split(groups.order, groups.begins[1:])}


def by(rows, key) -> set[frozenset[int]]:
    found = defaultdict(set)
    for place, row in enumerate(rows):
        found[repr(key(row))].add(place)
    return {frozenset(part) for part in found.values()}


@given(rows=ROWS)
def test_rows_of_equal_hash_time_and_key(rows) -> None:
    hashes, times, keys = columns(rows)
    groups = group_rows(hashes, times, keys, hash_is_key=False)
    assert members(groups) == by(rows, lambda r: r)
    order = groups.order
    assert list(zip(hashes[order], times[order], strict=True)) == sorted(
        zip(hashes, times, strict=True)
    ), "the order of segments"
    assert (groups.ids[groups.begins] == np.arange(len(groups))).all()
    assert len(groups.ids) == groups.rows == len(rows)


@given(rows=ROWS)
def test_rows_of_equal_key_in_time_order(rows) -> None:
    hashes, times, keys = columns(rows)
    groups = group_keys(hashes, times, keys, hash_is_key=False)
    assert members(groups) == by(rows, lambda r: (r[0], r[2], r[3]))
    for part in np.split(groups.order, groups.begins[1:]):
        assert (np.diff(times[part]) >= 0).all()


@given(rows=ROWS)
def test_a_hash_that_is_the_key_needs_no_comparison(rows) -> None:
    hashes, times, _ = columns(rows)
    keys = [pa.array(hashes)]
    assert members(group_rows(hashes, times, keys, True)) == members(
        group_rows(hashes, times, keys, False)
    )


def test_a_null_is_not_the_value_that_shares_its_hash() -> None:
    keys = [pa.array([5, None])]
    groups = group_rows(np.array([42, 42], np.uint64), np.zeros(2, np.int64), keys, True)
    assert len(groups) == 2
    assert not proves_keys(keys, True)
    assert proves_keys([pa.array([5, 6])], True)


@given(rows=ROWS)
def test_codes_are_equal_where_keys_are(rows) -> None:
    _, _, keys = columns(rows)
    codes = key_codes(keys)
    everything = np.arange(len(rows))
    left, right = (a.ravel() for a in np.meshgrid(everything, everything))
    same = same_keys(
        [k.take(pa.array(left)) for k in keys], [k.take(pa.array(right)) for k in keys]
    )
    assert (same == (codes[left] == codes[right])).all()


@pytest.mark.parametrize(
    ("keys", "mixed"),
    [(["a", "a", "b"], False), (["a", "b", "b"], True), ([None, None, "b"], False)],
)
def test_a_run_knows_whether_a_hash_has_several_keys(keys, mixed) -> None:
    hashes = np.array([1, 1, 2], np.uint64)
    rows = pa.RecordBatch.from_pydict({"k0": pa.array(keys, pa.string())})
    assert keyed_run(hashes, np.arange(3), rows, ["k0"], False).mixed_keys is mixed
    backwards = rows.take(pa.array([2, 1, 0]))
    again = sorted_keyed_run(hashes[::-1], np.arange(3)[::-1], backwards, ["k0"], False)
    assert again.mixed_keys is mixed
    assert again.rows.equals(rows)
    assert again.times.tolist() == [0, 1, 2]


def test_negative_zero_is_zero_in_codes() -> None:
    assert key_codes([pa.array([0.0, -0.0, 1.0])]).tolist() == [0, 0, 1]
