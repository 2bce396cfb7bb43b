"""A stream of words as in microblogs: Zipf's law, with frequencies that change slowly."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skewless.errors import bad_argument
from skewless.lab.workloads.streams import TIMESTAMP, check_drawing, sorted_times
from skewless.lab.workloads.zipf import Zipf

SCHEMA = pa.schema([("word", pa.string()), ("at", TIMESTAMP)])


@dataclass(frozen=True)
class Words:
    """A vocabulary and how its use changes.

    Before every batch but the first a share `drift` of the words change places in popularity, in
    pairs drawn at random.

    >>> next(Words(words=100).batches(np.random.default_rng(1), rows=5, count=1)).num_rows
    5
    """

    words: int = 180_000
    exponent: float = 1.0
    drift: float = 0.02
    rows_per_second: float = 10_000.0  # of event time

    def __post_init__(self) -> None:
        if self.words < 2:
            raise bad_argument("words", self.words, "at least 2")
        if not 0 <= self.drift <= 1:
            raise bad_argument("drift", self.drift, "a share from 0 to 1")
        check_drawing(self.exponent, self.rows_per_second)

    def batches(self, rng: np.random.Generator, *, rows: int, count: int) -> Iterator[pa.Table]:
        """Yield `count` tables of so many rows, in the order of their event times.

        Every event of a batch is later than every event of the batch before it.
        """
        zipf = Zipf(self.exponent, self.words, rng)
        span_us = round(rows / self.rows_per_second * 1e6)
        # The word that stands where the sampler draws a key: swapping two swaps their frequencies.
        word_of = np.arange(self.words)
        pairs = round(self.drift * self.words / 2)
        for batch in range(count):
            if batch:
                first, second = rng.permutation(self.words)[: 2 * pairs].reshape(2, pairs)
                word_of[first], word_of[second] = word_of[second], word_of[first]
            number = pa.array(word_of[zipf.sample(rows)]).cast(pa.string())
            times = sorted_times(rng, rows, batch, span_us)
            yield pa.table(
                [pc.binary_join_element_wise("word", number, "-"), times],
                schema=SCHEMA,
            )
