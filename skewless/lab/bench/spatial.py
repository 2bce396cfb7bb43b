"""`skewless bench spatial`: subscriptions and joins by distance, beside Spark's own means."""

import statistics
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console

from skewless.lab.bench import choice, process, spatial_bare, with_sedona
from skewless.lab.bench.child import Job
from skewless.lab.bench.engines import Replay
from skewless.lab.bench.machine import busy_share, cores, driver_memory
from skewless.lab.bench.measure import Batch, disagreements
from skewless.lab.bench.process import OnBatch, Outcome
from skewless.lab.bench.record import Record, in_turn, watched
from skewless.lab.bench.spatial_engines import (
    ADDING,
    AUTO,
    CELLS,
    ENGINES,
    FLOORS,
    IN_PLACE,
    NEAR,
    RANGE,
    REPLICATED,
    STATE_CELLS,
    STATIC,
    STRTREE,
    SUBSCRIBE,
    SWARM,
)
from skewless.lab.bench.spatial_scenes import Crowded, Fleets, Newcomers, Scene, Subscribed
from skewless.lab.bench.spatial_table import render
from skewless.lab.bench.table import duration
from skewless.lab.bench.verdict import FLOOR, Target, judged
from skewless.lab.bench.workloads import Length

CHILD = (sys.executable, "-m", "skewless.lab.bench.spatial_child")
# Past this a slow contender has shown enough, if it has done two batches.
SLOW_BUDGET_S, BUDGET_S = 300.0, 1_800.0
BARE = "kernel"

Measure = Callable[[Job, OnBatch], Outcome]
Busy = Callable[[], float]


@dataclass(frozen=True)
class Part:
    """Contenders on the same scene, in turn."""

    name: str
    title: str
    scene: Scene
    contenders: tuple[str, ...]
    repeats: int
    targets: tuple[Target, ...]


@dataclass(frozen=True)
class Bare:
    """The same without Spark, in one process."""

    title: str
    subscriptions: int
    points: int
    repeats: int
    targets: tuple[Target, ...]
    name: str = BARE


FULL: tuple[Part | Bare, ...] = (
    Part(
        "subscriptions",
        "1 M subscriptions of 0.16 % side, points anywhere",
        # Small batches first: there the range join, which is slow, is compared with the others.
        # Java compiles its code in the first ten large ones, which take half as long again.
        Subscribed(Length(24, 13, slow=Length(3, 1)), 1_000_000, (2_000,) * 3 + (400_000,) * 21),
        (SUBSCRIBE, STRTREE, CELLS, RANGE, *FLOORS),
        repeats=2,
        targets=(
            Target("times_range", "≥ 20 × Spark's broadcast range join", 20, at_least=True),
            Target("times_strtree", "≥ 2 × STRtree, a process per core", 2, at_least=True),
        ),
    ),
    Bare(
        "1 M subscriptions in one process, without Spark",
        1_000_000,
        400_000,
        repeats=7,
        targets=(Target("times_bare_strtree", "≥ 2 × STRtree", 2, at_least=True),),
    ),
    Part(
        "distance",
        "points within 0.1 % of the map's side and ±100 s, 1 M of each side in the window",
        Fleets(Length(8, 3, slow=Length(3, 1)), 1_000_000, 100_000, 10_000.0),
        (NEAR, STATE_CELLS, with_sedona.NAME),
        repeats=2,
        targets=(Target("times_state", "≥ 10 × Spark's join by cells", 10, at_least=True),),
    ),
    Part(
        "hotspot",
        "40 % of the points in 15 % of the map's side, 2 instances",
        Crowded(Length(20, 12), 1_000_000, (100_000,) * 20, hot_from=4),
        (SWARM, STATIC, REPLICATED, AUTO),
        repeats=2,
        targets=(
            Target(
                "static_over_swarm", "StaticGrid from history ÷ Swarm ≥ 1.5", 1.5, at_least=True
            ),
        ),
    ),
    Part(
        "adding",
        "100,000 subscriptions more in a batch, 1 M stored",
        Newcomers(Length(5, 1), 1_000_000, 100_000, 20),
        (ADDING,),
        repeats=3,
        targets=(Target("seconds", "≤ 2 s per batch", 2.0, at_least=False),),
    ),
    Part(
        "fixed",
        "20 points per batch, 1 M subscriptions stored",
        Subscribed(Length(30, 10), 1_000_000, (20,) * 30),
        (SUBSCRIBE,),
        repeats=3,
        targets=(Target("seconds", "≤ 0.3 s per batch", 0.3, at_least=False),),
    ),
)
PARTS = tuple(part.name for part in FULL)


