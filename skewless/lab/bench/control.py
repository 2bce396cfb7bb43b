"""`skewless bench control`: what the driver does per batch, by the number of instances.

The engine, its storage and the policy are real; the tasks are not: each instance's report says that
it has written two segments of some partitions. So the driver alone is measured.
"""

import json
import pickle
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from rich.console import Console
from rich.progress import track
from rich.table import Table

from skewless.engine.engine import Attempt, Engine
from skewless.errors import SkewlessError
from skewless.lab.bench.machine import machine
from skewless.load.report import PartitionLoads, Report, write_report
from skewless.operators.join.bounds import LEFT, RIGHT, SIDES, Bounds
from skewless.operators.join.layout import Layout
from skewless.operators.join.operator import JoinOperator
from skewless.planning.auto import Auto
from skewless.routing.partitions import packed
from skewless.state.segment import Segment
from skewless.state.storage import Storage
from skewless.state.watermark import Delays

SEED = 7
SECOND = 1_000_000
WINDOW_BATCHES = 10  # of the window that a row lives for
BATCHES = 16  # the first fill the window, the rest are measured
QUICK_INSTANCES = (4, 16)
INSTANCES = (16, 128, 1000)
# Per batch, in seconds and bytes: what 1,000 instances are to stay below.
TARGETS = {"driver_s": 0.5, "commit_bytes": 4 * 2**20, "task_bytes": 256 * 2**10}


@dataclass(frozen=True)
class Cost:
    """What one batch cost the driver."""

    begin_s: float
    finish_s: float
    commit_bytes: int
    task_bytes: int

    @property
    def driver_s(self) -> float:
        return self.begin_s + self.finish_s


def run(
    *,
    instances: Sequence[int] = INSTANCES,
    quick: bool = False,
    plot: Path | None = None,
    json_path: Path | None = None,
    console: Console | None = None,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, Any]:
    """Time, commit and task per batch for every number of instances.

    >>> sorted(run(instances=[2], console=Console(quiet=True))["rows"][0])[:3]
    ['begin_s', 'commit_bytes', 'driver_s']
    """
    console = Console() if console is None else console
    sizes = QUICK_INSTANCES if quick else tuple(instances)
    rows = []
    for count in track(sizes, "Batches without tasks", console=console, transient=True):
        with tempfile.TemporaryDirectory(prefix="skewless-control-") as folder:
            rows.append(measure(Path(folder), count, clock))
    console.print(_table(rows))
    if plot is not None:
        _draw(rows, plot)
    result = {
        "benchmark": "control",
        "machine": machine(),
        "batches": BATCHES,
        "window_batches": WINDOW_BATCHES,
        "targets": TARGETS,
        "rows": rows,
    }
    if json_path is not None:
        json_path.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    return result


def measure(folder: Path, instances: int, clock: Callable[[], float]) -> dict[str, Any]:
    """The median batch once the window is full, and the slowest."""
    engine = Engine(Storage(str(folder)), (_operator(instances),), cores=instances)
    engine.open()
    rng = np.random.default_rng(SEED)
    costs = [_batch(engine, batch, rng, clock) for batch in range(BATCHES)]
    measured = costs[WINDOW_BATCHES:]
    median = {
        name: statistics.median(getattr(cost, name) for cost in measured)
        for name in ("begin_s", "finish_s", "driver_s", "commit_bytes", "task_bytes")
    }
    state = engine.begin(BATCHES).before.operators[0]
    return {
        "instances": instances,
        "partitions": state.route.partitions,
        "segments": len(state.segments),
        **{name: round(value, 6) for name, value in median.items()},
        "slowest_s": round(max(cost.driver_s for cost in measured), 6),
        "memory_bytes": psutil.Process().memory_info().rss,
    }


def _operator(instances: int) -> JoinOperator:
    window_us = WINDOW_BATCHES * SECOND
    return JoinOperator(
        layout=Layout(1, (), (), (), hash_is_key=True),
        bounds=Bounds(-window_us, window_us),
        delays=Delays({LEFT: 0, RIGHT: 0}),
        policy=Auto(instances),
        fingerprint={"operator": "join"},
    )


