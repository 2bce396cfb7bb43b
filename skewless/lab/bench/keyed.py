"""`skewless bench keyed`: state per key beside Spark's own, and what the key table gains."""

import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pyarrow.parquet as pq
from rich.console import Console

from skewless.lab.bench import choice, keyplanning
from skewless.lab.bench import process as processes
from skewless.lab.bench.child import Job
from skewless.lab.bench.engines import Replay
from skewless.lab.bench.keyed_engines import HASH, MIXED, Engine, chosen
from skewless.lab.bench.keyed_table import render
from skewless.lab.bench.keyed_workloads import COUNT, FULL, QUICK, SELF_JOIN, WORDS, Workload
from skewless.lab.bench.machine import busy_share, cores, driver_memory
from skewless.lab.bench.measure import Figures, disagreements, figures, wrong_rows
from skewless.lab.bench.process import OnBatch, Outcome
from skewless.lab.bench.record import Record, watched
from skewless.lab.bench.table import duration
from skewless.lab.bench.verdict import SKEWLESS, Target, best_spark, judged
from skewless.lab.bench.workloads import SLOW_BUDGET_S, Length, first

CHILD = (sys.executable, "-m", "skewless.lab.bench.keyed_child")
BUDGET_S = 900.0
PLANNING = "planning"
WORKLOADS = (*(workload.name for workload in FULL), PLANNING)

TARGETS: dict[str, tuple[Target, ...]] = {
    WORDS: (Target("times_best", "≥ 50 × Spark's best", 50, at_least=True),),
    COUNT: (Target("times_best", "≥ 1 × Spark's best", 1, at_least=True),),
    SELF_JOIN: (Target("hash_over_mixed", "Hash ÷ Mixed ≥ 1.5", 1.5, at_least=True),),
    PLANNING: (),
}

Measure = Callable[[Job, OnBatch], Outcome]
Busy = Callable[[], float]


def run(
    *,
    workloads: list[str] | None,
    engines: list[str] | None,
    json_path: Path | None,
    quick: bool,
    measure: Measure | None = None,
    busy: Busy = busy_share,
    console: Console | None = None,
) -> dict[str, Any]:
    """Measure these engines on these workloads (None: all), print tables, return everything.

    `measure` runs one engine on one workload, by default in a process of its own; `busy` tells what
    else the machine does before it.

    >>> run(workloads=["words"], engines=None, json_path=None, quick=True)  # doctest: +SKIP
    """
    console = console or Console(highlight=False)
    selected = choice.chosen("workload", workloads, WORKLOADS)
    contenders = chosen(engines)
    measure = measure or partial(processes.measure, command=CHILD)
    on_spark = {workload.name: workload for workload in (QUICK if quick else FULL)}
    record = Record(
        "keyed", "workloads", quick=quick, json_path=json_path, render=render, console=console
    )
    for name in selected:
        if name == PLANNING:
            outcome = _plan(console, quick=quick)
        else:
            entered = [engine for engine in contenders if engine.workload == name]
            competing = [engine for engine in entered if engine.is_installed]
            if not competing:
                continue
            with tempfile.TemporaryDirectory(prefix="skewless-bench-") as folder:
                bench = _Bench(on_spark[name], Path(folder), measure, busy, console)
                outcome = bench.run(competing)
            outcome["left_out"] = {e.name: e.needs for e in entered if not e.is_installed}
        outcome["targets"] = judged(TARGETS[name], outcome["values"], quick=quick)
        record.add(name, outcome)
    return record.saved()


