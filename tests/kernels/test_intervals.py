"""Ranges of stored rows inside the time bounds, against brute force; pairs in chunks."""

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skewless.kernels.intervals import UNBOUNDED, Pairs, ranges_within
from skewless.kernels.ordering import order_by_hash_and_time

TOP = 2**64 - 1
Rows = tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64]]


def sorted_rows(rows: list[tuple[int, int]]) -> Rows:
    hashes = np.array([h for h, _ in rows], np.uint64)
    times = np.array([t for _, t in rows], np.int64)
    order = order_by_hash_and_time(hashes, times)
    return hashes[order], times[order]


def brute_force(needles: Rows, stored: Rows, lower: int, upper: int) -> list[tuple[int, int]]:
    return [
        (i, j)
        for i, (h, t) in enumerate(zip(*(a.tolist() for a in needles), strict=True))
        for j, (g, u) in enumerate(zip(*(a.tolist() for a in stored), strict=True))
        if h == g and lower <= u - t <= upper
    ]


def pairs_of(
    needles: Rows, stored: Rows, lower: int, upper: int, chunk: int = 1_000_000
) -> list[tuple[int, int]]:
    start, count, total = ranges_within(*needles, *stored, lower, upper)
    assert total == count.sum()
    pairs = Pairs(start, count, total)
    dealt: list[tuple[int, int]] = []
    while pairs.remaining:
        before = pairs.remaining
        needle, other = pairs.take(chunk)
        assert len(needle) == len(other) == min(chunk, before)
        assert pairs.remaining == before - len(needle)
        dealt += zip(needle.tolist(), other.tolist(), strict=True)
    return dealt


HASHES = st.sampled_from([0, 1, 7, 2**63, TOP - 1, TOP]) | st.integers(0, TOP)
ROWS = st.lists(st.tuples(HASHES, st.integers(-20, 20)), max_size=60).map(sorted_rows)
# One or two keys: groups far longer than the gallop's first steps.
HOT_ROWS = st.lists(st.tuples(st.sampled_from([0, TOP]), st.integers(-50, 50)), max_size=150).map(
    sorted_rows
)
LOWER = st.integers(-30, 30) | st.just(-int(UNBOUNDED))
UPPER = st.integers(-30, 30) | st.just(int(UNBOUNDED))


@given(needles=ROWS, stored=ROWS, lower=LOWER, upper=UPPER)
def test_equals_brute_force(needles: Rows, stored: Rows, lower: int, upper: int) -> None:
    assert pairs_of(needles, stored, lower, upper) == brute_force(needles, stored, lower, upper)


@given(needles=HOT_ROWS, stored=HOT_ROWS, lower=LOWER, upper=UPPER, chunk=st.integers(1, 50))
def test_hot_keys_in_chunks_of_any_size(
    needles: Rows, stored: Rows, lower: int, upper: int, chunk: int
) -> None:
    dealt = pairs_of(needles, stored, lower, upper, chunk)
    assert dealt == brute_force(needles, stored, lower, upper)


@pytest.mark.parametrize(
    ("lower", "upper", "matching"),
    [
        (-2, 2, [8, 9, 10, 11, 12]),
        (0, 0, [10]),
        (0, 3, [10, 11, 12, 13]),
        (-3, -1, [7, 8, 9]),
        (4, 6, [14, 15, 16]),
        (1, -1, []),
        (-UNBOUNDED, -9, [0, 1]),
        (9, UNBOUNDED, [19]),
        (-UNBOUNDED, UNBOUNDED, list(range(20))),
        # Wider than any time: clamped, never overflowing.
        (-(2**70), 2**70, list(range(20))),
    ],
)
def test_bounds_are_inclusive(lower: int, upper: int, matching: list[int]) -> None:
    stored = sorted_rows([(7, t) for t in range(20)])
    needle = sorted_rows([(7, 10)])
    assert [j for _, j in pairs_of(needle, stored, lower, upper)] == matching


@pytest.mark.parametrize("key", [0, 1, 2**63 - 1, 2**63, TOP - 1, TOP])
def test_the_ends_of_the_hash_range(key: int) -> None:
    stored = sorted_rows([(0, 0), (1, 0), (2**63 - 1, 0), (2**63, 0), (TOP - 1, 0), (TOP, 0)])
    found = pairs_of(sorted_rows([(key, 0)]), stored, 0, 0)
    assert [stored[0][j] for _, j in found] == [key]


@pytest.mark.parametrize("time", [-(2**61), 2**61])
def test_far_times_meet_unbounded_ends(time: int) -> None:
    rows = sorted_rows([(1, time)])
    assert pairs_of(rows, rows, -int(UNBOUNDED), int(UNBOUNDED)) == [(0, 0)]


@pytest.mark.parametrize(
    ("needles", "stored"), [([], [(1, 1)]), ([(1, 1)], []), ([], []), ([(1, 1)], [(2, 1)])]
)
def test_nothing_to_meet(needles: list[tuple[int, int]], stored: list[tuple[int, int]]) -> None:
    start, count, total = ranges_within(*sorted_rows(needles), *sorted_rows(stored), -9, 9)
    assert (total, count.sum(), len(start)) == (0, 0, len(needles))
    needle, other = Pairs(start, count, total).take(5)
    assert len(needle) == len(other) == 0


def test_read_only_stored_rows() -> None:
    needles = sorted_rows([(1, 0), (2, 0)])
    stored = sorted_rows([(1, 0), (2, 5)])
    for column in stored:
        column.flags.writeable = False
    assert pairs_of(needles, stored, 0, 1) == [(0, 0)]


def test_a_large_random_case_counts_as_numpy_does() -> None:
    rng = np.random.default_rng(7)
    keys = rng.integers(0, 2**64, 300, dtype=np.uint64)
    needles = sorted_rows(
        list(zip(rng.choice(keys, 5_000), rng.integers(0, 999, 5_000), strict=True))
    )
    stored = sorted_rows(
        list(zip(rng.choice(keys, 9_000), rng.integers(0, 999, 9_000), strict=True))
    )
    _, count, total = ranges_within(*needles, *stored, -40, 15)
    expected = 0
    for key in keys:
        mine = needles[1][needles[0] == key]
        others = stored[1][stored[0] == key]
        away = others[None, :] - mine[:, None]
        expected += int(((away >= -40) & (away <= 15)).sum())
    assert total == count.sum() == expected
