"""`skewless bench join`: one command that measures the stream join and writes the tables."""

import json
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from skewless.errors import bad_argument
from skewless.lab.bench import table, with_flink, with_pathway
from skewless.lab.bench.child import Job
from skewless.lab.bench.engines import Engine, Replay, chosen
from skewless.lab.bench.machine import cores, driver_memory, machine, versions
from skewless.lab.bench.measure import disagreements, figures, wrong_rows
from skewless.lab.bench.process import OnBatch, Outcome, measure
from skewless.lab.bench.verdict import SKEWLESS, best_spark, ratios, verdicts, window_ratios
from skewless.lab.bench.workloads import FULL, QUICK, SLOW_BUDGET_S, Files, Workload, generate

BUDGET_S = 1_800.0

Measure = Callable[[Job, OnBatch], Outcome]


def run(
    *,
    workloads: list[str] | None,
    engines: list[str] | None,
    json_path: Path | None,
    quick: bool,
    measure: Measure = measure,
    console: Console | None = None,
) -> dict[str, Any]:
    """Measure these engines on these workloads (None: all), print tables, return everything.

    `measure` runs one engine on one workload; by default in a process of its own.

    >>> run(workloads=["empty"], engines=None, json_path=None, quick=True)  # doctest: +SKIP
    """
    console = console or Console(highlight=False)
    selected = _workloads(workloads, QUICK if quick else FULL)
    contenders = chosen(engines)
    heap = driver_memory()
    began = time.monotonic()
    result: dict[str, Any] = {
        "benchmark": "join",
        "quick": quick,
        "versions": versions(*(m.PACKAGE for m in (with_flink, with_pathway) if m.installed())),
        "machine": machine(),
        "driver_memory": heap,
        "workloads": {},
        "errors": [],
    }
    for workload in selected:
        competing = [engine for engine in contenders if _takes_part(engine, workload)]
        if not competing:
            continue
        with tempfile.TemporaryDirectory(prefix="skewless-bench-") as folder:
            bench = _Bench(workload, Path(folder), cores(), heap, measure, console)
            outcome = bench.run(competing, quick=quick)
        console.print(table.render(outcome), "")
        result["workloads"][workload.name] = outcome
        result["errors"] += [f"{workload.name}: {error}" for error in outcome["errors"]]
        java = [r["java"] for r in outcome["runs"] if r["java"]]
        result["versions"].update({"java": java[0]} if java else {})
        _save(json_path, result, began)  # after every workload: a long run may be broken off
    _save(json_path, result, began)
    return result


class _Bench:
    """One workload: its files, and a run of every engine on them."""

    def __init__(
        self,
        workload: Workload,
        folder: Path,
        cores: int,
        driver_memory: str,
        measure: Measure,
        console: Console,
    ) -> None:
        self._workload = workload
        self._folder = folder
        self._cores = cores
        self._driver_memory = driver_memory
        self._measure = measure
        self._console = console

    def run(self, engines: Sequence[Engine], *, quick: bool) -> dict[str, Any]:
        workload = self._workload
        self._console.print(f"[bold]{workload.name}[/]: writing its files")
        files = generate(workload, self._folder / "data")
        runs = [
            self._one(engine, window_s, files)
            for engine in engines
            for window_s in workload.windows_s
        ]
        errors = [f"{run['engine']}: {run['error']}" for run in runs if run["error"]]
        for window_s in workload.windows_s:
            together = {r["engine"]: r["measured"] for r in runs if r["window_s"] == window_s}
            totals = {r["engine"]: r["totals"] for r in runs if r["window_s"] == window_s}
            errors += disagreements(together, totals)
        first = {
            r["engine"]: r["computed"]
            for r in runs
            if r["computed"] is not None and r["window_s"] == workload.windows_s[0]
        }
        best = best_spark(first, [engine.name for engine in engines if engine.is_spark_join])
        values = ratios(first, best)
        own = [r["computed"] for r in runs if r["engine"] == SKEWLESS and r["computed"] is not None]
        if len(workload.windows_s) == 2 and len(own) == 2:
            values |= window_ratios(*own)
        wanted = workload.state_rows
        if wanted and any((f.state_rows or 0) < wanted for f in own):
            errors.append(f"the window never held {wanted:,} rows")
        for run in runs:
            run.pop("totals")
            run["batches"] = [vars(batch) for batch in run.pop("measured")]
            run["figures"] = (f := run.pop("computed")) and f.as_json()
        return {
            "title": workload.title,
            "parameters": workload.describe(),
            "state_rows_wanted": wanted,
            "runs": runs,
            "best_spark": best,
            "ratios": values,
            "targets": verdicts(workload.name, values, quick=quick),
            "errors": errors,
        }

    def _one(self, engine: Engine, window_s: float, files: Files) -> dict[str, Any]:
        workload = self._workload
        length = workload.slow if engine.is_slow else workload.length
        name = f"{workload.name}: {engine.title}"
        if len(workload.windows_s) > 1:
            name += f", window ±{window_s:g} s"
        some = files.first(length.batches, self._folder / f"first-{length.batches}")
        with tempfile.TemporaryDirectory(dir=self._folder) as checkpoint:
            replay = Replay(
                str(some.left), str(some.right), window_s, self._cores, f"{checkpoint}/c"
            )
            job = Job(
                engine.name,
                replay,
                batches=length.batches,
                warm_up=length.warm_up,
                budget_s=SLOW_BUDGET_S if engine.is_slow else BUDGET_S,
                driver_memory=self._driver_memory,
            )
            outcome = self._watched(name, job)
        wrong = outcome.error or wrong_rows(outcome.batches, workload.rows_per_batch)
        computed = figures(outcome.batches, length.warm_up)
        said = (
            "failed"
            if wrong or computed is None
            else f"{table.duration(computed.seconds)} s per batch"
        )
        self._console.print(f"{name}: {said}", soft_wrap=True)
        return {
            "engine": engine.name,
            "title": engine.title,
            "window_s": window_s,
            "settings": outcome.settings,
            "java": outcome.java,
            "error": wrong,
            "totals": outcome.totals,
            "measured": outcome.batches,
            "computed": computed,
        }

    def _watched(self, name: str, job: Job) -> Outcome:
        """With a bar on a terminal; elsewhere the line that follows is all."""
        if not self._console.is_terminal:
            return self._measure(job, lambda done: None)
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
        with Progress(
            *columns, TimeElapsedColumn(), console=self._console, transient=True
        ) as progress:
            bar = progress.add_task(name, total=job.batches)
            return self._measure(job, lambda done: progress.update(bar, completed=done))


def _workloads(names: list[str] | None, available: Sequence[Workload]) -> list[Workload]:
    known = [workload.name for workload in available]
    if names is not None and (unknown := set(names) - set(known)):
        raise bad_argument("workload", ", ".join(sorted(unknown)), ", ".join(known))
    return [workload for workload in available if names is None or workload.name in names]


def _takes_part(engine: Engine, workload: Workload) -> bool:
    if engine.start is None:
        return workload.replayed_elsewhere
    return engine.name == SKEWLESS or not workload.only_skewless


def _save(json_path: Path | None, result: dict[str, Any], began: float) -> None:
    result["seconds"] = round(time.monotonic() - began, 1)
    if json_path is not None:
        json_path.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
