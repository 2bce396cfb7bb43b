"""Keeps the one row that is closest in time, for many needles at once."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
from numba import njit

from skewless.kernels.ordering import IndexArray, TimeArray

# What is kept of a candidate takes so many bytes.
CANDIDATE_BYTES = 32
_FAR = np.iinfo(np.int64).max


class ClosestRows:
    """For each of some needles the closest in time of all rows that were offered.

    Of rows that are equally close, the earlier one is kept, and of these the first that was
    offered.

    >>> best = ClosestRows(np.array([100]))
    >>> best.offer(0, np.array([90, 98, 103]), np.array([0]), np.array([3]))
    >>> [(run, needles.tolist(), rows.tolist()) for run, needles, rows in best.chosen()]
    [(0, [0], [1])]
    """

    def __init__(self, times: TimeArray) -> None:
        self._times = times
        self._apart = np.full(len(times), _FAR, np.int64)
        self._found = np.zeros(len(times), np.int64)
        self._runs: npt.NDArray[np.int64] = np.full(len(times), -1, np.int64)
        self._rows = np.zeros(len(times), np.int64)

    def offer(self, run: int, stored: TimeArray, start: IndexArray, count: IndexArray) -> None:
        """For every needle the rows [start, start + count) of a run, whose times rise there."""
        _closest(
            self._times,
            stored,
            start,
            count,
            run,
            self._apart,
            self._found,
            self._runs,
            self._rows,
        )

    def offer_pairs(
        self, run: int, stored: TimeArray, needle: IndexArray, other: IndexArray
    ) -> None:
        """Single rows of a run, and the needle that each of them matches."""
        _closest_pairs(
            self._times,
            stored,
            needle,
            other,
            run,
            self._apart,
            self._found,
            self._runs,
            self._rows,
        )

    def chosen(self) -> Iterator[tuple[int, IndexArray, IndexArray]]:
        """Run by run: needles, and the row of the run that is closest to each."""
        for run in np.unique(self._runs[self._runs >= 0]).tolist():
            needles = np.flatnonzero(self._runs == run)
            yield run, needles, self._rows[needles]


@njit(cache=True, nogil=True)
def _keep(needle, row, time, run, times, apart, found, runs, rows):  # type: ignore[no-untyped-def]
    distance = abs(time - times[needle])
    if distance < apart[needle] or (distance == apart[needle] and time < found[needle]):
        apart[needle] = distance
        found[needle] = time
        runs[needle] = run
        rows[needle] = row


@njit(cache=True, nogil=True)
def _closest(times, stored, start, count, run, apart, found, runs, rows):  # type: ignore[no-untyped-def]
    for needle in range(len(times)):
        if count[needle] == 0:
            continue
        low = start[needle]
        high = low + count[needle]
        end = high
        # The first row that is not before the needle.
        while low < high:
            middle = (low + high) >> 1
            if stored[middle] < times[needle]:
                low = middle + 1
            else:
                high = middle
        if low < end:
            _keep(needle, low, stored[low], run, times, apart, found, runs, rows)
        if low > start[needle]:
            before = low - 1
            _keep(needle, before, stored[before], run, times, apart, found, runs, rows)


@njit(cache=True, nogil=True)
def _closest_pairs(times, stored, needle, other, run, apart, found, runs, rows):  # type: ignore[no-untyped-def]
    for i in range(len(needle)):
        _keep(needle[i], other[i], stored[other[i]], run, times, apart, found, runs, rows)
