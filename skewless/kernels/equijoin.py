"""Probes one sorted run against another and streams out the pairs whose keys are equal."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from skewless.kernels.intervals import Pairs, ranges_within
from skewless.kernels.ordering import IndexArray
from skewless.kernels.runs import SortedRun, equal_at_rows


@dataclass(frozen=True)
class Probe:
    """Where the matches of every needle row stand in the stored run."""

    needles: SortedRun
    stored: SortedRun
    start: IndexArray
    count: IndexArray
    total: int
    compare_pairs: bool  # hashes collide between different keys: look at every pair

    def pairs(self, keys: Sequence[str], at_most: int) -> Iterator[tuple[IndexArray, IndexArray]]:
        """(needle indices, stored indices), at most so many at a time."""
        pairs = Pairs(self.start, self.count, self.total)
        while pairs.remaining:
            needle, stored = pairs.take(at_most)
            if self.compare_pairs:
                same = equal_at_rows(self.needles, self.stored, needle, stored, keys)
                needle, stored = needle[same], stored[same]
            yield needle, stored


def probe(
    needles: SortedRun,
    stored: SortedRun,
    lower_us: int,
    upper_us: int,
    keys: Sequence[str],
    hash_is_key: bool,
) -> Probe:
    """Finds the stored rows with `lower ≤ stored.time − needle.time ≤ upper` and equal keys.

    Keys are compared once per matching hash, not once per pair: inside a run without mixed keys
    all rows of a hash carry the same key.
    """
    start, count, total = ranges_within(
        needles.hashes, needles.times, stored.hashes, stored.times, lower_us, upper_us
    )
    compare_pairs = False
    if total and not hash_is_key:
        compare_pairs = needles.mixed_keys or stored.mixed_keys
        if not compare_pairs:
            heads = np.flatnonzero(count)
            first = np.ones(len(heads), np.bool_)
            first[1:] = needles.hashes[heads[1:]] != needles.hashes[heads[:-1]]
            heads = heads[first]
            compare_pairs = not equal_at_rows(needles, stored, heads, start[heads], keys).all()
    return Probe(needles, stored, start, count, total, compare_pairs)
