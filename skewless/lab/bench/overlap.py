"""`skewless bench overlap`: joins by common items, beside a nested loop and Spark's own means."""

import os
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console, Group, RenderableType
from rich.text import Text

from skewless.kernels.conditions import SetColumn, SetCondition
from skewless.kernels.equijoin import probe
from skewless.kernels.hashing import xxhash64
from skewless.kernels.runs import SortedRun, index_rows
from skewless.kernels.sets import ItemSets, signatures_of
from skewless.kernels.warmup import compile_kernels, compile_sets
from skewless.lab.bench.machine import busy_share, cores, driver_memory
from skewless.lab.bench.pipe import session, settings, to_nowhere
from skewless.lab.bench.record import Record
from skewless.lab.bench.table import (
    busy_remarks,
    duration,
    error_remarks,
    narrow,
    number,
    times,
    verdict_remarks,
)
from skewless.lab.bench.verdict import SKEWLESS, Target, judged
from skewless.lab.workloads.sets import SetStreams
from skewless.state.segment import times_us

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

AT_LEAST = 3
REACH_S = 100  # both ways: a window of 200 s
FILES = 10
INDEX, NESTED = "index", "nested loop"

# A contender does the whole join and tells how many pairs it has found, if it knows.
Contender = Callable[[], int | None]


@dataclass(frozen=True)
class Part:
    """Contenders on the same streams, each run `repeats` times in turn, after once to warm up."""

    title: str
    streams: SetStreams
    repeats: int
    targets: tuple[Target, ...]


IN_MEMORY = (Target("times_nested", "≥ 20 × a nested loop", 20, at_least=True),)
ON_SPARK = (Target("times_spark_best", "≥ 10 × Spark's best", 10, at_least=True),)
FULL = {
    "memory": Part(
        "in one process: an inverted index, and a nested loop in numpy",
        SetStreams(rows_per_s=25, seconds=400, items=100, exponent=0.6),
        repeats=5,
        targets=IN_MEMORY,
    ),
    "spark": Part(
        "on Spark: sk.join as a stream, and explode, join, group, filter as a batch",
        SetStreams(rows_per_s=100, seconds=600, items=1_000, exponent=0.6),
        repeats=3,
        targets=ON_SPARK,
    ),
}
QUICK = {
    name: Part(part.title, SetStreams(5, 100, items=100, exponent=0.6), 1, part.targets)
    for name, part in FULL.items()
}


def run(
    *,
    json_path: Path | None,
    quick: bool,
    parts: Sequence[str] = tuple(FULL),
    console: Console | None = None,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, Any]:
    """Measures the parts, prints their tables, returns everything.

    >>> run(json_path=None, quick=True, parts=["memory"])["errors"]  # doctest: +SKIP
    []
    """
    console = console or Console(highlight=False)
    record = Record(
        "overlap",
        "parts",
        quick=quick,
        json_path=json_path,
        render=render,
        console=console,
        more={"at_least": AT_LEAST, "window_s": 2 * REACH_S},
    )
    for name in parts:
        part = (QUICK if quick else FULL)[name]
        busy = busy_share()
        left, right = part.streams.tables()
        if name == "memory":
            outcome = measure(part, in_memory(left, right), clock=clock)
        else:
            with tempfile.TemporaryDirectory(prefix="skewless-bench-") as folder:
                outcome = _on_spark(part, left, right, Path(folder), clock)
        outcome["busy_share"] = busy
        outcome["targets"] = judged(part.targets, outcome["ratios"], quick=quick)
        record.add(name, outcome)
    return record.saved()


def measure(
    part: Part, contenders: Mapping[str, Contender], *, clock: Callable[[], float]
) -> dict[str, Any]:
    """The seconds of every contender, by turns, so that a busy moment is nobody's alone."""
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    pairs: dict[str, int] = {}
    for turn in range(part.repeats + 1):
        for name, contender in contenders.items():
            began = clock()
            found = contender()
            if turn:
                seconds[name].append(clock() - began)
            if found is not None:
                pairs[name] = found
    runs = {name: spread(taken) for name, taken in seconds.items()}
    told = set(pairs.values())
    errors = [] if len(told) < 2 else [f"the contenders found different pairs: {pairs}"]
    return {
        "title": part.title,
        "parameters": {**asdict(part.streams), "repeats": part.repeats},
        "pairs": max(told, default=None),
        "runs": runs,
        "ratios": ratios({name: run["median"] for name, run in runs.items()}),
        "errors": errors,
    }


