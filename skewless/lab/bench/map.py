"""`skewless bench map`: rows whose costs differ, dealt out by cost and by Spark's own means."""

import statistics
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console

from skewless.lab.bench import choice
from skewless.lab.bench.machine import busy_share, driver_memory
from skewless.lab.bench.map_child import DYNAMIC, PLAIN, SKEWLESS, Errand
from skewless.lab.bench.map_scenarios import (
    BURST,
    CLASSES,
    EVEN,
    FULL,
    INSTANCES,
    LARGER,
    MENTIONS,
    QUICK,
    MapScenario,
    Mentions,
    drawn_mentions,
    read_mentions,
)
from skewless.lab.bench.map_table import render
from skewless.lab.bench.map_work import MapBatch
from skewless.lab.bench.process import OnBatch, listed
from skewless.lab.bench.record import Record, in_turn, watched
from skewless.lab.bench.table import duration
from skewless.lab.bench.verdict import Target, judged

CHILD = (sys.executable, "-m", "skewless.lab.bench.map_child")
SCENARIOS = tuple(scenario.name for scenario in FULL)

_DYNAMIC_LOSES = Target(
    f"{DYNAMIC}_batch", "whole batch of repartition(8k) ÷ sk.map ≥ 1", 1.0, at_least=True
)
TARGETS: dict[str, tuple[Target, ...]] = {
    CLASSES: (
        Target(
            f"{PLAIN}_makespan", "makespan of repartition(k) ÷ sk.map ≥ 1.3", 1.3, at_least=True
        ),
        _DYNAMIC_LOSES,
    ),
    MENTIONS: (),
    LARGER: (_DYNAMIC_LOSES,),
    BURST: (_DYNAMIC_LOSES,),
    EVEN: (
        Target("overhead", "whole batch at most 3 % above repartition(k)", 0.03, at_least=False),
    ),
}

Heard = tuple[list[MapBatch], str | None]
Measure = Callable[[Errand, OnBatch], Heard]
Busy = Callable[[], float]


def measure(errand: Errand, on_batch: OnBatch, command: Sequence[str] = CHILD) -> Heard:
    """Run one engine in a process of its own: its batches, and what went wrong if anything did."""
    return listed(
        errand.as_json(), on_batch, command, lambda e: [MapBatch(**batch) for batch in e["batches"]]
    )


def run(
    *,
    scenarios: list[str] | None,
    mentions: Path | None,
    json_path: Path | None,
    quick: bool,
    measure: Measure = measure,
    busy: Busy = busy_share,
    console: Console | None = None,
) -> dict[str, Any]:
    """Measure these scenarios (None: all), print tables, return everything.

    `mentions` is a parquet file with the columns `author` and `mention`; without it they are drawn.
    `measure` runs one engine on one scenario, by default in a process of its own; `busy` tells what
    else the machine does before it.

    >>> run(scenarios=["even"], mentions=None, json_path=None, quick=True)  # doctest: +SKIP
    """
    console = console or Console(highlight=False)
    names = choice.chosen("scenario", scenarios, SCENARIOS)
    selected = [scenario for scenario in (QUICK if quick else FULL) if scenario.name in names]
    most = max(scenario.rows for scenario in selected)
    rows = drawn_mentions(most) if mentions is None else read_mentions(mentions, most)
    record = Record(
        "map",
        "scenarios",
        quick=quick,
        json_path=json_path,
        render=render,
        console=console,
        more={"mentions": {"drawn": mentions is None, "shares": rows.shares()}},
    )
    for scenario in selected:
        with tempfile.TemporaryDirectory(prefix="skewless-bench-") as folder:
            outcome = _Bench(scenario, Path(folder), measure, busy, console).run(rows)
        outcome["targets"] = judged(TARGETS[scenario.name], outcome["values"], quick=quick)
        record.add(scenario.name, outcome)
    return record.saved()


