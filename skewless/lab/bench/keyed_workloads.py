"""What the benchmark of keyed state replays: words and trades, one parquet file per batch."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from skewless.lab.bench.scenarios import CANDIDATES, keys_at
from skewless.lab.bench.workloads import SEED, Length
from skewless.lab.workloads.streams import START_US, TIMESTAMP, write_stream
from skewless.lab.workloads.words import Words

WORDS, COUNT, SELF_JOIN = "words", "count", "selfjoin"
# Where hot symbols are hashed together; the target is for two instances on two cores.
INSTANCES = 2
_MOST_SHARES = 1_000


@dataclass(frozen=True)
class Workload:
    """A stream of one kind, and what is done with it."""

    name: str
    title: str
    tables: Callable[["Workload", np.random.Generator], Iterator[pa.Table]]
    rows_per_batch: int
    rows_per_second: float  # of event time
    window_s: float | None  # None: one group per key
    length: Length

    def describe(self) -> dict[str, Any]:
        """The parameters, for the record."""
        return {
            "rows_per_batch": self.rows_per_batch,
            "rows_per_second_of_event_time": self.rows_per_second,
            "window_s": self.window_s,
            "seed": SEED,
        }

    def generate(self, folder: Path) -> Path:
        """Write the batches; equal workloads give equal files."""
        return write_stream(folder, self.tables(self, np.random.default_rng(SEED)))


def words(vocabulary: int) -> Callable[[Workload, np.random.Generator], Iterator[pa.Table]]:
    """Zipf's law with an exponent of 1, as in the papers' microblogs."""

    def tables(workload: Workload, rng: np.random.Generator) -> Iterator[pa.Table]:
        stream = Words(words=vocabulary, rows_per_second=workload.rows_per_second)
        return stream.batches(rng, rows=workload.rows_per_batch, count=workload.length.batches)

    return tables


def colliding_trades(
    hot_symbols: int, hot_share: float
) -> Callable[[Workload, np.random.Generator], Iterator[pa.Table]]:
    """Trades most of which are of some hot symbols, all of which the hash sends to one instance.

    Symbols are numbers, because only of numbers it is known here where they are hashed.
    """
    hot = keys_at(0, INSTANCES)[:hot_symbols]

    def tables(workload: Workload, rng: np.random.Generator) -> Iterator[pa.Table]:
        rows = workload.rows_per_batch
        span_us = round(rows / workload.rows_per_second * 1e6)
        for batch in range(workload.length.batches):
            cold = rng.integers(CANDIDATES, 2**40, rows)
            symbol = np.where(rng.random(rows) < hot_share, rng.choice(hot, rows), cold)
            times = np.sort(rng.integers(0, span_us, rows)) + START_US + batch * span_us
            side = rng.choice(np.array([-1, 1]), rows)
            yield pa.table(
                {
                    "symbol": symbol,
                    "at": pa.array(times).cast(TIMESTAMP),
                    "shares": side * rng.integers(1, _MOST_SHARES, rows),
                }
            )

    return tables


FULL = (
    Workload(
        name=WORDS,
        title="A running count and the last time of every word: Zipf 1.0, 50,000 rows per batch",
        tables=words(180_000),
        rows_per_batch=50_000,
        rows_per_second=10_000,
        window_s=None,
        length=Length(16, 8, slow=Length(4, 1)),
    ),
    Workload(
        name=COUNT,
        title="Words counted in windows of 10 s: Zipf 1.0, 400,000 rows per batch",
        tables=words(180_000),
        rows_per_batch=400_000,
        rows_per_second=10_000,
        window_s=10.0,
        length=Length(14, 6),
    ),
    Workload(
        name=SELF_JOIN,
        title="Self-join of trades within 1 s: 12 hot symbols hashed to one of 2 instances",
        tables=colliding_trades(12, 0.9),
        rows_per_batch=100_000,
        rows_per_second=1_000,
        window_s=1.0,
        length=Length(16, 8),
    ),
)

_WORDS, _COUNT, _SELF_JOIN = FULL

QUICK = (
    replace(
        _WORDS,
        title="A running count and the last time of every word: Zipf 1.0, 2,000 rows per batch",
        tables=words(5_000),
        rows_per_batch=2_000,
        length=Length(4, 2, slow=Length(2, 1)),
    ),
    replace(
        _COUNT,
        title="Words counted in windows of 1 s: Zipf 1.0, 20,000 rows per batch",
        tables=words(5_000),
        rows_per_batch=20_000,
        window_s=1.0,
        length=Length(4, 2),
    ),
    replace(
        _SELF_JOIN,
        title="Self-join of trades within 0.5 s: 12 hot symbols hashed to one of 2 instances",
        rows_per_batch=5_000,
        window_s=0.5,
        length=Length(5, 3),
    ),
)
