"""The evaluation of the Ls-Stream paper (§VI), run again on a simulated cluster."""

import os
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from rich.console import Console

from skewless.lab.console import progress_bar
from skewless.lab.reproduce.experiments import (
    SYSTEMS,
    WITH_MATRIX,
    ZIPFS,
    Reading,
    Result,
    Task,
    perform,
)
from skewless.lab.reproduce.output import evaluation, published
from skewless.lab.reproduce.report import draw, render, targets

READINGS: tuple[Reading, ...] = (
    "a quarter comparing",
    "same scan for all",
    "one group of 20",
    "index",
)
NODES = (6, 10, 14)
INSTANCES = (16, 32, 48, 56)
THRESHOLDS = (0.5, 1.0, 2.0, 4.0, 6.0)
REPEATS = 3  # of the headline: which keys meet on an instance is chance


def tasks(*, quick: bool, seed: int) -> Iterator[Task]:
    """Every point of every experiment."""
    zipfs = (0.2, 1.0) if quick else ZIPFS
    for zipf in zipfs:
        for system in SYSTEMS if quick else WITH_MATRIX:
            repeats = REPEATS if zipf == 1.0 and not quick else 1
            for s in range(seed, seed + repeats):
                yield Task("zipf", system, zipf, s, zipf=zipf, quick=quick)
            yield Task("zipf latency", system, zipf, seed, zipf=zipf, rate=5_000.0, quick=quick)
    for system in SYSTEMS:
        for nodes in (14,) if quick else NODES:
            yield Task("nodes", system, nodes, seed, join_instances=28, nodes=nodes, quick=quick)
        yield Task(
            "ride latency", system, 28, seed, join_instances=28, nodes=14, rate=4_500.0, quick=quick
        )
        for instances in (32,) if quick else INSTANCES:
            common: dict[str, Any] = {"join_instances": instances, "nodes": 14, "quick": quick}
            if not quick:
                yield Task("instances", system, instances, seed, **common)
            yield Task("instances latency", system, instances, seed, rate=3_000.0, **common)
        if not quick:
            for reading in READINGS:
                yield Task("readings", system, 1.0, seed, zipf=1.0, reading=reading)
    for threshold in (1.0, 6.0) if quick else THRESHOLDS:
        for zipf in (0.8,) if quick else (0.4, 0.8, 1.0):
            sweep: dict[str, Any] = {"zipf": zipf, "threshold": threshold, "quick": quick}
            if not quick:
                yield Task("threshold", "LsStream", threshold, seed, **sweep)
            yield Task("threshold latency", "LsStream", threshold, seed, rate=3_000.0, **sweep)


def run(*, out: Path, json_path: Path | None, quick: bool, seed: int) -> dict[str, Any]:
    """Run everything, print the tables, write figures to `out` and the result to `json_path`.

    `quick` takes fewer points, shorter runs and one seed: it shows that everything works.
    """
    out.mkdir(parents=True, exist_ok=True)
    console = Console()
    wanted = list(tasks(quick=quick, seed=seed))
    results = _perform_all(wanted, console)
    verdicts = targets(results, quick=quick)
    record = evaluation("Ls-Stream", results, verdicts, quick=quick, seed=seed)
    table = render(results, verdicts, quick=quick)
    return published(results, table, draw, record, out=out, json_path=json_path, console=console)


def _perform_all(wanted: list[Task], console: Console) -> list[Result]:
    """All results, in the order of the tasks; as many at once as there are cores."""
    done: dict[Task, Result] = {}
    workers = min(len(wanted), os.cpu_count() or 1)
    # Spawned: a forked worker would inherit whatever threads the caller has.
    pool = ProcessPoolExecutor(workers, mp_context=get_context("spawn"))
    with progress_bar(console) as progress, pool:
        bar = progress.add_task("simulating", total=len(wanted))
        for future in as_completed([pool.submit(perform, task) for task in wanted]):
            result = future.result()
            done[result.task] = result
            progress.update(bar, advance=1, description=result.task.experiment)
    return [done[task] for task in wanted]
