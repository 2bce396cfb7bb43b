"""The evaluation of the POSG paper (§V), run again on simulated instances."""

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from rich.console import Console

from skewless.lab.console import progress_bar
from skewless.lab.reproduce.output import evaluation, published
from skewless.lab.reproduce.posg_experiments import Point, Result, perform, points
from skewless.lab.reproduce.posg_report import draw, render, targets
from skewless.planning.checks import check_whole

# Long streams vary less from seed to seed.
_LONG = ("series", "tweets")
_LONG_SEEDS = 10


def tasks(*, quick: bool, seeds: int) -> Iterator[tuple[Point, int]]:
    """Every point with every seed."""
    for point in points(quick=quick):
        count = min(seeds, _LONG_SEEDS) if point.experiment in _LONG else seeds
        for seed in range(1, count + 1):
            yield point, seed


def run(*, out: Path, json_path: Path | None, quick: bool, seeds: int) -> dict[str, Any]:
    """Run everything, print the tables, write figures to `out` and the result to `json_path`.

    `quick` takes fewer points, shorter streams and three seeds at most.
    """
    check_whole("seeds", seeds, 1, 10_000)
    out.mkdir(parents=True, exist_ok=True)
    console = Console()
    if quick:
        seeds = min(seeds, 3)
    results = _perform_all(list(tasks(quick=quick, seeds=seeds)), console)
    verdicts = targets(results, quick=quick)
    record = evaluation("POSG", results, verdicts, quick=quick, seeds=seeds)
    table = render(results, verdicts, quick=quick)
    return published(results, table, draw, record, out=out, json_path=json_path, console=console)


def _perform_all(wanted: list[tuple[Point, int]], console: Console) -> list[Result]:
    """All results, in the order of the tasks. Threads will do: the inner loop is compiled."""
    done: dict[tuple[Point, int], Result] = {}
    # Compiled once, before the threads begin.
    perform(Point("skew", 0.0, tuples=64), 0)
    with (
        progress_bar(console) as progress,
        ThreadPoolExecutor(os.cpu_count() or 1) as pool,
    ):
        bar = progress.add_task("simulating", total=len(wanted))
        for future in as_completed([pool.submit(perform, *task) for task in wanted]):
            result = future.result()
            done[result.point, result.seed] = result
            progress.update(bar, advance=1, description=result.point.experiment)
    return [done[task] for task in wanted]
