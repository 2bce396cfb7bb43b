"""Counts what a task does for each partition and for the keys that stand out."""

import numpy as np
import numpy.typing as npt

from skewless.load.heavy import STANDING_OUT, Detail, KeyLoads
from skewless.load.report import HotKeyLoad, PartitionLoads
from skewless.routing.partitions import partition_of

Hashes = npt.NDArray[np.uint64]
Numbers = npt.NDArray[np.int64]


class TaskCounts:
    """Rows and matches of one task, from runs that are sorted by hash.

    Rows of a key are adjacent, so they are summed by key first. The cost of the rest depends on the
    number of keys, not of rows.
    """

    def __init__(self, partitions: int, detail: Detail = STANDING_OUT) -> None:
        self._rows = np.zeros(partitions, np.int64)
        self._matches = np.zeros(partitions, np.int64)
        self._keys = KeyLoads(detail)

    def add_rows(self, side: str, hashes: Hashes) -> None:
        """Rows of a side, sorted by hash."""
        begins = _begins(hashes)
        keys, rows = hashes[begins], np.diff(begins, append=len(hashes))
        self._add(self._rows, keys, rows)
        self._keys.add_rows(side, keys, rows)

    def add_matches(self, hashes: Hashes, counts: Numbers) -> None:
        """Matches of rows, sorted by hash."""
        begins = _begins(hashes)
        keys, matches = hashes[begins], np.add.reduceat(counts, begins)
        self._add(self._matches, keys, matches)
        self._keys.add_matches(keys, matches)

    def _add(self, totals: Numbers, keys: Hashes, values: Numbers) -> None:
        places = partition_of(keys, len(totals))
        # Sums far below 2^53 are exact in the floating point that bincount counts in.
        totals += np.bincount(places, weights=values, minlength=len(totals)).astype(np.int64)

    def partitions(self) -> PartitionLoads:
        busy = np.flatnonzero(self._rows + self._matches)
        return PartitionLoads(
            busy.tolist(), self._rows[busy].tolist(), self._matches[busy].tolist()
        )

    def hot_keys(self) -> list[HotKeyLoad]:
        return self._keys.heaviest()


def _begins(hashes: Hashes) -> Numbers:
    """Where each run of equal hashes begins."""
    return np.flatnonzero(np.concatenate([[True], hashes[1:] != hashes[:-1]]))