def spread(taken: Sequence[float]) -> dict[str, float]:
    """
    >>> spread([3.0, 1.0, 2.0])
    {'median': 2.0, 'least': 1.0, 'most': 3.0}
    """
    return {"median": statistics.median(taken), "least": min(taken), "most": max(taken)}


def ratios(medians: Mapping[str, float]) -> dict[str, float]:
    """How many times as long the others take.

    >>> ratios({"index": 1.0, "nested loop": 30.0})
    {'times_nested': 30.0}
    """
    found = {}
    if INDEX in medians and NESTED in medians:
        found["times_nested"] = medians[NESTED] / medians[INDEX]
    others = [seconds for name, seconds in medians.items() if name.startswith("spark")]
    if SKEWLESS in medians and others:
        found["times_spark_best"] = min(others) / medians[SKEWLESS]
    return found


def in_memory(left: pa.Table, right: pa.Table) -> dict[str, Contender]:
    """The kernels of a task on all rows at once, and every row against all of its window."""
    compile_kernels()
    compile_sets()
    return {INDEX: lambda: indexed(left, right), NESTED: lambda: nested(left, right)}


_COLUMN = SetColumn("items", "h", "w", "i", "signature")


def indexed(left: pa.Table, right: pa.Table) -> int:
    """How many pairs the kernels find, from items to the last check."""
    runs = [_run(side) for side in (left, right)]
    condition = SetCondition(_COLUMN, AT_LEAST, weighted=False, hash_is_item=True)
    reach_us = REACH_S * 1_000_000
    found = probe(runs[0], runs[1], -reach_us, reach_us, [], hash_is_key=True)
    return sum(
        int(condition.qualifying(runs[0], runs[1], needle, other).sum())
        for needle, other in found.pairs([], 65_536)
    )


def _run(side: pa.Table) -> SortedRun:
    column = side.column("items").combine_chunks()
    offsets = column.offsets.to_numpy()
    hashes = xxhash64(column.values.to_numpy()).view(np.int64)
    owner = np.repeat(np.arange(len(column)), np.diff(offsets))
    hashes = hashes[np.lexsort((hashes, owner))]
    sets = ItemSets(offsets, hashes)
    rows = pa.record_batch(
        {
            "items": pa.ListArray.from_arrays(column.offsets, pa.array(hashes)),
            "signature": pa.array(signatures_of(sets)),
        }
    )
    moments = times_us(side.column("ts").combine_chunks())
    row, postings = sets.postings(AT_LEAST)
    return index_rows(postings, moments[row], rows, row)


def nested(left: pa.Table, right: pa.Table) -> int:
    """How many pairs are found by comparing every set with all of its window, in numpy."""
    items = [_padded(side, nothing) for side, nothing in ((left, -1), (right, -2))]
    moments = [times_us(side.column("ts").combine_chunks()) for side in (left, right)]
    reach_us = REACH_S * 1_000_000
    begin = np.searchsorted(moments[1], moments[0] - reach_us)
    end = np.searchsorted(moments[1], moments[0] + reach_us, side="right")
    found = 0
    for row, (first, last) in enumerate(zip(begin.tolist(), end.tolist(), strict=True)):
        common = np.zeros(last - first, np.int8)
        for item in items[0][row]:
            common += (items[1][first:last] == item).any(axis=1)
        found += int((common >= AT_LEAST).sum())
    return found


def _padded(side: pa.Table, nothing: int) -> np.ndarray[Any, np.dtype[np.int32]]:
    """The sets as lines of one width, the rest filled with what is no item."""
    column = side.column("items").combine_chunks()
    offsets = column.offsets.to_numpy()
    sizes = np.diff(offsets)
    lines = np.full((len(sizes), sizes.max(initial=1)), nothing, np.int32)
    row = np.repeat(np.arange(len(sizes)), sizes)
    lines[row, np.arange(len(row)) - offsets[:-1][row]] = column.values.to_numpy()
    return lines


