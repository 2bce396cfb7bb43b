"""The streams of the shedding benchmark: sets whose popularity rotates, as files to be released."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from skewless.lab.workloads.rotating import Rotating, even_arrivals

SCHEMA = "ts timestamp, items array<int>, id long"
SIDES = ("left", "right")
EXPONENT, ITEMS = 0.8, 100
AT_LEAST = 3
CYCLES_PER_WINDOW = 2.0
LAG = 5 / 8  # of a cycle
SEED = 7
# The file source takes files by their time of modification, and forgets none of these.
_FIRST_MOMENT = 1_000_000_000

Phases = Sequence[tuple[float, float]]  # rows per second of each side, seconds
Masks = npt.NDArray[np.uint64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Side:
    """The rows of one side in the order of time."""

    time_us: Ints
    first: Ints  # row i has the items first[i] to first[i + 1]
    items: npt.NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.time_us)

    def table(self) -> pa.Table:
        offsets = pa.array(self.first.astype(np.int32))
        return pa.table(
            {
                "ts": pa.array(self.time_us).cast(pa.timestamp("us", "UTC")),
                "items": pa.ListArray.from_arrays(offsets, pa.array(self.items)),
                "id": pa.array(np.arange(len(self))),
            }
        )

    def masks(self) -> Masks:
        """The sets as bits: one line of first words, one of second words."""
        row = np.repeat(np.arange(len(self)), np.diff(self.first))
        bit = np.uint64(1) << (self.items % 64).astype(np.uint64)
        words = np.zeros((2, len(self)), np.uint64)
        np.bitwise_or.at(words, (self.items // 64, row), bit)
        return words


def sides(phases: Phases, window_s: float) -> tuple[Side, Side]:
    """Both streams; the second follows the first by 5/8 of a cycle.

    >>> left, right = sides([(10.0, 2.0)], window_s=1.0)
    >>> len(left), len(right)
    (20, 20)
    """
    cycle_s = CYCLES_PER_WINDOW * window_s
    popularity = Rotating(EXPONENT, cycle_s, ITEMS)
    rng = np.random.default_rng(SEED)
    drawn = []
    for shift, lag in ((0.0, 0.0), (0.5, LAG)):
        time_s = even_arrivals(phases, shift=shift)
        sets = popularity.draw(time_s, rng, lag_s=lag * cycle_s)
        drawn.append(Side((1e6 * time_s).astype(np.int64), sets.first, sets.items))
    return drawn[0], drawn[1]


def write(streams: Sequence[Side], folder: Path, edges_s: Sequence[float]) -> None:
    """One file per side for every stretch of time between two edges, in their order."""
    for name, side in zip(SIDES, streams, strict=True):
        (folder / name).mkdir(parents=True)
        table = side.table()
        cuts = np.searchsorted(side.time_us, 1e6 * np.asarray(edges_s))
        for number, (first, last) in enumerate(pairwise(cuts.tolist())):
            path = folder / name / f"{number:06d}.parquet"
            pq.write_table(table.slice(first, last - first), path)
            os.utime(path, (_FIRST_MOMENT + number,) * 2)
