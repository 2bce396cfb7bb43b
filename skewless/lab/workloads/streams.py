"""Two-sided keyed event streams for benchmarks, as Arrow tables and as replayable files."""

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from skewless.errors import bad_argument
from skewless.lab.workloads.zipf import Zipf

START_US = 1_704_067_200_000_000  # 2024-01-01T00:00:00Z: fixed, so that equal seeds give equal data
JITTER_US = 5_000
TIMESTAMP = pa.timestamp("us", tz="UTC")
SCHEMA = pa.schema([("k", pa.int64()), ("ts", TIMESTAMP), ("v", pa.int64())])


# The keys of so many rows of a batch.
Keys = Callable[[int, int], npt.NDArray[np.int64]]


def batches(
    rng: np.random.Generator,
    *,
    keys: int,
    exponent: float,
    rows_per_batch: int,
    batches: int,
    rows_per_second: float,
    start_us: int = START_US,
    left_share: float = 0.5,
) -> Iterator[tuple[pa.Table, pa.Table]]:
    """Yield (left, right) per batch: k a Zipf key, ts rising with small jitter, v a unique row id.

    `rows_per_batch` and `rows_per_second` (of event time) count both sides together; the left side
    gets its share. Every event of a batch is later than every event of the batch before it, so that
    no row is late even with a watermark delay of zero.
    """
    zipf = Zipf(exponent, keys, rng)
    return keyed_batches(
        rng,
        lambda batch, rows: zipf.sample(rows),
        rows_per_batch=rows_per_batch,
        batches=batches,
        rows_per_second=rows_per_second,
        start_us=start_us,
        left_share=left_share,
    )


def keyed_batches(
    rng: np.random.Generator,
    keys: Keys,
    *,
    rows_per_batch: int,
    batches: int,
    rows_per_second: float,
    start_us: int = START_US,
    left_share: float = 0.5,
) -> Iterator[tuple[pa.Table, pa.Table]]:
    """The same with keys from any source: `keys(batch, rows)`, called for the left side first."""
    if rows_per_batch < 2:
        raise ValueError(f"rows_per_batch must be at least 2, got {rows_per_batch}")
    if batches < 0:
        raise ValueError(f"batches must be at least 0, got {batches}")
    if not rows_per_second > 0:
        raise ValueError(f"rows_per_second must be above 0, got {rows_per_second}")
    span_us = round(rows_per_batch / rows_per_second * 1e6)
    if span_us < 1:
        raise ValueError(f"a batch must span at least 1 µs: {rows_per_second} rows/s is too many")
    # Checked above and generated below, so that a wrong argument raises at the call.
    left_rows = int(rows_per_batch * left_share)
    if not 0 < left_rows < rows_per_batch:
        raise ValueError(f"left_share must leave rows to both sides, got {left_share}")
    return _generate(rng, keys, rows_per_batch, left_rows, batches, span_us, start_us=start_us)


def _generate(
    rng: np.random.Generator,
    keys: Keys,
    rows_per_batch: int,
    left_rows: int,
    count: int,
    span_us: int,
    *,
    start_us: int,
) -> Iterator[tuple[pa.Table, pa.Table]]:
    right_rows = rows_per_batch - left_rows
    for batch in range(count):
        first_us = start_us + batch * span_us
        first_id = batch * rows_per_batch
        left = _side(rng, keys(batch, left_rows), first_us, span_us, first_id)
        right = _side(rng, keys(batch, right_rows), first_us, span_us, first_id + left_rows)
        yield left, right


def _side(
    rng: np.random.Generator,
    keys: npt.NDArray[np.int64],
    first_us: int,
    span_us: int,
    first_id: int,
) -> pa.Table:
    rows = len(keys)
    return pa.table(
        [
            pa.array(keys),
            pa.array(_event_times(rng, rows, first_us, span_us)).cast(TIMESTAMP),
            pa.array(np.arange(first_id, first_id + rows, dtype=np.int64)),
        ],
        schema=SCHEMA,
    )


def _event_times(
    rng: np.random.Generator, rows: int, first_us: int, span_us: int
) -> npt.NDArray[np.int64]:
    even = np.arange(rows, dtype=np.int64) * span_us // rows
    jitter = rng.integers(-JITTER_US, JITTER_US, size=rows, endpoint=True)
    times: npt.NDArray[np.int64] = first_us + np.clip(even + jitter, 0, span_us - 1)
    return times


def sorted_times(rng: np.random.Generator, rows: int, batch: int, span_us: int) -> pa.Array:
    """Event times drawn from the span of a batch, in order; batch 0 begins at `START_US`."""
    times = np.sort(rng.integers(0, span_us, rows)) + START_US + batch * span_us
    return pa.array(times).cast(TIMESTAMP)


def check_drawing(exponent: float, rows_per_second: float) -> None:
    """Refuse what no keys and no event times can be drawn from."""
    if not (np.isfinite(exponent) and exponent >= 0):
        raise bad_argument("exponent", exponent, "a finite number of at least 0")
    if not rows_per_second > 0:
        raise bad_argument("rows_per_second", rows_per_second, "a number above 0")


def write_table(table: pa.Table, path: Path, *, modified_s: float | None = None) -> None:
    """Write one parquet file that a reader of its folder sees complete or not at all."""
    # Spark's file sources skip names that start with a dot.
    unfinished = path.with_name(f".{path.name}")
    pq.write_table(table, unfinished)
    if modified_s is not None:
        os.utime(unfinished, (modified_s, modified_s))
    unfinished.rename(path)


def write_stream(folder: Path, tables: Iterable[pa.Table]) -> Path:
    """Write one parquet file per micro-batch into a new folder, and return it."""
    folder.mkdir(parents=True)
    for number, table in enumerate(tables):
        _write_batch(folder, number, table)
    return folder


def _write_batch(folder: Path, number: int, table: pa.Table) -> None:
    # Spark's file source takes the oldest files first, so with `maxFilesPerTrigger` = 1 it replays
    # exactly these batches in order. The modification times are a second apart, because files
    # written in the same millisecond have no order.
    path = folder / f"batch-{number:06d}.parquet"
    write_table(table, path, modified_s=START_US / 1e6 + number)


def write_batches(
    directory: Path, batches: Iterable[tuple[pa.Table, pa.Table]]
) -> tuple[Path, Path]:
    """Write one parquet file per side and batch; returns the folders of both sides."""
    left_dir, right_dir = directory / "left", directory / "right"
    for side in (left_dir, right_dir):
        side.mkdir(parents=True, exist_ok=True)
        if any(side.iterdir()):
            raise FileExistsError(f"{side} is not empty: its files would be replayed too")
    for number, tables in enumerate(batches):
        for side, table in zip((left_dir, right_dir), tables, strict=True):
            _write_batch(side, number, table)
    return left_dir, right_dir
