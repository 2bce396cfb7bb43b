"""Calls on mixed keys: pieces keep every row, and their times are explained by costs per key."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skewless.operators.map.probes import CallTimes, probes


def pieces(hashes, salt: int = 0):
    rows = pa.record_batch({"n": np.arange(len(hashes))})
    return list(probes(rows, hashes, salt))


@given(st.integers(1, 6_000), st.integers(1, 50), st.integers(0, 2**60))
def test_every_row_is_in_one_piece_with_its_hash(size, keys, salt) -> None:
    hashes = np.random.default_rng(size).integers(0, keys, size).astype(np.uint64)
    found = pieces(hashes, salt)
    numbers = np.concatenate([rows.column("n").to_numpy() for rows, _ in found])
    assert sorted(numbers.tolist()) == list(range(size))
    assert (np.concatenate([keys for _, keys in found]) == hashes[numbers]).all()
    assert len(found) <= 16
    assert len(found) == 1 or min(len(keys) for _, keys in found) >= 255


def test_few_rows_or_a_single_key_are_not_cut() -> None:
    assert len(pieces(np.arange(511, dtype=np.uint64))) == 1
    assert len(pieces(np.zeros(10_000, np.uint64))) == 1
    assert len(pieces(np.arange(10_000, dtype=np.uint64))) == 16


def test_a_key_meets_others_under_another_salt() -> None:
    hashes = np.repeat(np.arange(100, dtype=np.uint64), 60)

    def company(salt: int) -> set[int]:
        return {int(k) for _, keys in pieces(hashes, salt) if 7 in keys for k in keys}

    assert company(1) != company(2)
    assert max(len(np.unique(keys)) for _, keys in pieces(hashes, 1)) <= 10


def test_calls_that_overlap_are_told_apart() -> None:
    """Keys 1, 2 and 3 cost 1, 2 and 30: each pair was called once."""
    calls = CallTimes()
    for pair, took in (([1, 2], 3.0), ([2, 3], 32.0), ([1, 3], 31.0)):
        calls.add(np.array(pair, np.uint64), took)
    rows, times = calls.explain(np.ones(3))
    assert calls.keys().tolist() == [1, 2, 3]
    assert rows.tolist() == [2, 2, 2]
    assert times / rows == pytest.approx([1, 2, 30], abs=0.3)


@given(st.lists(st.tuples(st.lists(st.integers(0, 5), min_size=1), st.floats(0, 50)), min_size=1))
def test_the_time_of_all_calls_is_kept(made) -> None:
    calls = CallTimes()
    for keys, took in made:
        calls.add(np.array(keys, np.uint64), took)
    rows, times = calls.explain(np.zeros(len(calls.keys())))
    assert rows.sum() == sum(len(keys) for keys, _ in made)
    assert times.sum() == pytest.approx(sum(took for _, took in made), abs=1e-6)
    assert (times >= 0).all()
