"""Finds, for every needle row, the stored rows of equal hash inside its time bounds."""

import numpy as np
import numpy.typing as npt
from numba import njit

from skewless.kernels.ordering import HashArray, IndexArray, TimeArray

# Event times stay within ±MAX_TIME microseconds of 1970 (73,000 years) and an absent bound is
# UNBOUNDED, so a time plus a bound never overflows.
MAX_TIME = 2**61
UNBOUNDED = 2**62


@njit(cache=True, nogil=True, inline="always")
def _first_at_least(values, target, begin, end):  # type: ignore[no-untyped-def]
    """First index in values[begin:end] not below target: gallop, then bisect.

    Needles and stored rows have the same order, so the answer is near `begin`; doubling steps
    cost the logarithm of the distance, not of the segment.
    """
    if begin >= end or values[begin] >= target:
        return begin
    step = 1
    low = begin
    high = begin + 1
    while high < end and values[high] < target:
        low = high
        step *= 2
        high = low + step
    if high > end:
        high = end
    low += 1
    while low < high:
        middle = (low + high) >> 1
        if values[middle] < target:
            low = middle + 1
        else:
            high = middle
    return low


@njit(cache=True, nogil=True)
def _ranges(needle_hash, needle_time, stored_hash, stored_time, lower, upper, start, count):  # type: ignore[no-untyped-def]
    n = len(needle_hash)
    m = len(stored_hash)
    total = 0
    i = 0
    j = 0
    while i < n and j < m:
        key = needle_hash[i]
        j = _first_at_least(stored_hash, key, j, m)
        if j == m:
            break
        if stored_hash[j] != key:
            i = _first_at_least(needle_hash, stored_hash[j], i, n)
            continue
        group_end = (
            m
            if key == np.uint64(0xFFFFFFFFFFFFFFFF)
            else _first_at_least(stored_hash, key + np.uint64(1), j, m)
        )
        low = j
        high = j
        while i < n and needle_hash[i] == key:
            # Needles of one key come in time order, so both ends only ever move right.
            low = _first_at_least(stored_time, needle_time[i] + lower, low, group_end)
            if high < low:
                high = low
            high = _first_at_least(stored_time, needle_time[i] + upper + 1, high, group_end)
            start[i] = low
            count[i] = high - low
            total += high - low
            i += 1
        j = group_end
    return total


def ranges_within(
    needle_hash: HashArray,
    needle_time: TimeArray,
    stored_hash: HashArray,
    stored_time: TimeArray,
    lower_us: int,
    upper_us: int,
) -> tuple[IndexArray, IndexArray, int]:
    """(start, count, total) of stored rows with `lower ≤ stored.time − needle.time ≤ upper`.

    Both inputs are sorted by (hash, time), so the matches of a needle are one contiguous range:
    nothing is expanded and filtered, however hot the key.
    """
    start = np.zeros(len(needle_hash), np.int64)
    count = np.zeros(len(needle_hash), np.int64)
    total = _ranges(
        needle_hash,
        needle_time,
        stored_hash,
        stored_time,
        max(lower_us, -UNBOUNDED),
        min(upper_us, UNBOUNDED),
        start,
        count,
    )
    return start, count, int(total)


def covered(start: IndexArray, count: IndexArray, size: int) -> npt.NDArray[np.bool_]:
    """Which of so many stored rows are in some needle's range.

    >>> covered(np.array([0, 1, 5]), np.array([2, 2, 0]), 6).tolist()
    [True, True, True, False, False, False]
    """
    hit = count > 0
    begins = np.bincount(start[hit], minlength=size + 1)
    ends = np.bincount(start[hit] + count[hit], minlength=size + 1)
    return np.cumsum(begins - ends)[:size] > 0


@njit(cache=True, nogil=True)
def _cut(needle_time, stored_time, start, count, lower, upper, start_out, count_out):  # type: ignore[no-untyped-def]
    total = 0
    for i in range(len(start)):
        end = start[i] + count[i]
        low = _first_at_least(stored_time, needle_time[i] + lower, start[i], end)
        high = _first_at_least(stored_time, needle_time[i] + upper + 1, low, end)
        start_out[i] = low
        count_out[i] = high - low
        total += high - low
    return total


def cut_ranges(
    needle_time: TimeArray,
    stored_time: TimeArray,
    start: IndexArray,
    count: IndexArray,
    lower_us: int,
    upper_us: int,
) -> tuple[IndexArray, IndexArray, int]:
    """Ranges narrowed to `lower ≤ stored.time − needle.time ≤ upper`: (start, count, total).

    There is one needle time for every range.
    """
    start_out, count_out = np.empty(len(start), np.int64), np.empty(len(start), np.int64)
    total = _cut(
        needle_time,
        stored_time,
        start,
        count,
        max(lower_us, -UNBOUNDED),
        min(upper_us, UNBOUNDED),
        start_out,
        count_out,
    )
    return start_out, count_out, int(total)


@njit(cache=True, nogil=True)
def _spread(needle_time, stored_time, start, count, offsets, line, counts):  # type: ignore[no-untyped-def]
    for i in range(len(start)):
        end = start[i] + count[i]
        low = start[i]
        for j in range(len(offsets) - 1):
            high = _first_at_least(stored_time, needle_time[i] + offsets[j + 1], low, end)
            counts[line[i], j] += high - low
            low = high


def spread_of_ranges(
    needle_time: TimeArray,
    stored_time: TimeArray,
    start: IndexArray,
    count: IndexArray,
    offsets_us: TimeArray,
    line: IndexArray,
    counts: IndexArray,
) -> None:
    """Adds to `counts[line, j]` the rows of each range with a `stored.time − needle.time` in
    [offsets[j], offsets[j + 1]). The offsets rise, and every range lies within them.
    """
    _spread(needle_time, stored_time, start, count, offsets_us, line, counts)


@njit(cache=True, nogil=True)
def _fill(start, count, needle, offset, needle_out, stored_out):  # type: ignore[no-untyped-def]
    filled = 0
    size = len(needle_out)
    n = len(start)
    while needle < n and filled < size:
        left = count[needle] - offset
        if left <= 0:
            needle += 1
            offset = 0
            continue
        take = min(left, size - filled)
        first = start[needle] + offset
        for i in range(take):
            needle_out[filled + i] = needle
            stored_out[filled + i] = first + i
        filled += take
        offset += take
    return needle, offset


class Pairs:
    """The matching pairs of a probe, dealt out in chunks so that they never exist all at once."""

    def __init__(self, start: IndexArray, count: IndexArray, total: int) -> None:
        self._start = start
        self._count = count
        self._needle = 0
        self._offset = 0
        self.remaining = total

    def take(self, at_most: int) -> tuple[IndexArray, IndexArray]:
        """The next pairs: (needle indices, stored indices)."""
        size = min(at_most, self.remaining)
        needle_out = np.empty(size, np.int64)
        stored_out = np.empty(size, np.int64)
        self._needle, self._offset = _fill(
            self._start, self._count, self._needle, self._offset, needle_out, stored_out
        )
        self.remaining -= size
        return needle_out, stored_out
