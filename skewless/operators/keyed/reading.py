"""Reads the stored rows that an instance is to work on, in portions that fit into memory."""

from collections.abc import Iterator, Sequence

import numpy as np

from skewless.kernels.ordering import HashArray
from skewless.kernels.runs import SortedRun
from skewless.operators.keyed.layout import DUE
from skewless.state.manifest import Segments
from skewless.state.segment import open_segment
from skewless.state.storage import Storage


def opened(
    storage: Storage, segments: Segments, side: str, partitions: frozenset[int], of: int
) -> list[SortedRun]:
    """The segments of a side that may have rows of these partitions, of so many."""
    return [open_segment(storage, s, DUE) for s in segments.meeting(side, partitions, of)]


def portions(hashes: Sequence[HashArray], at_most: int) -> Iterator[tuple[int, int]]:
    """Ranges of hashes, both ends included, that hold about `at_most` of these; all of them
    together hold every hash, and none holds a part of a key."""
    everything = np.concatenate(hashes) if hashes else np.empty(0, np.uint64)
    low, top = 0, 2**64 - 1
    parts = -(-len(everything) // at_most)
    if parts > 1:
        everything.sort()
        cuts = np.unique(everything[at_most * np.arange(1, parts)])
        for cut in cuts.tolist():
            if cut > low:
                yield low, cut - 1
                low = cut
    yield low, top


def within(run: SortedRun, low: int, high: int) -> SortedRun:
    """The rows of a run whose hash is in a range; nothing is copied."""
    begin = int(np.searchsorted(run.hashes, np.uint64(low), "left"))
    end = int(np.searchsorted(run.hashes, np.uint64(high), "right"))
    if begin == 0 and end == len(run):
        return run
    return SortedRun(
        run.hashes[begin:end],
        run.times[begin:end],
        run.rows.slice(begin, end - begin),
        run.mixed_keys,
    )