def _on_spark(
    part: Part, left: pa.Table, right: pa.Table, folder: Path, clock: Callable[[], float]
) -> dict[str, Any]:
    for name, side in (("left", left), ("right", right)):
        write(side, folder / name, part.streams.seconds)
    config = {**settings(driver_memory()), "spark.sql.shuffle.partitions": str(cores())}
    spark = session(cores(), config)
    try:
        return measure(part, on_spark(spark, folder), clock=clock)
    finally:
        spark.stop()


def write(side: pa.Table, folder: Path, seconds: int) -> None:
    """One file for every stretch of time, in the order in which the source takes them."""
    folder.mkdir()
    moments = times_us(side.column("ts").combine_chunks())
    cuts = np.searchsorted(moments, np.linspace(0, seconds * 1_000_000, FILES + 1))
    for number_, (first, last) in enumerate(pairwise(cuts)):
        path = folder / f"{number_:06d}.parquet"
        pq.write_table(side.slice(first, last - first), path)
        os.utime(path, (1_000_000_000 + 10 * number_,) * 2)


def on_spark(spark: "SparkSession", folder: Path) -> dict[str, Contender]:
    """Skewless as a stream of ten batches; Spark on everything at once, in two ways to join."""
    left, right = (str(folder / side) for side in ("left", "right"))

    def batch(hint: str) -> Contender:
        return lambda: _consumed(
            exploded(spark.read.parquet(left), spark.read.parquet(right), hint)
        )

    return {
        SKEWLESS: lambda: _skewless(spark, left, right, folder),
        "spark, sort-merge": batch("merge"),
        "spark, hash": batch("shuffle_hash"),
    }


def _skewless(spark: "SparkSession", left: str, right: str, folder: Path) -> int:
    import skewless as sk

    schema = spark.read.parquet(left).schema
    sides = [
        spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(path)
        for path in (left, right)
    ]
    matches = sk.join(
        sides[0],
        sides[1],
        match=sk.Overlap("items", AT_LEAST),
        time="ts",
        within=f"{REACH_S} seconds",
        watermark="0 seconds",
        balance=sk.Hash(cores()),
    )
    with tempfile.TemporaryDirectory(dir=folder) as checkpoint:
        query = to_nowhere(matches, f"{checkpoint}/c")
        query.awaitTermination()
        told = [p["skewless"]["operators"][0]["matches"] for p in query.recentProgress]
    return sum(told)


def exploded(left: "DataFrame", right: "DataFrame", hint: str) -> "DataFrame":
    """The pairs by Spark's own means: one row per item, joined, counted, filtered."""
    from pyspark.sql import functions as F

    sides = [
        side.select(
            F.col("id").alias(f"{name}_id"), F.col("ts").alias(f"{name}_ts"), F.explode("items")
        )
        for name, side in (("left", left), ("right", right))
    ]
    reach = f"INTERVAL {REACH_S} SECONDS"
    near = f"right_ts BETWEEN left_ts - {reach} AND left_ts + {reach}"
    pairs = sides[0].join(sides[1].hint(hint), "col").where(near)
    counted = pairs.groupBy("left_id", "right_id").count()
    return counted.where(F.col("count") >= AT_LEAST)


def _consumed(pairs: "DataFrame") -> None:
    pairs.write.format("noop").mode("overwrite").save()


def render(outcome: dict[str, Any]) -> RenderableType:
    """The table of one part."""
    table = narrow("contender", "median s", "least", "most")
    for name, taken in outcome["runs"].items():
        table.add_row(name, *(duration(taken[key]) for key in ("median", "least", "most")))
    shown = {"times_nested": times, "times_spark_best": times}
    return Group(
        Text(outcome["title"], style="bold"),
        table,
        Text(f"{number(outcome['pairs'])} pairs"),
        *verdict_remarks(outcome, shown),
        *busy_remarks(outcome["busy_share"]),
        *error_remarks(outcome),
    )
