"""Too fast: two streams of posts, joined by common tags, faster than the join can go.

It runs the join twice on the same input, without shedding and with it, and draws how long batches
took and how many of their results they gave. If your machine keeps up, raise --rate.
"""

import argparse
import os
import sys
import tempfile
import time
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

import skewless as sk

SCHEMA = "at timestamp, tags array<long>"
SIDES = {"left": 0.0, "right": 6.0}  # what is popular on the right was so on the left 6 s ago
TAGS, TAGS_PER_POST = 100, 5
FILE_S = 0.5
MAX_LATENCY_S = 2.0


def write_posts(folder: Path, seconds: float, rate: float) -> None:
    """One file per side and half a second; popular tags change all the time."""
    rng = np.random.default_rng(7)
    popularity = np.arange(1, TAGS + 1) ** -0.8
    popularity /= popularity.sum()
    rows = round(rate * FILE_S)
    for side, lag_s in SIDES.items():
        (folder / side).mkdir(parents=True)
        for number in range(round(seconds / FILE_S)):
            at_s = FILE_S * (number + np.sort(rng.random(rows)))
            rank = rng.choice(TAGS, (rows, TAGS_PER_POST), p=popularity)
            tags = (rank + np.floor(5 * (at_s - lag_s)).astype(int)[:, None]) % TAGS
            table = pa.table(
                {
                    "at": pa.array((1e6 * at_s).astype(int)).cast(pa.timestamp("us", "UTC")),
                    "tags": pa.FixedSizeListArray.from_arrays(tags.ravel(), TAGS_PER_POST).cast(
                        pa.list_(pa.int64())
                    ),
                }
            )
            path = folder / side / f"{number:06d}.parquet"
            pq.write_table(table, path)
            os.utime(path, (1_000_000_000 + number,) * 2)  # the source takes the oldest first


def start(spark: SparkSession, folder: Path, shed: sk.Shed | None) -> Any:
    """Which posts have three tags in common, within ten seconds?"""
    left, right = (spark.readStream.schema(SCHEMA).parquet(str(folder / side)) for side in SIDES)
    pairs = sk.join(
        left,
        right,
        match=sk.Overlap("tags", at_least=3),
        time="at",
        within="10 seconds",
        watermark="0 seconds",
        shed=shed,
    )
    sink = pairs.writeStream.format("noop").option("checkpointLocation", f"{folder}/checkpoint")
    return sink.trigger(processingTime=f"{MAX_LATENCY_S} seconds").start()


def run(spark: SparkSession, posts: Path, folder: Path, shed: sk.Shed | None) -> list[Any]:
    """The progress of the join, while files appear one after the other."""
    for side in SIDES:
        (folder / side).mkdir(parents=True)
    query = start(spark, folder, shed)
    try:
        for number, name in enumerate(sorted(os.listdir(posts / "left"))):
            for side in SIDES:
                os.link(posts / side / name, folder / side / name)
            if number == 0:
                query.processAllAvailable()  # the first batch starts Python and compiles
                began = time.monotonic()
            time.sleep(max(0.0, began + (number + 1) * FILE_S - time.monotonic()))
        query.awaitTermination(2 * MAX_LATENCY_S)
        return [p for p in query.recentProgress if p["numInputRows"]][1:]
    finally:
        query.stop()


def course(progress: list[Any]) -> list[tuple[float, float, float]]:
    """Of every batch: when it ended, how long it took, which part of its results it gave."""
    points = []
    for record in progress:
        latency_s = record["durationMs"]["triggerExecution"] / 1e3
        ended_s = datetime.fromisoformat(record["timestamp"]).timestamp() + latency_s
        join = record["skewless"]["operators"][0]
        missed = join["shed"]["missed"] if "shed" in join else 0.0
        every = join["matches"] + max(0.0, missed)
        points.append((ended_s, latency_s, join["matches"] / every if every else 1.0))
    return [(ended_s - points[0][0] + points[0][1], *rest) for ended_s, *rest in points]


def draw(courses: dict[str, list[tuple[float, float, float]]], path: Path) -> None:
    """Needs matplotlib: pip install 'skewless[plots]'."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 6), dpi=130, layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True)
    for name, points in courses.items():
        ended, latency, given = zip(*points, strict=True)
        above.plot(ended, latency, "-o", markersize=3, label=name)
        below.plot(ended, given, "-o", markersize=3, label=name)
    above.axhline(MAX_LATENCY_S, color="grey", linestyle=":", label="max_latency")
    above.set(ylabel="seconds per batch", ylim=(0, None))
    below.set(ylabel="results given ÷ all", xlabel="seconds", ylim=(0, 1.05))
    above.legend()
    figure.savefig(path)


def main(arguments: list[str] | None = None, spark: SparkSession | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--seconds", type=float, default=40, help="how long posts come (default: 40)"
    )
    parser.add_argument(
        "--rate", type=float, default=12_000, help="posts per second and side (default: 12000)"
    )
    parser.add_argument(
        "--out", type=Path, default=Path("too_fast.png"), help="the figure (default: too_fast.png)"
    )
    options = parser.parse_args(arguments)
    for name in ("seconds", "rate"):
        if not getattr(options, name) > 0:
            parser.error(f"--{name}: got {getattr(options, name)}; takes a number above 0")
    if not options.out.absolute().parent.is_dir():
        parser.error(f"--out: there is no folder {options.out.absolute().parent}")
    if spark is None:
        spark = sk.session()
        # A query that is stopped while it is far behind leaves long stack traces.
        spark.sparkContext.setLogLevel("OFF")
    courses = {}
    with tempfile.TemporaryDirectory() as name:
        posts = Path(name) / "posts"
        write_posts(posts, options.seconds, options.rate)
        for title, shed in (
            ("without shedding", None),
            ("with shedding", sk.Shed(max_latency=f"{MAX_LATENCY_S} seconds")),
        ):
            sys.stdout.write(f"{title}: running\n")
            points = course(run(spark, posts, Path(name) / title, shed))
            courses[title] = points
            longest = max(latency for _, latency, _ in points)
            sys.stdout.write(f"{title}: {len(points)} batches, the longest {longest:.1f} s\n")
    draw(courses, options.out)
    sys.stdout.write(f"drawn: {options.out}\n")


if __name__ == "__main__":
    main()
