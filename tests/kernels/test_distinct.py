"""The sketch of distinct values: its error, and that merging loses nothing."""

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skewless.errors import SkewlessError
from skewless.kernels.distinct import (
    REGISTERS,
    STANDARD_ERROR,
    entries_of,
    estimates,
    hash_values,
    highest,
)

STORED_TEXT = 0x888A99337133A611
STORED_NUMBER = 0x63CBE1E459320DD7


@pytest.mark.parametrize("size", [0, 1, 10, 100, 1_000, 3_000, 10_000, 100_000])
def test_the_error_is_what_is_documented(size: int) -> None:
    rng = np.random.default_rng(3)
    trials = 30
    values = rng.integers(0, 2**63, trials * size)
    ids = np.repeat(np.arange(trials), size)
    found = estimates(*highest(ids, entries_of(hash_values(pa.array(values)))), trials)
    error = found / max(size, 1) - 1 if size else found
    assert np.sqrt(np.mean(error**2)) <= 1.5 * STANDARD_ERROR
    assert abs(error.mean()) <= 3 * STANDARD_ERROR / np.sqrt(trials), "no bias"


@given(
    left=st.lists(st.integers(0, 2000), max_size=200),
    right=st.lists(st.integers(0, 2000), max_size=200),
)
def test_merged_sketches_are_the_sketch_of_all(left: list[int], right: list[int]) -> None:
    def sketch(values: list[int]) -> np.ndarray:
        hashes = hash_values(pa.array(values, pa.int64()))
        return highest(np.zeros(len(values), np.int64), entries_of(hashes))[1]

    parts = np.concatenate([sketch(left), sketch(right)])
    merged = highest(np.zeros(len(parts), np.int64), parts)[1]
    assert merged.tolist() == sketch(left + right).tolist()
    assert len(merged) <= REGISTERS


@pytest.mark.parametrize(
    "values",
    [
        pa.array(["a", "b", "", "ab", "ba"]),
        pa.array(["a", "b", "", "ab", "ba"], pa.large_string()),
        pa.array([b"a", b"\x00", b"\x00\x00", b"", b"b"]),
        pa.array([1, 2, -1, 0, 2**31 - 1], pa.int32()),
        pa.array([0.5, 1.5, float("nan"), float("inf"), 0.0]),
        pa.array([Decimal(n) for n in (1, 2, -1, 0, 10**20)], pa.decimal128(38, 0)),
        pa.array([0, 1, 2, 3, 4], pa.timestamp("us", "UTC")),
        pa.array([0, 1, 2, 3, 4], pa.date32()),
    ],
    ids=lambda values: str(values.type),
)
def test_different_values_have_different_hashes(values: pa.Array) -> None:
    hashes = hash_values(values)
    assert len(set(hashes.tolist())) == len(values)
    assert hash_values(values.slice(2)).tolist() == hashes[2:].tolist(), "wherever they stand"


def test_equal_values_have_equal_hashes() -> None:
    assert len(set(hash_values(pa.array([0.0, -0.0])).tolist())) == 1
    nans = np.array([0x7FF8000000000000, 0x7FF8000000000001, 0xFFF8000000000000], np.uint64)
    assert len(set(hash_values(pa.array(nans.view(np.float64))).tolist())) == 1
    assert hash_values(pa.array([True, False])).tolist() == hash_values(pa.array([1, 0])).tolist()


def test_hashes_stay_what_they_are() -> None:
    """Sketches are stored: another hash would count every value twice."""
    assert hash_values(pa.array(["skewless"])).tolist() == [STORED_TEXT]
    assert hash_values(pa.array([7])).tolist() == [STORED_NUMBER]


def test_nested_values_are_refused() -> None:
    with pytest.raises(SkewlessError, match="plain columns"):
        hash_values(pa.array([[1]]))
