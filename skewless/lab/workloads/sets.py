"""Streams of sets: items of Zipf popularity, a few in every set."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from skewless.lab.workloads.zipf import Zipf

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class SetStreams:
    """Two streams of sets with about `size` items, as in the paper on load shedding."""

    rows_per_s: int
    seconds: int
    items: int
    exponent: float
    size: float = 5.0
    seed: int = 7

    def tables(self) -> tuple[pa.Table, pa.Table]:
        """Both sides in the order of time: ts, items, id."""
        rng = np.random.default_rng(self.seed)
        popularity = Zipf(self.exponent, self.items, rng)
        return self._side(rng, popularity), self._side(rng, popularity)

    def _side(self, rng: np.random.Generator, popularity: Zipf) -> pa.Table:
        rows = self.rows_per_s * self.seconds
        sizes = np.maximum(1, np.rint(rng.normal(self.size, 1, rows))).astype(np.int64)
        owner = np.repeat(np.arange(rows), sizes)
        # An item that was drawn twice is there once.
        drawn = np.unique(owner * self.items + popularity.sample(len(owner)))
        owner, items = drawn // self.items, drawn % self.items
        counts = np.bincount(owner, minlength=rows)
        offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
        times = np.sort(rng.integers(0, self.seconds * 1_000_000, rows))
        return pa.table(
            {
                "ts": pa.array(times).cast(pa.timestamp("us", "UTC")),
                "items": pa.ListArray.from_arrays(pa.array(offsets), pa.array(items)),
                "id": pa.array(np.arange(rows)),
            }
        )
