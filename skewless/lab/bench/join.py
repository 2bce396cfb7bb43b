"""`skewless bench join`: one command that measures the stream join and writes the tables."""

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console

from skewless.errors import bad_argument
from skewless.lab.bench import choice, with_flink, with_pathway
from skewless.lab.bench.child import Job
from skewless.lab.bench.engines import CLOSEST, Engine, Replay, chosen
from skewless.lab.bench.join_table import render
from skewless.lab.bench.machine import cores, driver_memory
from skewless.lab.bench.measure import disagreements, figures, wrong_rows
from skewless.lab.bench.process import OnBatch, Outcome, measure
from skewless.lab.bench.record import Record, watched
from skewless.lab.bench.table import duration
from skewless.lab.bench.verdict import (
    SKEWLESS,
    SKEWLESS_INNER,
    best_spark,
    ratios,
    verdicts,
    window_ratios,
)
from skewless.lab.bench.workloads import FULL, QUICK, SLOW_BUDGET_S, Files, Workload, generate
from skewless.operators.join.how import How

BUDGET_S = 1_800.0

Measure = Callable[[Job, OnBatch], Outcome]


def run(
    *,
    workloads: list[str] | None,
    engines: list[str] | None,
    json_path: Path | None,
    quick: bool,
    how: str = "inner",
    rounds: int = 1,
    measure: Measure = measure,
    console: Console | None = None,
) -> dict[str, Any]:
    """Measure these engines on these workloads (None: all), print tables, return everything.

    `how` is the type of the join. Fast engines run in `rounds`, in turn; their batches are counted
    together. `measure` runs one engine on one workload; by default in a process of its own.

    >>> run(workloads=["empty"], engines=None, json_path=None, quick=True)  # doctest: +SKIP
    """
    console = console or Console(highlight=False)
    available = {workload.name: workload for workload in (QUICK if quick else FULL)}
    kind = How.of(how).name
    if kind == "left_anti":
        raise bad_argument("how", how, "a type of join that Spark's streams have, too")
    if kind != "inner" and workloads is None:
        workloads = [FULL[0].name]
    selected = choice.chosen("workload", workloads, list(available))
    contenders = chosen(engines)
    heap = driver_memory()
    record = Record(
        "join",
        "workloads",
        quick=quick,
        json_path=json_path,
        render=render,
        console=console,
        packages=tuple(m.PACKAGE for m in (with_flink, with_pathway) if m.installed()),
    )
    for workload in (available[name] for name in selected):
        competing = [engine for engine in contenders if _takes_part(engine, workload, kind)]
        if not competing:
            continue
        with tempfile.TemporaryDirectory(prefix="skewless-bench-") as folder:
            bench = _Bench(workload, Path(folder), cores(), heap, measure, console, kind, rounds)
            outcome = bench.run(competing, quick=quick)
        java = next((run["java"] for run in outcome["runs"] if run["java"]), None)
        if java is not None:
            record.add_version("java", java)
        record.add(workload.name, outcome)
    return record.saved()


@dataclass(frozen=True)
class _Bench:
    """One workload: its files, and a run of every engine on them."""

    workload: Workload
    folder: Path
    cores: int
    driver_memory: str
    measure: Measure
    console: Console
    how: str
    rounds: int

    def run(self, engines: Sequence[Engine], *, quick: bool) -> dict[str, Any]:
        workload = self.workload
        self.console.print(f"[bold]{workload.name}[/]: writing its files")
        files = generate(workload, self.folder / "data")
        runs = self._runs(engines, files)
        errors = [f"{run['engine']}: {run['error']}" for run in runs if run["error"]]
        for window_s in workload.windows_s:
            # Rows without a match come in another batch than Spark's.
            together = {
                r["engine"]: r["measured"]
                for r in runs
                if r["window_s"] == window_s and self.how == "inner" and not workload.closest
            }
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
            "title": workload.title if self.how == "inner" else f"{self.how}: {workload.title}",
            "parameters": {**workload.describe(), "how": self.how, "rounds": self.rounds},
            "state_rows_wanted": wanted,
            "runs": runs,
            "best_spark": best,
            "ratios": values,
            "targets": verdicts(workload.name, values, quick=quick, how=self.how),
            "errors": errors,
        }

    def _runs(self, engines: Sequence[Engine], files: Files) -> list[dict[str, Any]]:
        """What every engine took; fast ones run in turn, so that a busy minute hits them all."""
        runs: dict[tuple[str, float], dict[str, Any]] = {}
        for number in range(self.rounds):
            for engine in engines:
                for window_s in self.workload.windows_s:
                    if number and engine.is_slow:
                        continue
                    run = self._one(engine, window_s, files)
                    before = runs.setdefault((engine.name, window_s), run)
                    if before is not run:
                        before["error"] = before["error"] or run["error"]
                        before["measured"] = [*before["measured"], *run["measured"]]
                        before["counted"] = [*before["counted"], *run["counted"]]
        for run in runs.values():
            left_out = len(run["measured"]) - len(run["counted"])
            found = figures(run.pop("counted"), 0)
            run["computed"] = None if found is None else replace(found, left_out=left_out)
        return list(runs.values())

    def _one(self, engine: Engine, window_s: float, files: Files) -> dict[str, Any]:
        workload = self.workload
        length = workload.length.of(is_slow=engine.is_slow)
        name = f"{workload.name}: {engine.title}"
        if len(workload.windows_s) > 1:
            name += f", window ±{window_s:g} s"
        some = files.first(length.batches, self.folder / f"first-{length.batches}")
        with tempfile.TemporaryDirectory(dir=self.folder) as checkpoint:
            replay = Replay(
                str(some.left),
                str(some.right),
                window_s,
                self.cores,
                f"{checkpoint}/c",
                CLOSEST if workload.closest else self.how,
            )
            job = Job(
                engine.name,
                replay,
                batches=length.batches,
                warm_up=length.warm_up,
                budget_s=SLOW_BUDGET_S if engine.is_slow else BUDGET_S,
                driver_memory=self.driver_memory,
            )
            outcome = watched(self.console, name, job.batches, partial(self.measure, job))
        wrong = outcome.error or wrong_rows(outcome.batches, workload.rows_per_batch)
        computed = figures(outcome.batches, length.warm_up)
        said = (
            "failed" if wrong or computed is None else f"{duration(computed.seconds)} s per batch"
        )
        self.console.print(f"{name}: {said}", soft_wrap=True)
        return {
            "engine": engine.name,
            "title": engine.title,
            "window_s": window_s,
            "settings": outcome.settings,
            "java": outcome.java,
            "error": wrong,
            "totals": outcome.totals,
            "measured": outcome.batches,
            "counted": outcome.batches[computed.left_out :] if computed is not None else [],
        }


def _takes_part(engine: Engine, workload: Workload, how: str) -> bool:
    if engine.start is None:
        return workload.replayed_elsewhere and how == "inner"
    if engine.name == SKEWLESS_INNER:
        return how != "inner"
    return engine.name == SKEWLESS or not workload.only_skewless
