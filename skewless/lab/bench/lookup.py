"""`skewless bench lookup`: a skewed stream with a table that is too large to be broadcast."""

import statistics
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console, Group, RenderableType
from rich.text import Text

from skewless.lab.bench import choice
from skewless.lab.bench import process as processes
from skewless.lab.bench.child import Job
from skewless.lab.bench.engines import Replay
from skewless.lab.bench.lookup_engines import CACHED, Engine, chosen
from skewless.lab.bench.machine import busy_share, cores, driver_memory
from skewless.lab.bench.measure import Figures, disagreements, figures, wrong_rows
from skewless.lab.bench.process import OnBatch, Outcome
from skewless.lab.bench.record import Record, in_turn, watched
from skewless.lab.bench.table import (
    busy_remarks,
    duration,
    error_remarks,
    failed,
    narrow,
    number,
    times,
    verdict_remarks,
)
from skewless.lab.bench.verdict import SKEWLESS, Target, judged
from skewless.lab.bench.workloads import SEED
from skewless.lab.workloads.streams import START_US, TIMESTAMP, write_stream

CHILD = (sys.executable, "-m", "skewless.lab.bench.lookup_child")
BUDGET_S = 600.0
LARGE, EQUAL = "large", "equal"
TARGETS: dict[str, tuple[Target, ...]] = {
    LARGE: (Target("times_best", "Spark's best ÷ Skewless ≥ 1.5", 1.5, at_least=True),),
    EQUAL: (),
}
HOT = 7

Measure = Callable[[Job, OnBatch], Outcome]


@dataclass(frozen=True)
class Workload:
    """A stream of which one key has a large share, and a table with every key once.

    In every batch Spark reads, shuffles and sorts the table again; Skewless has done so once. So
    it matters how large the table is beside a batch.
    """

    name: str
    table_rows: int
    rows_per_batch: int
    batches: int
    warm_up: int
    repeats: int
    hot_share: float = 0.6

    def generate(self, folder: Path) -> tuple[Path, Path]:
        """Write both; equal workloads give equal files."""
        rng = np.random.default_rng(SEED)
        stream = write_stream(folder / "stream", (self._batch(n, rng) for n in range(self.batches)))
        table = folder / "table"
        table.mkdir()
        keys = rng.permutation(self.table_rows)
        parts = np.array_split(keys, 4)
        for part, some in enumerate(parts):
            rows = {
                "k": some,
                "name": np.char.add("customer ", some.astype(str)),
                "credit": rng.random(len(some)),
            }
            pq.write_table(pa.table(rows), table / f"{part}.parquet")
        return stream, table

    def _batch(self, batch: int, rng: np.random.Generator) -> pa.Table:
        rows = self.rows_per_batch
        cold = rng.integers(0, self.table_rows, rows)
        times = START_US + 1_000_000 * batch + np.sort(rng.integers(0, 1_000_000, rows))
        return pa.table(
            {
                "k": np.where(rng.random(rows) < self.hot_share, HOT, cold),
                "ts": pa.array(times).cast(TIMESTAMP),
                "v": rng.integers(0, 1_000_000, rows),
            }
        )


FULL = (
    Workload(LARGE, 5_000_000, 500_000, 8, 3, 3),
    Workload(EQUAL, 1_000_000, 1_000_000, 8, 3, 3),
)
QUICK = (Workload(LARGE, 50_000, 5_000, 4, 2, 1), Workload(EQUAL, 20_000, 20_000, 4, 2, 1))


def run(
    *,
    workloads: list[str] | None,
    engines: list[str] | None,
    json_path: Path | None,
    quick: bool,
    measure: Measure | None = None,
    busy: Callable[[], float] = busy_share,
    console: Console | None = None,
) -> dict[str, Any]:
    """Measure these engines on these workloads (None: all), print tables, return everything.

    `measure` runs one engine, by default in a process of its own; `busy` tells what else the
    machine does before it.

    >>> run(workloads=["large"], engines=None, json_path=None, quick=True)  # doctest: +SKIP
    """
    console = console or Console(highlight=False)
    measure = measure or partial(processes.measure, command=CHILD)
    contenders = chosen(engines)
    record = Record(
        "lookup", "workloads", quick=quick, json_path=json_path, render=render, console=console
    )
    available = {workload.name: workload for workload in (QUICK if quick else FULL)}
    for name in choice.chosen("workload", workloads, list(available)):
        with tempfile.TemporaryDirectory(prefix="skewless-bench-") as folder:
            bench = _Bench(available[name], Path(folder), measure, busy, console)
            outcome = bench.run(contenders)
        outcome["targets"] = judged(TARGETS[name], outcome["values"], quick=quick)
        record.add(name, outcome)
    return record.saved()


