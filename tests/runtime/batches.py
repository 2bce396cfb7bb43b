"""Small micro-batches with skewed keys, ties and duplicates, for tests that kill things."""

from collections.abc import Iterator
from itertools import islice

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame

import skewless as sk
from skewless.runtime.stream import Stream

TIME_KIND = pa.timestamp("us", "UTC")
STEP_S = 10  # event time per batch
SPREAD_S = 15  # the batches overlap
START_S = 1_700_000_000
WITHIN = ("-12 seconds", "8 seconds")

Batch = tuple[pa.Table, pa.Table]


def endless(seed: int, rows: int = 25, stray_s: int = 0) -> Iterator[Batch]:
    """Batch after batch; with `stray_s` one row of ten is up to so much older than its batch."""
    rng = np.random.default_rng(seed)
    number = 0
    while True:
        yield (
            _table(rng, number, rows, stray_s, ("k", "lt", "a")),
            _table(rng, number, rows, stray_s, ("k", "rt", "b")),
        )
        number += 1


def batches(count: int, seed: int = 7, rows: int = 25, stray_s: int = 0) -> list[Batch]:
    return list(islice(endless(seed, rows, stray_s), count))


def build(left: DataFrame, right: DataFrame) -> Stream:
    """The join under test, on two instances."""
    return sk.join(left, right, **join_options(), balance=sk.Hash(2))


def join_options(watermark: str = "20 seconds") -> dict:
    return {"on": ["k"], "time": ("lt", "rt"), "within": WITHIN, "watermark": watermark}


def oracle_options(watermark: str = "20 seconds") -> dict:
    return {
        "on": [("k", "k")],
        "time": ("lt", "rt"),
        "within": WITHIN,
        "watermark": (watermark, watermark),
    }


def _table(
    rng: np.random.Generator, number: int, rows: int, stray_s: int, names: tuple[str, str, str]
) -> pa.Table:
    seconds = START_S + STEP_S * number + rng.integers(0, SPREAD_S, rows)
    stray = rng.random(rows) < 0.1
    seconds = seconds - stray * rng.integers(0, stray_s + 1, rows)
    keys = [f"key {k}" for k in rng.zipf(1.5, rows) % 6]
    return pa.table(
        {
            names[0]: pa.array(keys),
            names[1]: pa.array(seconds * 1_000_000).cast(TIME_KIND),
            names[2]: pa.array(1000 * number + np.arange(rows) // 2),  # some rows are equal
        }
    )
