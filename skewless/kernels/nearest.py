"""Keeps the nearest of many candidates, for many needles at once."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
from numba import njit

from skewless.kernels.distance import Floats
from skewless.kernels.ordering import HashArray, IndexArray, TimeArray

# What is kept of a candidate takes so many bytes.
CANDIDATE_BYTES = 40


class NearestRows:
    """The k nearest rows of each of some needles, of all that were offered.

    Of equally near rows the later ones are nearer, and of these the ones with the smaller hash: the
    choice does not depend on the order in which rows are offered.

    >>> best = NearestRows(needles=1, k=1)
    >>> for run, distance in enumerate((3.0, 2.0, 4.0)):
    ...     row = np.array([7 + run])
    ...     best.offer(row - row, np.array([distance]), row, row.astype(np.uint64), run, row)
    >>> [(run, rows.tolist()) for run, _, rows in best.chosen()]
    [(1, [8])]
    """

    def __init__(self, needles: int, k: int) -> None:
        shape = (needles, k)
        self._distances: Floats = np.full(shape, np.inf)
        self._times: TimeArray = np.zeros(shape, np.int64)
        self._hashes: HashArray = np.zeros(shape, np.uint64)
        self._runs: npt.NDArray[np.int64] = np.full(shape, -1, np.int64)
        self._rows: npt.NDArray[np.int64] = np.zeros(shape, np.int64)

    def offer(
        self,
        needles: IndexArray,
        distances: Floats,
        times: TimeArray,
        hashes: HashArray,
        run: int,
        rows: IndexArray,
    ) -> None:
        """Rows of a run, and the needle that each of them is near to."""
        _offer(
            needles,
            distances,
            times,
            hashes,
            run,
            rows,
            self._distances,
            self._times,
            self._hashes,
            self._runs,
            self._rows,
        )

    def chosen(self) -> Iterator[tuple[int, IndexArray, IndexArray]]:
        """Run by run: needles, and the rows that are among their nearest."""
        needle, place = np.nonzero(self._runs >= 0)
        runs, rows = self._runs[needle, place], self._rows[needle, place]
        for run in np.unique(runs).tolist():
            of_run = runs == run
            yield run, needle[of_run], rows[of_run]


@njit(cache=True, nogil=True)
def _offer(  # type: ignore[no-untyped-def]
    needles, distances, times, hashes, run, rows, at_distance, at_time, at_hash, at_run, at_row
):
    k = at_distance.shape[1]
    for i in range(len(needles)):
        n = needles[i]
        d = distances[i]
        if d > at_distance[n, k - 1]:
            continue
        t = times[i]
        h = hashes[i]
        place = k
        # Candidates stand in order: all that are farther move on by one.
        while place > 0:
            last = place - 1
            if at_run[n, last] >= 0:
                if d > at_distance[n, last]:
                    break
                if d == at_distance[n, last]:
                    if t < at_time[n, last]:
                        break
                    if t == at_time[n, last] and h >= at_hash[n, last]:
                        break
            if place < k:
                at_distance[n, place] = at_distance[n, last]
                at_time[n, place] = at_time[n, last]
                at_hash[n, place] = at_hash[n, last]
                at_run[n, place] = at_run[n, last]
                at_row[n, place] = at_row[n, last]
            place = last
        if place < k:
            at_distance[n, place] = d
            at_time[n, place] = t
            at_hash[n, place] = h
            at_run[n, place] = run
            at_row[n, place] = rows[i]
