"""How many results there are, batch by batch: every pair within the window is looked at."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit, types
from numba.extending import intrinsic

from skewless.lab.bench.shed_streams import AT_LEAST, Side

Ints = npt.NDArray[np.int64]


def results(
    left: Side, right: Side, window_s: float, batches: Sequence[tuple[int, int]], threads: int = 1
) -> list[int]:
    """The pairs that each batch adds, where `batches` are the rows of both sides in each.

    Items are few, so that a set is two words and a pair costs a nanosecond. Rows beyond those of
    the batches do not count.
    """
    reach_us = round(1e6 * window_s)
    ends = np.cumsum(np.array(batches, np.int64).reshape(-1, 2), axis=0)
    rows = [int(n) for n in ends[-1]] if len(ends) else [0, 0]
    masks = [side.masks() for side in (left, right)]
    times = [side.time_us for side in (left, right)]
    begin = np.searchsorted(times[1], times[0] - reach_us)
    end = np.minimum(np.searchsorted(times[1], times[0] + reach_us, side="right"), rows[1])
    batch_of = np.searchsorted(ends[:, 0], np.arange(rows[0]), side="right")

    def part(number: int) -> Ints:
        counts = np.zeros(len(ends), np.int64)
        for first in range(number * 1_024, rows[0], threads * 1_024):
            last = min(first + 1_024, rows[0])
            _count(masks[0], masks[1], begin, end, batch_of, ends[:, 1], first, last, counts)
        return counts

    with ThreadPoolExecutor(threads) as pool:
        found: Ints = np.sum(list(pool.map(part, range(threads))), axis=0)
    return [int(n) for n in found]


def _bit_count(_, word):
    """The number of ones in a word: one instruction, which numba has no name for."""

    def emit(context, builder, signature, arguments):
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), emit


_bits: Any = intrinsic(_bit_count)


@njit(cache=True, nogil=True)
def _matches(low, high, lows, highs):
    least = np.uint64(AT_LEAST)
    found = 0
    for j in range(len(lows)):
        found += int(_bits(low & lows[j]) + _bits(high & highs[j]) >= least)
    return found


@njit(cache=True, nogil=True)
def _count(left, right, begin, end, batch_of, ends, first, last, counts):
    for i in range(first, last):
        low, high = left[0, i], left[1, i]
        at = begin[i]
        # A pair belongs to the batch of its later row.
        for batch in range(batch_of[i], len(ends)):
            stop = min(end[i], ends[batch])
            counts[batch] += _matches(low, high, right[0, at:stop], right[1, at:stop])
            at = max(at, stop)
            if stop == end[i]:
                break
