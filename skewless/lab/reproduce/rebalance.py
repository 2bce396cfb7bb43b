"""The evaluation of the rebalancing paper (§V), run again with our planners."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rich.console import Console

from skewless.lab.console import progress_bar
from skewless.lab.reproduce.output import evaluation, published
from skewless.lab.reproduce.rebalance_experiments import SYSTEMS, Result, Task, perform
from skewless.lab.reproduce.rebalance_report import draw, render, targets

INSTANCES = (5, 10, 15, 20, 30, 40)
THRESHOLDS = (0.02, 0.05, 0.08, 0.15, 0.3)
KEYS = (5_000, 10_000, 100_000, 1_000_000)
DEGREES = (None, 1, 8, 64, 256)
RATES = (0.25, 0.5, 1.0, 1.5, 2.0)
BETAS = (1.0, 1.25, 1.5, 1.75, 2.0)
WINDOWS = (1, 5, 10, 15, 20)
# Brute force plans once for every entry of the table: only where keys are few.
FAST = tuple(s for s in SYSTEMS if s != "MixedBF")
MOVING = ("Readj", "MinTable", "MinMig", "Mixed")
FEW = 10_000


def tasks(*, quick: bool, seed: int) -> Iterator[Task]:
    """Every point of every experiment."""
    few: dict[str, Any] = {"keys": 5_000, "intervals": 3} if quick else {}
    for n in (5, 15) if quick else INSTANCES:
        for system in FAST:
            yield Task("instances", system, n, seed, instances=n, **few)
    for theta in (0.02, 0.3) if quick else THRESHOLDS:
        for system in MOVING:
            yield Task("threshold", system, theta, seed, theta_max=theta, **few)
    for window in (1, 5) if quick else WINDOWS:
        for system in ("MinTable", "Mixed"):
            wide = few | {"intervals": 3 if quick else window + 10}
            yield Task("window", system, window, seed, window=window, **wide)
    for keys in (5_000,) if quick else KEYS:
        for system in ("Hash", *MOVING):
            yield Task("keys", system, keys, seed, keys=keys, intervals=3 if quick else 5)
    for degree in (None, 8) if quick else DEGREES:
        large: dict[str, Any] = {"keys": 20_000 if quick else 1_000_000, "intervals": 3}
        yield Task(
            "degree", "Mixed", degree or 0, seed, degree=degree, theta_max=0.02,
            table_limit=50_000, window=5, **large,
        )  # fmt: skip
    for rate in (0.5, 1.0) if quick else RATES:
        for system in SYSTEMS:
            short = 2 if quick else 5
            yield Task(
                "rate", system, rate, seed, rate=rate, keys=1_000 if quick else FEW,
                intervals=short,
            )  # fmt: skip
    for beta in (1.0, 2.0) if quick else BETAS:
        yield Task("beta", "MinMig", beta, seed, beta=beta, window=5, **few)
    for rounds in (2, 8) if quick else (1, 8, 64, 512, 4_096, 16_384):
        yield Task("table", "MinMig", rounds, seed, keys=1_000 if quick else FEW, intervals=rounds)
    for system in ("Readj", "Mixed"):
        yield Task("scale-out", system, 1, seed, scale_out=True, rate=0.1, **few)


def run(*, out: Path, json_path: Path | None, quick: bool, seed: int) -> dict[str, Any]:
    """Run everything, print the tables, write figures to `out` and the result to `json_path`.

    `quick` takes fewer points, keys and intervals: it shows that everything works. One task runs
    at a time, because how long a plan takes is among what is measured.
    """
    out.mkdir(parents=True, exist_ok=True)
    console = Console()
    results = _perform_all(list(tasks(quick=quick, seed=seed)), console)
    verdicts = targets(results, quick=quick)
    record = evaluation("rebalance", results, verdicts, quick=quick, seed=seed)
    table = render(results, verdicts)
    return published(results, table, draw, record, out=out, json_path=json_path, console=console)


def _perform_all(wanted: list[Task], console: Console) -> list[Result]:
    results = []
    # Once for nothing, so that no plan waits for the compiler.
    for system in SYSTEMS:
        perform(Task("warm up", system, 0, 0, keys=500, intervals=1, degree=8))
    with progress_bar(console) as progress:
        bar = progress.add_task("planning", total=len(wanted))
        for task in wanted:
            progress.update(bar, description=f"{task.experiment}: {task.system}")
            results.append(perform(task))
            progress.advance(bar)
    return results