@dataclass(frozen=True)
class _Bench:
    """One scenario: its files, and every engine on them."""

    scenario: MapScenario
    folder: Path
    measure: Measure
    busy: Busy
    console: Console

    def run(self, mentions: Mentions) -> dict[str, Any]:
        scenario = self.scenario
        self.console.print(f"[bold]{scenario.name}[/]: writing its files")
        files = scenario.write(mentions, self.folder / "files")
        used = mentions.first(scenario.rows)
        new_mentions = used.new_share(scenario.warm_up * scenario.rows_per_batch)
        heard, busy = in_turn(
            scenario.engines, scenario.repeats, self.busy, lambda name: self._one(name, files)
        )
        runs = [self._summary(engine, repeats) for engine, repeats in heard.items()]
        return {
            "title": scenario.title,
            "parameters": scenario.describe(),
            "new_mentions": new_mentions,
            "busy_with_other_work": busy,
            "runs": runs,
            "values": values_of(runs),
            "errors": [f"{run['engine']}: {run['error']}" for run in runs if run["error"]],
        }

    def _summary(self, engine: str, repeats: list[Heard]) -> dict[str, Any]:
        scenario = self.scenario
        errors = [error or wrong_rows(batches, scenario) for batches, error in repeats]
        good = [batches for batches, error in repeats if error is None]
        settled = [batch for batches in good for batch in batches[scenario.warm_up :]]
        return {
            "engine": engine,
            "error": next((error for error in errors if error is not None), None),
            "figures": figures(settled) if settled else None,
            "repeats": [[vars(batch) for batch in batches] for batches in good],
        }

    def _one(self, engine: str, files: Path) -> Heard:
        name = f"{self.scenario.name}: {engine}"
        with tempfile.TemporaryDirectory(dir=self.folder) as folder:
            notes = Path(folder) / "notes"
            notes.mkdir()
            errand = Errand(
                engine,
                files=str(files),
                notes=str(notes),
                instances=INSTANCES,
                cost_key=self.scenario.cost_key,
                checkpoint=f"{folder}/checkpoint",
                driver_memory=driver_memory(),
            )
            measure = partial(self.measure, errand)
            batches, error = watched(self.console, name, self.scenario.batches, measure)
        said = "failed"
        if error is None and (settled := batches[self.scenario.warm_up :]):
            said = f"{duration(figures(settled)['seconds'])} s per batch"
        self.console.print(f"{name}: {said}", soft_wrap=True)
        return batches, error


def figures(batches: Sequence[MapBatch]) -> dict[str, float]:
    """Medians over batches; `used` is the share of the makespan that an instance worked."""
    return {
        "batches": len(batches),
        "seconds": statistics.median(batch.seconds for batch in batches),
        "makespan_s": statistics.median(batch.makespan_s for batch in batches),
        "work_s": statistics.median(batch.work_s for batch in batches),
        "used": statistics.median(
            b.work_s / (INSTANCES * b.makespan_s) if b.makespan_s else 0.0 for b in batches
        ),
    }


def wrong_rows(batches: Sequence[MapBatch], scenario: MapScenario) -> str | None:
    """What is wrong with the rows that were worked on, if anything is: each of a file, once."""
    if len(batches) != scenario.batches:
        return f"it did {len(batches)} batches instead of {scenario.batches}"
    for batch in batches:
        if batch.rows != scenario.rows_per_batch or batch.repeated:
            return (
                f"batch {batch.number} had {batch.rows:,} rows instead of "
                f"{scenario.rows_per_batch:,}, and {batch.repeated:,} of them again"
            )
    return None


def values_of(runs: Sequence[dict[str, Any]]) -> dict[str, float]:
    """How much longer than Skewless the others take; what was not measured is absent."""
    done = {run["engine"]: run["figures"] for run in runs if run["figures"] is not None}
    own = done.get(SKEWLESS)
    if own is None:
        return {}
    found: dict[str, float] = {}
    for engine in done.keys() - {SKEWLESS}:
        found[f"{engine}_batch"] = done[engine]["seconds"] / own["seconds"]
        found[f"{engine}_makespan"] = done[engine]["makespan_s"] / own["makespan_s"]
    if PLAIN in done:
        found["overhead"] = own["seconds"] / done[PLAIN]["seconds"] - 1
    return found