@dataclass(frozen=True)
class _Bench:
    """One workload on Spark: its files, and a run of every engine on them."""

    workload: Workload
    folder: Path
    measure: Measure
    busy: Busy
    console: Console

    def run(self, engines: Sequence[Engine]) -> dict[str, Any]:
        workload = self.workload
        self.console.print(f"[bold]{workload.name}[/]: writing its files")
        files = workload.generate(self.folder / "data")
        busy: list[float] = []
        heard: dict[str, Outcome] = {}
        for engine in engines:
            busy.append(self.busy())
            heard[engine.name] = self._one(engine, files)
        computed = {
            engine.name: figures(heard[engine.name].batches, self._length(engine).warm_up)
            for engine in engines
        }
        done = {name: found for name, found in computed.items() if found is not None}
        errors = []
        for engine in engines:
            outcome = heard[engine.name]
            error = outcome.error or wrong_rows(outcome.batches, workload.rows_per_batch)
            error = error or self._wrong_words(engine, outcome, files)
            errors += [f"{engine.name}: {error}"] if error else []
        if workload.name == SELF_JOIN:
            errors += disagreements({name: heard[name].batches for name in heard})
        best = best_spark(done, [engine.name for engine in engines if engine.is_sparks])
        return {
            "title": workload.title,
            "parameters": workload.describe(),
            "busy_with_other_work": max(busy),
            "runs": [self._record(e, heard[e.name], computed[e.name]) for e in engines],
            "best": best or (HASH if HASH in done else None),
            "values": values_of(done, best),
            "errors": errors,
        }

    def _length(self, engine: Engine) -> Length:
        return self.workload.length.of(is_slow=engine.is_slow)

    def _record(self, engine: Engine, heard: Outcome, found: Figures | None) -> dict[str, Any]:
        return {
            "engine": engine.name,
            "title": engine.title,
            "settings": heard.settings,
            "java": heard.java,
            "error": heard.error,
            "batches": [vars(batch) for batch in heard.batches],
            "figures": None if found is None else found.as_json(),
        }

    def _wrong_words(self, engine: Engine, outcome: Outcome, files: Path) -> str | None:
        """What is wrong with the rows given, where each batch must give each of its words once."""
        if self.workload.name != WORDS or not engine.is_sparks:
            return None
        for batch, file in zip(outcome.batches, sorted(files.iterdir()), strict=False):
            distinct = pc.count_distinct(pq.read_table(file, columns=["word"])["word"]).as_py()
            if batch.matches != distinct:
                return f"batch {batch.number} gave {batch.matches} words instead of {distinct}"
        return None

    def _one(self, engine: Engine, files: Path) -> Outcome:
        workload = self.workload
        length = self._length(engine)
        name = f"{workload.name}: {engine.title}"
        some = first(files, length.batches, self.folder / f"first-{length.batches}")
        with tempfile.TemporaryDirectory(dir=self.folder) as checkpoint:
            replay = Replay(
                str(some), str(some), workload.window_s or 0.0, cores(), f"{checkpoint}/c"
            )
            job = Job(
                engine.key,
                replay,
                batches=length.batches,
                warm_up=length.warm_up,
                budget_s=SLOW_BUDGET_S if engine.is_slow else BUDGET_S,
                driver_memory=driver_memory(),
            )
            outcome = watched(self.console, name, job.batches, partial(self.measure, job))
        found = figures(outcome.batches, length.warm_up)
        said = "failed" if found is None else f"{duration(found.seconds)} s per batch"
        self.console.print(f"{name}: {said}", soft_wrap=True)
        return outcome


def values_of(done: dict[str, Figures], best: str | None) -> dict[str, float]:
    """The figures that the targets are about; what was not measured is absent."""
    found: dict[str, float] = {}
    if best is not None and SKEWLESS in done:
        found["times_best"] = done[best].seconds / done[SKEWLESS].seconds
    if HASH in done and MIXED in done:
        found["hash_over_mixed"] = done[HASH].seconds / done[MIXED].seconds
    return found


def _plan(console: Console, *, quick: bool) -> dict[str, Any]:
    """The planners of key tables alone, from `skewless.lab.bench.keyplanning`."""
    with console.status(PLANNING) as status:
        found = keyplanning.run(
            progress=lambda name: status.update(f"{PLANNING}: {name}"), quick=quick
        )
    ratios = {
        f"mintable_to_mixed_w{window}": ratio
        for window, ratio in found["mintable_to_mixed"].items()
        if ratio is not None
    }
    first = found["times"][0]
    return {
        "title": f"Key tables: {first['keys']:,} keys × {first['instances']} instances",
        "times": found["times"],
        "migration": found["migration"],
        "values": ratios,
        "errors": [],
    }