def _batch(
    engine: Engine, batch: int, rng: np.random.Generator, clock: Callable[[], float]
) -> Cost:
    started = clock()
    attempt = engine.begin(batch)
    begun = clock()
    for instance in range(attempt.parts[0].state.route.instances):
        _report(engine.storage, attempt, instance, rng)
    reported = clock()
    assert not engine.missing(attempt), "every instance has reported"
    engine.finish(attempt, {})
    finished = clock()
    root = Path(engine.storage.path(""))
    return Cost(
        begun - started,
        finished - reported,
        (root / "commits" / f"{batch:012d}.json").stat().st_size
        + sum(p.stat().st_size for p in (root / "manifests").glob(f"b{batch:012d}-*")),
        len(pickle.dumps(attempt.parts[0].task)),
    )


def _report(storage: Storage, attempt: Attempt, instance: int, rng: np.random.Generator) -> None:
    """What a task of a join leaves behind that had rows of all its partitions."""
    part = attempt.parts[0]
    owned = np.flatnonzero(part.state.route.table.owners == instance)
    rows = rng.poisson(100, len(owned)) + 1
    segments = [
        Segment(
            name=part.names.segment(instance, side, "0a1b2c3d-0000"),
            side=side,
            instance=instance,
            level=0,
            first_batch=attempt.batch,
            last_batch=attempt.batch,
            rows=int(rows.sum()),
            bytes=40 * int(rows.sum()),
            min_time_us=attempt.batch * SECOND,
            max_time_us=(attempt.batch + 1) * SECOND,
            bulk_time_us=(attempt.batch + 1) * SECOND,
            partitions=packed(owned),
            of_partitions=part.state.route.partitions,
            mixed_keys=False,
            checksum=instance,
        )
        for side in SIDES
    ]
    for segment in segments:
        storage.write_bytes(segment.path, b"rows")
    counts = dict.fromkeys(SIDES, int(rows.sum()))
    none = dict.fromkeys(SIDES, 0)
    newest = (attempt.batch + 1) * SECOND
    write_report(
        storage,
        part.names.report(instance),
        Report(
            instance=instance,
            rows=counts,
            replicas=none,
            late=none,
            null_keys=none,
            bad_rows=none,
            max_time_us=dict.fromkeys(SIDES, newest),
            matches=10 * int(rows.sum()),
            cpu_ms=float(rng.normal(100, 5)),
            wall_ms=float(rng.normal(110, 5)),
            peak_memory_bytes=2**28,
            segments=segments,
            replaced=[],
            partitions=PartitionLoads(owned.tolist(), (2 * rows).tolist(), (10 * rows).tolist()),
        ),
    )


def _draw(rows: Sequence[dict[str, Any]], path: Path) -> None:
    """Time by instances, beside a straight line through the largest."""
    try:
        from matplotlib.figure import Figure
    except ImportError as failure:
        raise SkewlessError("plot: needs matplotlib: pip install 'skewless[plots]'") from failure
    counts = [row["instances"] for row in rows]
    times = [1e3 * row["driver_s"] for row in rows]
    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.subplots()
    axes.plot(counts, times, "o-", label="begin + finish")
    axes.plot([0, counts[-1]], [0, times[-1]], "--", color="grey", label="linear")
    axes.set(xlabel="instances", ylabel="ms per batch", title="The driver's work per batch")
    axes.legend()
    figure.savefig(path)


def _table(rows: Sequence[dict[str, Any]]) -> Table:
    table = Table(title="The driver's work per batch, median")
    for name in ("instances", "segments", "begin", "finish", "slowest", "commit", "task"):
        table.add_column(name, justify="right")
    for row in rows:
        table.add_row(
            f"{row['instances']:,}",
            f"{row['segments']:,}",
            f"{1e3 * row['begin_s']:.0f} ms",
            f"{1e3 * row['finish_s']:.0f} ms",
            f"{1e3 * row['slowest_s']:.0f} ms",
            f"{row['commit_bytes'] / 2**10:,.0f} KiB",
            f"{row['task_bytes'] / 2**10:,.0f} KiB",
        )
    return table