def _small(part: Part | Bare) -> Part | Bare:
    """The same, only to see that everything runs."""
    title = f"{part.title}: here with far fewer"
    if isinstance(part, Bare):
        return replace(part, title=title, subscriptions=10_000, points=5_000, repeats=1)
    scene = part.scene
    length = Length(4, 2, slow=Length(2, 1))
    if isinstance(scene, Subscribed):
        points = (100, 100, *[min(4_000, max(scene.points))] * 2)
        scene = replace(scene, length=length, subscriptions=10_000, points=points)
    elif isinstance(scene, Newcomers):
        scene = replace(scene, length=length, stored=10_000, added=1_000)
    elif isinstance(scene, Fleets):
        scene = replace(scene, length=length, window_rows=5_000, per_batch=2_000)
    return replace(part, title=title, scene=scene, repeats=1)


QUICK = tuple(_small(part) for part in FULL)


def measure(job: Job, on_batch: OnBatch) -> Outcome:
    """One contender, in a process of its own."""
    return process.measure(job, on_batch, CHILD)


def run(
    *,
    parts: list[str] | None,
    json_path: Path | None,
    quick: bool,
    measure: Measure = measure,
    busy: Busy = busy_share,
    console: Console | None = None,
) -> dict[str, Any]:
    """Measure these parts (None: all), print tables, return everything.

    `measure` runs one contender, by default in a process of its own; `busy` tells what else the
    machine does before it.

    >>> run(parts=["fixed"], json_path=None, quick=True)["errors"]  # doctest: +SKIP
    []
    """
    console = console or Console(highlight=False)
    available = {part.name: part for part in (QUICK if quick else FULL)}
    selected = choice.chosen("part", parts, list(available))
    packages = ("shapely", *([with_sedona.PACKAGE] if with_sedona.installed() else []))
    record = Record(
        "spatial",
        "parts",
        quick=quick,
        json_path=json_path,
        render=render,
        console=console,
        packages=packages,
    )
    for part in (available[name] for name in selected):
        if isinstance(part, Bare):
            outcome = without_spark(part, busy)
        else:
            with tempfile.TemporaryDirectory(prefix="skewless-bench-") as folder:
                outcome = _Bench(part, Path(folder), measure, busy, console).run()
        outcome["targets"] = judged(part.targets, outcome["ratios"], quick=quick)
        record.add(part.name, outcome)
    return record.saved()


def without_spark(part: Bare, busy: Busy) -> dict[str, Any]:
    """Our index and shapely's, by turns."""
    share = busy()
    contenders = spatial_bare.searches(part.subscriptions, part.points)
    seconds, pairs = spatial_bare.measure(contenders, part.repeats)
    told = set(pairs.values())
    runs = [
        _run(n, n, [Batch(i, s, part.points) for i, s in enumerate(taken)], 0)
        for n, taken in seconds.items()
    ]
    return {
        "title": part.title,
        "parameters": {"subscriptions": part.subscriptions, "points": part.points},
        "busy_with_other_work": share,
        "absent": [],
        "runs": runs,
        "ratios": ratios(runs),
        "errors": [] if len(told) == 1 else [f"different pairs: {pairs}"],
    }