@dataclass(frozen=True)
class _Bench:
    """The files, and runs of every engine on them."""

    workload: Workload
    folder: Path
    measure: Measure
    busy: Callable[[], float]
    console: Console

    def run(self, engines: Sequence[Engine]) -> dict[str, Any]:
        workload = self.workload
        self.console.print(f"[bold]{workload.name}[/]: writing its files")
        stream, table = workload.generate(self.folder / "data")
        by_name = {engine.name: engine for engine in engines}
        heard, busiest = in_turn(
            list(by_name),
            workload.repeats,
            self.busy,
            lambda name: self._one(by_name[name], stream, table),
        )
        runs = [self._record(engine, heard[engine.name]) for engine in engines]
        errors = [f"{run['engine']}: {error}" for run in runs for error in run["errors"]]
        errors += disagreements({name: some[0].batches for name, some in heard.items()})
        seconds = {r["engine"]: r["seconds"] for r in runs if r["seconds"] is not None}
        # A table that is held in the memory of all executors is another plan: it is shown beside.
        reading = [e.name for e in engines if e.is_sparks and e.name != CACHED]
        best = min((n for n in reading if n in seconds), key=lambda n: seconds[n], default=None)
        values = {
            value: seconds[name] / seconds[SKEWLESS]
            for value, name in (("times_best", best), ("times_cached", CACHED))
            if name in seconds and SKEWLESS in seconds
        }
        return {
            "title": f"{workload.rows_per_batch:,} rows a batch, {workload.hot_share:.0%} of one "
            f"key, with a table of {workload.table_rows:,}",
            "parameters": vars(workload),
            "busy_with_other_work": busiest,
            "runs": runs,
            "best": best,
            "values": values,
            "errors": errors,
        }

    def _one(self, engine: Engine, stream: Path, table: Path) -> Outcome:
        workload = self.workload
        with tempfile.TemporaryDirectory(dir=self.folder) as checkpoint:
            job = Job(
                engine.name,
                Replay(str(stream), str(table), 0.0, cores(), f"{checkpoint}/c"),
                batches=workload.batches,
                warm_up=workload.warm_up,
                budget_s=BUDGET_S,
                driver_memory=driver_memory(),
            )
            outcome = watched(self.console, engine.title, job.batches, partial(self.measure, job))
        found = figures(outcome.batches, workload.warm_up)
        said = "failed" if found is None else f"{duration(found.seconds)} s per batch"
        self.console.print(f"{engine.title}: {said}", soft_wrap=True)
        return outcome

    def _record(self, engine: Engine, heard: Sequence[Outcome]) -> dict[str, Any]:
        """The median of an engine's runs, each of which has a median of its batches."""
        computed = [figures(outcome.batches, self.workload.warm_up) for outcome in heard]
        done = [found for found in computed if found is not None]
        wrong = [
            outcome.error or wrong_rows(outcome.batches, self.workload.rows_per_batch)
            for outcome in heard
        ]
        seconds = [found.seconds for found in done]
        return {
            "engine": engine.name,
            "title": engine.title,
            "settings": heard[0].settings,
            "errors": [error for error in wrong if error],
            "seconds": statistics.median(seconds) if seconds else None,
            "least": min(seconds, default=None),
            "most": max(seconds, default=None),
            "first_batch": _first(heard),
            "rows_per_second": _rate(done),
            "runs": [found.as_json() for found in done],
        }


def _first(heard: Sequence[Outcome]) -> float | None:
    """How long the first batch takes, in which Skewless reads the table."""
    first = [outcome.batches[0].seconds for outcome in heard if outcome.batches]
    return statistics.median(first) if first else None


def _rate(done: Sequence[Figures]) -> float | None:
    return statistics.median(found.rows_per_second for found in done) if done else None


def render(outcome: dict[str, Any]) -> RenderableType:
    """The table of all engines, and below it what was to be reached."""
    table = narrow("engine", "s/batch", "least", "most", "rows/s", "first", "faster")
    base = next((r["seconds"] for r in outcome["runs"] if r["engine"] == outcome["best"]), None)
    for run in outcome["runs"]:
        name = f"{run['engine']}, best" if run["engine"] == outcome["best"] else run["engine"]
        if run["seconds"] is None:
            table.add_row(name, failed())
            continue
        table.add_row(
            name,
            *(duration(run[figure]) for figure in ("seconds", "least", "most")),
            number(run["rows_per_second"]),
            duration(run["first_batch"]),
            times(base / run["seconds"] if base else None),
        )
    return Group(
        Text(outcome["title"], style="bold"),
        table,
        *busy_remarks(outcome["busy_with_other_work"]),
        *verdict_remarks(outcome, {}, otherwise=times),
        *error_remarks(outcome),
    )
