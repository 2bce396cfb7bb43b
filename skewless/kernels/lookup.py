"""Finds the stored rows of given keys and moments; the cost grows with the needles."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from skewless.kernels.groups import proves_keys, same_keys
from skewless.kernels.intervals import UNBOUNDED, Pairs, ranges_within
from skewless.kernels.ordering import HashArray, IndexArray
from skewless.kernels.runs import SortedRun


def lookup(
    needles: SortedRun, stored: SortedRun, keys: Sequence[str], hash_is_key: bool
) -> tuple[IndexArray, IndexArray]:
    """(needle, stored) indices of the rows of equal hash, time and key.

    Needles that differ in (hash, time, key) find every stored row at most once.
    """
    start, count, total = ranges_within(
        needles.hashes, needles.times, stored.hashes, stored.times, 0, 0
    )
    needle, found = Pairs(start, count, total).take(total)
    if not total:
        return needle, found
    at_needle, at_found = pa.array(needle), pa.array(found)
    left = [needles.rows.column(k).take(at_needle) for k in keys]
    right = [stored.rows.column(k).take(at_found) for k in keys]
    if proves_keys([*left, *right], hash_is_key):
        return needle, found
    same = same_keys(left, right)
    return needle[same], found[same]


def rows_of_hashes(hashes: HashArray, stored: SortedRun, after_us: int | None) -> IndexArray:
    """The stored rows of these hashes, sorted and each once, whose time is after the given one."""
    lower = -UNBOUNDED if after_us is None else after_us + 1
    start, count, total = ranges_within(
        hashes, np.zeros(len(hashes), np.int64), stored.hashes, stored.times, lower, UNBOUNDED
    )
    return Pairs(start, count, total).take(total)[1]
