"""The evaluation of the SWARM paper (§6), run again on simulated executors."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from skewless.errors import bad_argument
from skewless.lab.console import progress_bar
from skewless.lab.reproduce.output import evaluation, published
from skewless.lab.reproduce.swarm_experiments import Point, Result, perform, points
from skewless.lab.reproduce.swarm_figures import draw
from skewless.lab.reproduce.swarm_overheads import overheads
from skewless.lab.reproduce.swarm_report import render, targets
from skewless.planning.checks import check_whole


def run(
    *,
    out: Path,
    json_path: Path | None,
    quick: bool,
    seeds: int,
    files: Sequence[Path] = (),
) -> dict[str, Any]:
    """Run everything, print the tables, write figures to `out` and the result to `json_path`.

    `quick` takes few points, short runs and one seed. `files` are parquet files with the columns
    ts, lat and lon: real points.
    """
    check_whole("seeds", seeds, 1, 1_000)
    for path in files:
        if not path.is_file():
            raise bad_argument("points", str(path), "a parquet file")
    out.mkdir(parents=True, exist_ok=True)
    console = Console()
    seeds = 1 if quick else seeds
    costs = overheads(quick=quick)
    results = _perform_all(list(points(quick=quick, files=tuple(files))), seeds, console)
    verdicts = targets(results, quick=quick)
    record = evaluation("SWARM", results, verdicts, quick=quick, seeds=seeds)
    record["overheads"] = costs.as_json()
    table = render(results, verdicts, costs)
    return published(results, table, draw, record, out=out, json_path=json_path, console=console)


def _perform_all(wanted: list[Point], seeds: int, console: Console) -> list[Result]:
    results = []
    with progress_bar(console) as progress:
        bar = progress.add_task("simulating", total=len(wanted) * seeds)
        for point in wanted:
            for seed in range(1, seeds + 1):
                progress.update(bar, description=f"{point.experiment} {point.name}")
                results.append(perform(point, seed))
                progress.advance(bar)
    return results
