"""The (hash, time) order that segments and probes rely on."""

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skewless.kernels.ordering import order_by_hash_and_time

TOP = 2**64 - 1


def arrays(rows: list[tuple[int, int]]) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64]]:
    return np.array([h for h, _ in rows], np.uint64), np.array([t for _, t in rows], np.int64)


def assert_ordered(hashes: npt.NDArray[np.uint64], times: npt.NDArray[np.int64]) -> None:
    order = order_by_hash_and_time(hashes, times)
    expected = np.lexsort((times, hashes))
    assert order.dtype == np.int64
    # Rows equal in both have no order of their own, so the sorted values are compared.
    np.testing.assert_array_equal(hashes[order], hashes[expected])
    np.testing.assert_array_equal(times[order], times[expected])
    np.testing.assert_array_equal(np.sort(order), np.arange(len(hashes)))


FEW_KEYS = st.sampled_from([0, 1, 2, 2**63, TOP - 1, TOP])
ROWS = st.lists(
    st.tuples(FEW_KEYS | st.integers(0, TOP), st.integers(-5, 5) | st.integers(-(2**61), 2**61)),
    max_size=200,
)


@given(ROWS)
def test_is_the_lexicographic_order(rows: list[tuple[int, int]]) -> None:
    assert_ordered(*arrays(rows))


@pytest.mark.parametrize("size", [1, 2, 23, 24, 25, 26, 100, 5_000])
@pytest.mark.parametrize("pattern", ["rising", "falling", "shuffled", "equal", "organ pipe"])
def test_groups_on_both_sides_of_the_insertion_sort(size: int, pattern: str) -> None:
    rising = np.arange(size, dtype=np.int64)
    times = {
        "rising": rising,
        "falling": rising[::-1].copy(),
        "shuffled": np.random.default_rng(size).permutation(rising),
        "equal": np.zeros(size, np.int64),
        "organ pipe": np.minimum(rising, rising[::-1]),
    }[pattern]
    alone = np.full(size, TOP, np.uint64)
    assert_ordered(alone, times)
    # The same group between neighbours of other hashes, scattered over the rows.
    scattered = np.random.default_rng(1).permutation(3 * size)
    hashes = np.repeat(np.array([5, 6, 7], np.uint64), size)[scattered]
    assert_ordered(hashes, np.tile(times, 3)[scattered])


def test_no_rows() -> None:
    assert order_by_hash_and_time(*arrays([])).tolist() == []


def test_hashes_are_unsigned() -> None:
    assert order_by_hash_and_time(*arrays([(TOP, 0), (1, 0), (2**63, 0)])).tolist() == [1, 2, 0]


def test_read_only_arrays_as_mapped_from_a_file() -> None:
    hashes, times = arrays([(3, 1), (3, 0), (1, 9)])
    hashes.flags.writeable = False
    times.flags.writeable = False
    assert order_by_hash_and_time(hashes, times).tolist() == [2, 1, 0]
