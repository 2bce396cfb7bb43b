"""The continuous queries of the rebalancing paper (§V), run on Spark under each policy."""

import os
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Console

from skewless.lab.bench.pipe import has_rows
from skewless.lab.console import progress_bar
from skewless.lab.reproduce.output import published
from skewless.lab.reproduce.rebalance_queries_report import comparisons, draw, render
from skewless.lab.reproduce.rebalance_topologies import TOPOLOGIES, Size, Topology
from skewless.lab.reproduce.rebalance_turns import Run, Turn, turn_of
from skewless.lab.workloads import tpch

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from skewless.runtime.writer import StreamWriter

FULL = Size(batches=10, word_rows=100_000, trade_rows=20_000, scale_factor=0.05)
QUICK = Size(batches=4, word_rows=5_000, trade_rows=2_000, scale_factor=0.01)
STREAMS = 3  # so many seeds: with two instances much depends on where the hot keys hash to
WARM_UP = 2


@dataclass(frozen=True)
class Trial:
    """One query under one policy, on one stream."""

    topology: Topology
    system: str
    seed: int


def trials(*, quick: bool, seed: int) -> Iterator[Trial]:
    """Everything to run: the policies of a query and stream follow each other, to be compared."""
    for topology in TOPOLOGIES:
        for stream in range(1 if quick else STREAMS):
            for system in topology.policies:
                yield Trial(topology, system, seed + stream)


def run(
    *, out: Path, json_path: Path | None, quick: bool, seed: int, instances: int
) -> dict[str, Any]:
    """Run every query, print the tables, write figures to `out` and the result to `json_path`.

    `quick` takes small inputs and one stream: it shows that everything works.
    """
    tpch.generator()  # what is missing is said before the work
    out.mkdir(parents=True, exist_ok=True)
    console = Console()
    size = QUICK if quick else FULL
    cores = min(instances, os.cpu_count() or 1)
    runs = _perform_all(list(trials(quick=quick, seed=seed)), size, instances, cores, console)
    compared = comparisons(runs)
    record = {
        "paper": "rebalance, queries",
        "quick": quick,
        "seed": seed,
        "instances": instances,
        "cores": cores,
        "size": asdict(size),
        "comparisons": compared,
        "runs": [r.as_json() for r in runs],
    }
    table = render(runs, compared, quick=quick)
    return published(runs, table, draw, record, out=out, json_path=json_path, console=console)


def follow(writer: "StreamWriter") -> tuple[Turn, ...]:
    """Start the query, wait until it has read everything, and give what its batches did."""
    query = writer.trigger(availableNow=True).start()
    try:
        query.awaitTermination()
        return tuple(turn_of(p) for p in query.recentProgress if has_rows(p))
    finally:
        query.stop()


def perform(
    spark: "SparkSession", trial: Trial, folder: Path, checkpoint: str, instances: int
) -> Run:
    """Run one query on the files of its folder, into the sink that keeps nothing."""
    stream = trial.topology.stream(spark, folder, trial.system, instances)
    writer = stream.writeStream.format("noop").option("checkpointLocation", checkpoint)
    return Run(trial.topology.name, trial.system, trial.seed, follow(writer), WARM_UP)


def _perform_all(
    wanted: list[Trial], size: Size, instances: int, cores: int, console: Console
) -> list[Run]:
    import skewless as sk

    runs: list[Run] = []
    warm: set[str] = set()
    progress = progress_bar(console)
    with tempfile.TemporaryDirectory(prefix="skewless-") as scratch, progress:
        bar = progress.add_task("starting Spark", total=len(wanted))
        spark = sk.session(master=f"local[{cores}, 4]", app_name="reproduce")
        try:
            for number, trial in enumerate(wanted):
                name = trial.topology.name
                progress.update(bar, description=f"{name}: {trial.system}")
                checkpoint = f"{scratch}/checkpoint-{number}"
                folder = Path(scratch) / f"{name}-{trial.seed}"
                if not folder.exists():
                    trial.topology.write(folder, size, np.random.default_rng(trial.seed))
                if name not in warm:
                    # Once for nothing, so that no policy waits for Java to compile the query.
                    perform(spark, trial, folder, f"{checkpoint}-warm-up", instances)
                    warm.add(name)
                runs.append(perform(spark, trial, folder, checkpoint, instances))
                spark.catalog.clearCache()
                progress.advance(bar)
        finally:
            spark.stop()
    return runs
