"""What rows of a key cost, from the times of calls on many keys at once."""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from skewless.load.sketches import Floats, Hashes

# Calls on fewer rows, or more calls than this, would cost more than they teach.
_ROWS = 256
_CALLS = 16
# Rounds of the fit. Few, so that noise in a call's time is not taken for the cost of its keys.
_ROUNDS = 20
_ODD = np.uint64(0x9E3779B97F4A7C15)
_HALF = np.uint64(32)


def probes(
    rows: pa.RecordBatch, hashes: Hashes, salt: int
) -> Iterator[tuple[pa.RecordBatch, Hashes]]:
    """The rows in a few pieces that are each of few keys.

    Rows of a key are adjacent, so a key that fills a piece is measured alone. The other keys of a
    piece change with `salt`, so that over many calls their costs can be told apart. Grouping keys
    by similar estimates would teach less: such keys would always share a piece.
    """
    pieces = min(_CALLS, len(hashes) // _ROWS)
    if pieces < 2 or (hashes == hashes[0]).all():
        yield rows, hashes
        return
    mixed = (hashes ^ np.uint64(salt * int(_ODD) % 2**64)) * _ODD
    order = np.argsort((mixed ^ (mixed >> _HALF)) * _ODD, kind="stable")
    for piece in np.array_split(order, pieces):
        yield rows.take(pa.array(piece)), hashes[piece]


class CallTimes:
    """Calls, the keys of their rows, and how long they took."""

    def __init__(self) -> None:
        self._keys: list[Hashes] = []
        self._counts: list[Floats] = []
        self._took_ms: list[float] = []

    def __len__(self) -> int:
        return len(self._took_ms)

    def add(self, hashes: Hashes, took_ms: float) -> None:
        keys, counts = np.unique(hashes, return_counts=True)
        self._keys.append(keys)
        self._counts.append(counts.astype(np.float64))
        self._took_ms.append(took_ms)

    def keys(self) -> Hashes:
        """Every key once, ascending."""
        return np.unique(np.concatenate(self._keys)) if self._keys else np.empty(0, np.uint64)

    def explain(self, estimates: Floats) -> tuple[Floats, Floats]:
        """(rows, total time) of every key of `keys()`, such that all calls are explained.

        The time of a call is divided among its rows in proportion to what they are thought to cost;
        the sums are the next estimates, and so on: Richardson and Lucy's deconvolution, which keeps
        costs positive and starts from what is known. The total time is always that of the calls.
        """
        sizes = [len(keys) for keys in self._keys]
        call = np.repeat(np.arange(len(sizes)), sizes)
        place = np.searchsorted(self.keys(), np.concatenate(self._keys))
        count, took_ms = np.concatenate(self._counts), np.array(self._took_ms)
        rows = np.bincount(place, count).astype(np.float64)
        # A cost of 0 would stay 0 forever.
        costs = np.maximum(estimates, 1e-3 * max(float(estimates.mean()), 1e-9))
        times: Floats = rows
        for _ in range(_ROUNDS):
            foreseen = np.bincount(call, count * costs[place])
            shares = count * costs[place] * (took_ms / foreseen)[call]
            times = np.bincount(place, shares).astype(np.float64)
            costs = np.maximum(times / rows, 1e-12)
        return rows, times