@dataclass(frozen=True)
class _Bench:
    """One part on Spark: its files, and runs of every contender on them."""

    part: Part
    folder: Path
    measure: Measure
    busy: Busy
    console: Console

    def run(self) -> dict[str, Any]:
        part = self.part
        self.console.print(f"[bold]{part.name}[/]: writing its files")
        inputs = part.scene.write(self.folder / "data")
        there = [name for name in part.contenders if name in ENGINES]
        heard, share = in_turn(there, part.repeats, self.busy, partial(self._one, inputs))
        runs, errors = [], []
        for name, outcomes in heard.items():
            warm_up = self._length(name).warm_up
            measured = [b for o in outcomes for b in o.batches[warm_up:]]
            runs.append(_run(name, ENGINES[name].title, measured, warm_up))
            errors += [f"{name}: {outcome.error}" for outcome in outcomes if outcome.error]
        for together in zip(*heard.values(), strict=True):
            found = dict(zip(heard, together, strict=True))
            errors += disagreements(
                {name: outcome.batches for name, outcome in found.items()},
                {name: outcome.totals for name, outcome in found.items()},
            )
        return {
            "title": part.title,
            "parameters": {**part.scene.describe(), "repeats": part.repeats},
            "busy_with_other_work": share,
            "absent": [name for name in part.contenders if name not in ENGINES],
            "runs": runs,
            "ratios": ratios(runs),
            "errors": errors,
        }

    def _length(self, contender: str) -> Length:
        if contender == with_sedona.NAME:
            return Length(self.part.scene.length.batches, 1)
        return self.part.scene.length.of(is_slow=ENGINES[contender].is_slow)

    def _one(self, inputs: tuple[Path, Path], contender: str) -> Outcome:
        scene, engine = self.part.scene, ENGINES[contender]
        length = self._length(contender)
        with tempfile.TemporaryDirectory(dir=self.folder) as folder:
            left, right = scene.begun(inputs, length.batches, Path(folder))
            job = Job(
                contender,
                Replay(str(left), str(right), scene.within_s, cores(), f"{folder}/checkpoint"),
                batches=length.batches,
                warm_up=length.warm_up,
                budget_s=SLOW_BUDGET_S if engine.is_slow else BUDGET_S,
                driver_memory=driver_memory(),
            )
            name = f"{self.part.name}: {engine.title}"
            outcome = watched(self.console, name, job.batches, partial(self.measure, job))
        if outcome.error is None and engine.start is not None:
            outcome = replace(outcome, error=_wrong_rows(outcome.batches, scene.rows))
        taken = [batch.seconds for batch in outcome.batches[length.warm_up :]]
        said = "failed" if outcome.error else f"{duration(statistics.median(taken))} s per batch"
        self.console.print(f"{name}: {said}", soft_wrap=True)
        return outcome


def _wrong_rows(batches: Sequence[Batch], rows: Sequence[int]) -> str | None:
    """What is wrong with the rows of a run, if anything is."""
    for batch, wanted in zip(batches, rows, strict=False):
        if batch.rows != wanted:
            return f"batch {batch.number} had {batch.rows:,} rows instead of {wanted:,}"
    return None


def _run(name: str, title: str, measured: Sequence[Batch], warm_up: int) -> dict[str, Any]:
    """What is kept of all the runs of a contender: its batches, their times and rates."""
    seconds = [batch.seconds for batch in measured]
    rates = [batch.rows / max(batch.seconds, 1e-3) for batch in measured]
    found = [batch.matches for batch in measured if batch.matches is not None]
    return {
        "contender": name,
        "title": title,
        "warm_up": warm_up,
        "seconds": spread(seconds),
        "rows_per_second": spread(rates),
        "matches_per_batch": statistics.fmean(found) if found else None,
        "batches": [vars(batch) for batch in measured],
    }


def spread(values: Sequence[float]) -> dict[str, float] | None:
    """
    >>> spread([3.0, 1.0, 2.0])
    {'median': 2.0, 'least': 1.0, 'most': 3.0}
    """
    if not values:
        return None
    return {"median": statistics.median(values), "least": min(values), "most": max(values)}


# What is said of two contenders: the rate of the first by that of the second.
_RATIOS = {
    "times_range": (SUBSCRIBE, RANGE),
    "times_cells": (SUBSCRIBE, CELLS),
    "times_strtree": (SUBSCRIBE, STRTREE),
    "share_of_floor": (SUBSCRIBE, FLOOR),
    "floor_times_strtree": (FLOOR, STRTREE),
    "in_place_times_strtree": (IN_PLACE, STRTREE),
    "times_bare_strtree": (spatial_bare.INDEX, STRTREE),
    "times_state": (NEAR, STATE_CELLS),
    "times_sedona": (NEAR, with_sedona.NAME),
    "static_over_swarm": (SWARM, STATIC),
    "static_over_auto": (AUTO, STATIC),
    "replicated_over_auto": (AUTO, REPLICATED),
    "swarm_over_auto": (AUTO, SWARM),
}


def ratios(runs: Sequence[dict[str, Any]]) -> dict[str, float]:
    """What was measured beside each other, by medians; of a contender alone, its seconds.

    >>> one = {"contender": "near", "rows_per_second": {"median": 30.0}}
    >>> other = {"contender": "spark-state", "rows_per_second": {"median": 2.0}}
    >>> ratios([one, other])
    {'times_state': 15.0}
    """
    rates = {r["contender"]: r["rows_per_second"]["median"] for r in runs if r["rows_per_second"]}
    found = {
        name: rates[ours] / rates[theirs]
        for name, (ours, theirs) in _RATIOS.items()
        if ours in rates and theirs in rates
    }
    if len(runs) == 1 and rates:
        found["seconds"] = runs[0]["seconds"]["median"]
    return found
