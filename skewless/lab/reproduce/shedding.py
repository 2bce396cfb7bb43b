"""The evaluation of the load shedding paper (§6), run again on a simulated join."""

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from rich.console import Console

from skewless.errors import bad_argument
from skewless.lab.console import progress_bar
from skewless.lab.reproduce.output import published
from skewless.lab.reproduce.shedding_experiments import (
    Point,
    Result,
    cashtag_points,
    measured_points,
    perform,
    points,
    time_of_a_comparison,
)
from skewless.lab.reproduce.shedding_report import draw, render, targets
from skewless.planning.checks import check_whole

REPEATS = 5
FEWER_REPEATS = 3  # of the many points on basic windows
Task = tuple[Point, int, int]  # point, seed, repeat


def tasks(*, quick: bool, seeds: int, cashtags: Path | None) -> Iterator[Task]:
    """Every point under a budget of comparisons with every seed."""
    for point in (*points(quick=quick), *(cashtag_points(cashtags) if cashtags else ())):
        for seed in range(1, seeds + 1):
            yield point, seed, 0


def measured_tasks(*, quick: bool) -> Iterator[Task]:
    """Every measured point again and again, always with seed 1: what differs is the machine."""
    for point in measured_points(quick=quick):
        often = FEWER_REPEATS if point.steady else REPEATS
        for repeat in range(1 if quick else often):
            yield point, 1, repeat


def run(
    *, out: Path, json_path: Path | None, quick: bool, seeds: int, cashtags: Path | None = None
) -> dict[str, Any]:
    """Run everything, print the tables, write figures to `out` and the result to `json_path`.

    `quick` takes fewer points and one seed. `cashtags` is a parquet file with the columns ts and
    symbol; without it the experiment on real posts is left out.
    """
    check_whole("seeds", seeds, 1, 1_000)
    if cashtags is not None and not cashtags.is_file():
        raise bad_argument("cashtags", str(cashtags), "a parquet file")
    out.mkdir(parents=True, exist_ok=True)
    console = Console()
    seeds = 1 if quick else seeds
    # Measured first, while no other thread of ours runs; this also compiles the loops.
    comparison_s = time_of_a_comparison(quick=quick)
    results = _measure(list(measured_tasks(quick=quick)), comparison_s, console)
    results += _perform_all(list(tasks(quick=quick, seeds=seeds, cashtags=cashtags)), console)
    verdicts = targets(results, quick=quick)
    record = {
        "paper": "load shedding",
        "quick": quick,
        "seeds": seeds,
        "comparisonNs": 1e9 * comparison_s,
        "targets": verdicts,
        "results": [result.as_json() for result in results],
    }
    table = render(results, verdicts, comparison_s)
    return published(results, table, draw, record, out=out, json_path=json_path, console=console)


def _measure(wanted: list[Task], comparison_s: float, console: Console) -> list[Result]:
    results = []
    with progress_bar(console) as progress:
        bar = progress.add_task("measuring", total=len(wanted))
        for point, seed, repeat in wanted:
            progress.update(bar, description=point.experiment)
            results.append(perform(point, seed, repeat, comparison_s))
            progress.advance(bar)
    return results


def _perform_all(wanted: list[Task], console: Console) -> list[Result]:
    """All results, in the order of the tasks. Threads will do: the inner loop is compiled."""
    done: dict[Task, Result] = {}
    with (
        progress_bar(console) as progress,
        ThreadPoolExecutor(os.cpu_count() or 1) as pool,
    ):
        bar = progress.add_task("simulating", total=len(wanted))
        for future in as_completed([pool.submit(perform, *task) for task in wanted]):
            result = future.result()
            done[result.point, result.seed, result.repeat] = result
            progress.update(bar, advance=1, description=result.point.experiment)
    return [done[task] for task in wanted]
