"""Posts with stock symbols, from a file, as two streams of sets to be joined."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from skewless.errors import bad_argument
from skewless.lab.reproduce.windowed.streams import Streams
from skewless.lab.workloads.rotating import Floats, Ints, ItemSets

DAY_US = 86_400_000_000


def cashtag_streams(path: Path, seed: int, *, lag_s: float = 0.0) -> Streams:
    """Each post goes to one of two streams at random; a day takes a second.

    Rows (`ts`, `symbol`) of the same time are one post. The second stream's posts come `lag_s`
    later than they were written.
    """
    table = pq.read_table(path)
    for name in ("ts", "symbol"):
        if name not in table.column_names:
            raise bad_argument("cashtags", str(path), "a parquet file with ts and symbol")
    ts = table["ts"].cast(pa.timestamp("us")).cast(pa.int64()).to_numpy()
    symbol = pc.dictionary_encode(table["symbol"].combine_chunks())
    # A symbol may stand twice in a post.
    rows = np.unique(np.stack([ts, symbol.indices.to_numpy().astype(np.int64)], axis=1), axis=0)
    times, first = np.unique(rows[:, 0], return_index=True)
    first = np.append(first, len(rows))
    second = np.random.default_rng([seed, 59]).random(len(times)) < 0.5
    day = (times - times[0]) / DAY_US
    halves = [np.flatnonzero(~second), np.flatnonzero(second)]
    arrival: tuple[Floats, Floats] = (day[halves[0]], day[halves[1]] + lag_s)
    seconds = float(np.ceil(day[-1]))
    # What would come after the end of the first stream has nobody to meet.
    late = arrival[1] < seconds
    arrival = (arrival[0], arrival[1][late])
    sets = _chosen(rows[:, 1], first, halves[0]), _chosen(rows[:, 1], first, halves[1][late])
    rng = np.random.default_rng([seed, 61])
    return Streams.merged(arrival, sets, rng, items=len(symbol.dictionary), seconds=seconds)


def _chosen(symbols: Ints, first: Ints, posts: Ints) -> ItemSets:
    sizes = first[posts + 1] - first[posts]
    begin = np.concatenate([[0], np.cumsum(sizes)])
    place = np.repeat(first[posts] - begin[:-1], sizes) + np.arange(begin[-1])
    # Items are numbered from 1.
    return ItemSets(begin, (symbols[place] + 1).astype(np.int32))


def full_comparisons(streams: Streams, window_s: float) -> float:
    """Comparisons per second of the join without shedding, on average."""
    tuples = streams.tuples
    sides = [tuples.time_s[tuples.side == side] for side in (0, 1)]
    total = 0
    for own, other in (sides, sides[::-1]):
        total += int((np.searchsorted(other, own) - np.searchsorted(other, own - window_s)).sum())
    return total / streams.seconds
