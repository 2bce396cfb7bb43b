"""A stream of stock trades whose hot symbols change at once in the middle."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skewless.errors import bad_argument
from skewless.lab.workloads.streams import TIMESTAMP, check_drawing, sorted_times
from skewless.lab.workloads.zipf import Zipf

SCHEMA = pa.schema(
    [("symbol", pa.string()), ("at", TIMESTAMP), ("account", pa.int64()), ("shares", pa.int64())]
)
_ACCOUNTS = 100_000
_MOST_SHARES = 1_000


@dataclass(frozen=True)
class Trades:
    """An exchange; the default number of symbols is that of the rebalancing paper's data.

    >>> table = next(Trades().batches(np.random.default_rng(1), rows=4, count=2))
    >>> table.schema.names
    ['symbol', 'at', 'account', 'shares']
    """

    symbols: int = 1_036
    exponent: float = 0.85
    rows_per_second: float = 2_000.0  # of event time

    def __post_init__(self) -> None:
        if self.symbols < 1:
            raise bad_argument("symbols", self.symbols, "at least 1")
        check_drawing(self.exponent, self.rows_per_second)

    def batches(self, rng: np.random.Generator, *, rows: int, count: int) -> Iterator[pa.Table]:
        """Yield `count` tables of so many rows, in the order of their event times.

        From batch `count // 2` on other symbols are the hot ones. Every event of a batch is later
        than every event of the batch before it; bought shares are positive, sold ones negative.
        """
        before, after = (Zipf(self.exponent, self.symbols, rng) for _ in range(2))
        span_us = round(rows / self.rows_per_second * 1e6)
        for batch in range(count):
            zipf = before if batch < count // 2 else after
            number = pc.utf8_lpad(pa.array(zipf.sample(rows)).cast(pa.string()), 4, "0")
            times = sorted_times(rng, rows, batch, span_us)
            side = rng.choice(np.array([-1, 1]), rows)
            yield pa.table(
                [
                    pc.binary_join_element_wise("S", number, ""),
                    times,
                    pa.array(rng.integers(0, _ACCOUNTS, rows)),
                    pa.array(side * rng.integers(1, _MOST_SHARES, rows)),
                ],
                schema=SCHEMA,
            )
