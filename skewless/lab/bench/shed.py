"""`skewless bench shed`: what shedding keeps to, what it finds, and what it costs when idle."""

import statistics
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from skewless.lab.bench import choice, shed_truth
from skewless.lab.bench.machine import busy_share, cores, driver_memory
from skewless.lab.bench.pipe import Request
from skewless.lab.bench.process import OnBatch, listed
from skewless.lab.bench.record import Record, watched
from skewless.lab.bench.shed_capacity import Calibration, Point, capacity
from skewless.lab.bench.shed_child import DROP, NONE, SHED, Contest, Turn
from skewless.lab.bench.shed_figures import Overload, figures, values_of
from skewless.lab.bench.shed_needless import Pair, Pairs
from skewless.lab.bench.shed_streams import (
    AT_LEAST,
    CYCLES_PER_WINDOW,
    EXPONENT,
    ITEMS,
    LAG,
    sides,
    write,
)
from skewless.lab.bench.shed_table import render
from skewless.lab.bench.table import duration
from skewless.lab.bench.verdict import Target, judged
from skewless.lab.bench.workloads import FULL as WORKLOADS
from skewless.lab.bench.workloads import QUICK as SMALL_WORKLOADS
from skewless.lab.bench.workloads import Workload, generate

OVERLOAD, NEEDLESS, COMPARISONS = "overload", "needless", "comparisons"
SCENARIOS = (OVERLOAD, NEEDLESS, COMPARISONS)
CONTENDERS = (SHED, DROP, NONE)
PROGRAMS: dict[type[Request], str] = {
    Calibration: "skewless.lab.bench.shed_capacity",
    Contest: "skewless.lab.bench.shed_child",
    Pairs: "skewless.lab.bench.shed_needless",
}
# A batch at capacity takes all of the interval; shedding leaves some of it free, on purpose.
FITS = 0.7
SEEDS = 5

TARGETS: dict[str, tuple[Target, ...]] = {
    OVERLOAD: (
        Target("over", "no batch over max_latency", 0, at_least=False),
        Target("shed_over_drop", "output, Shed ÷ RandomDrop ≥ 1.5", 1.5, at_least=True),
        Target("batches_until_full", "all is probed again within 3 batches", 3, at_least=False),
        Target("missed_off", "estimate of what is missed within 10 %", 0.1, at_least=False),
    ),
    NEEDLESS: (Target("slower", "shed without need ≤ 2 % slower", 0.02, at_least=False),),
}

Heard = tuple[list[dict[str, Any]], str | None]
Ask = Callable[[Request, OnBatch], Heard]
Busy = Callable[[], float]


@dataclass(frozen=True)
class Timetable:
    """How fast rows come: times the capacity and seconds, phase by phase; the second overloads."""

    window_s: float
    interval_s: float  # of the trigger, and the most that a batch may take
    step_s: float  # of the files
    phases: tuple[tuple[float, float], ...]
    first_rate: float
    rates: int

    def describe(self) -> dict[str, Any]:
        return {
            **asdict(self),
            "phases": [list(phase) for phase in self.phases],
            "items": ITEMS,
            "exponent": EXPONENT,
            "at_least": AT_LEAST,
            "cycle_s": CYCLES_PER_WINDOW * self.window_s,
            "lag_s": LAG * CYCLES_PER_WINDOW * self.window_s,
        }


FULL = Timetable(20.0, 2.0, 0.5, ((0.5, 24.0), (3.0, 60.0), (0.5, 20.0)), 400.0, 10)
QUICK = Timetable(4.0, 2.0, 0.5, ((0.5, 2.0), (3.0, 4.0), (0.5, 4.0)), 200.0, 1)
PAIRS, QUICK_PAIRS = 7, 1


def ask(request: Request, on_batch: OnBatch) -> Heard:
    """What a process of its own lists, and what went wrong if anything did."""
    command = (sys.executable, "-m", PROGRAMS[type(request)])
    return listed(request.as_json(), on_batch, command, lambda event: event["items"])


def run(
    *,
    scenarios: list[str] | None,
    json_path: Path | None,
    quick: bool,
    ask: Ask = ask,
    busy: Busy = busy_share,
    console: Console | None = None,
) -> dict[str, Any]:
    """Measure these scenarios (None: all), print tables, return everything.

    `ask` has something measured, by default in a process of its own; `busy` tells what else the
    machine does before it.

    >>> run(scenarios=["overload"], json_path=None, quick=True)  # doctest: +SKIP
    """
    console = console or Console(highlight=False)
    selected = choice.chosen("scenario", scenarios, SCENARIOS)
    record = Record(
        "shed", "scenarios", quick=quick, json_path=json_path, render=render, console=console
    )
    for name in selected:
        if name == COMPARISONS:
            record.add(name, compared(quick=quick))
            continue
        with tempfile.TemporaryDirectory(prefix="skewless-bench-") as folder:
            bench = _Bench(Path(folder), ask, busy, console)
            if name == OVERLOAD:
                outcome = bench.overload(QUICK if quick else FULL)
            else:
                workload = (SMALL_WORKLOADS if quick else WORKLOADS)[0]
                outcome = bench.needless(workload, QUICK_PAIRS if quick else PAIRS)
        outcome["targets"] = judged(TARGETS[name], outcome["values"], quick=quick)
        record.add(name, outcome)
    return record.saved()


@dataclass(frozen=True)
class _Bench:
    """The scenarios that are measured on Spark."""

    folder: Path
    ask: Ask
    busy: Busy
    console: Console

    def overload(self, timetable: Timetable) -> dict[str, Any]:
        """A join by common items, with three times as many rows as it can compare in time."""
        window_s, interval_s = timetable.window_s, timetable.interval_s
        outcome: dict[str, Any] = {
            "title": f"Too fast by {timetable.phases[1][0]:g} ×: at least {AT_LEAST} common items "
            f"within ±{window_s:g} s, {interval_s:g} s per batch",
            "parameters": timetable.describe(),
            "busy_with_other_work": self.busy(),
            "runs": [],
            "values": {},
        }
        points, error = self._calibrated(timetable)
        if error is not None:
            return {**outcome, "errors": [f"calibration: {error}"]}
        most = capacity(points, interval_s)
        self.console.print(
            f"{OVERLOAD}: a full join keeps up with {most.rate:,.0f} rows/s on each side",
            soft_wrap=True,
        )
        rates = [(times * most.rate, seconds) for times, seconds in timetable.phases]
        streams = sides(rates, window_s)
        steps = np.arange(0.0, sum(seconds for _, seconds in rates) + 1e-9, timetable.step_s)
        write(streams, self.folder / "files", steps.tolist())
        rows = [round(rate * seconds) for rate, seconds in rates]
        overload = Overload(rows[0], rows[0] + rows[1])
        runs: list[dict[str, Any]] = []
        turns: dict[str, list[Turn]] = {}
        for contender in CONTENDERS:
            outcome["busy_with_other_work"] = max(outcome["busy_with_other_work"], self.busy())
            turns[contender], error = self._contend(
                contender, timetable, len(steps) - 2, sum(map(len, streams))
            )
            found = None
            if error is None:
                found = figures(turns[contender], overload, interval_s, FITS * most.comparisons)
            runs.append(
                {
                    "contender": contender,
                    "error": error,
                    "figures": found,
                    "turns": [vars(turn) for turn in turns[contender]],
                }
            )
        done = {run["contender"]: run["figures"] for run in runs if run["figures"]}
        truth, missed = None, None
        if SHED in done:
            batches = [(turn.left, turn.right) for turn in turns[SHED]]
            truth = shed_truth.results(*streams, window_s, batches, threads=cores())
            missed = float(sum(truth) - done[SHED]["matches"])
        return {
            **outcome,
            "capacity": asdict(most),
            "points": [asdict(point) for point in points],
            "runs": runs,
            "truth": truth,
            "missed_in_truth": missed,
            "values": values_of(done, missed),
            "errors": [f"{r['contender']}: {r['error']}" for r in runs if r["error"]]
            + [f"{name}: {f['late']:,} rows were late" for name, f in done.items() if f["late"]]
            + ([f"{SHED} found results that do not exist"] if (missed or 0.0) < 0 else []),
        }

    def _calibrated(self, timetable: Timetable) -> tuple[list[Point], str | None]:
        (self.folder / "calibration").mkdir()
        calibration = Calibration(
            str(self.folder / "calibration"),
            timetable.window_s,
            timetable.interval_s,
            timetable.first_rate,
            timetable.rates,
            cores(),
            driver_memory(),
        )
        name = f"{OVERLOAD}: capacity"
        items, error = watched(self.console, name, timetable.rates, partial(self.ask, calibration))
        return [Point(**item) for item in items], error

    def _contend(
        self, contender: str, timetable: Timetable, steps: int, rows: int
    ) -> tuple[list[Turn], str | None]:
        name = f"{OVERLOAD}: {contender}"
        with tempfile.TemporaryDirectory(dir=self.folder) as folder:
            contest = Contest(
                contender,
                str(self.folder / "files"),
                folder,
                rows,
                timetable.window_s,
                timetable.interval_s,
                timetable.step_s,
                cores(),
                driver_memory(),
            )
            items, error = watched(self.console, name, steps, partial(self.ask, contest))
        turns = [Turn(**item) for item in items]
        said = "failed" if error else f"longest batch {duration(max(t.seconds for t in turns))} s"
        self.console.print(f"{name}: {said}", soft_wrap=True)
        return turns, error

    def needless(self, workload: Workload, pairs: int) -> dict[str, Any]:
        """A plain join with and without `shed`."""
        self.console.print(f"[bold]{NEEDLESS}[/]: writing its files")
        files = generate(workload, self.folder / "data")
        busy = self.busy()
        order = Pairs(
            str(files.left),
            str(files.right),
            workload.windows_s[0],
            workload.length.warm_up,
            pairs,
            str(self.folder),
            cores(),
            driver_memory(),
        )
        items, error = watched(self.console, NEEDLESS, pairs, partial(self.ask, order))
        found = [Pair(**{**item, "matches": tuple(item["matches"])}) for item in items]
        errors = [error] if error else []
        if any(pair.fraction < 1.0 for pair in found):
            errors.append("results were shed although there was time for all")
        elif any(pair.matches[0] != pair.matches[1] for pair in found):
            errors.append(f"different matches: {[pair.matches for pair in found]}")
        slower = [pair.slower for pair in found]
        by_cpu = [pair.slower_by_cpu for pair in found]
        return {
            "title": f"Shed without need: {workload.title}",
            "parameters": {**workload.describe(), "pairs": pairs},
            "busy_with_other_work": busy,
            "pairs": [asdict(pair) for pair in found],
            "values": {"slower": statistics.median(slower)} if slower else {},
            "spread": [min(slower), max(slower)] if slower else None,
            "slower_by_cpu": [min(by_cpu), statistics.median(by_cpu), max(by_cpu)]
            if by_cpu
            else None,
            "errors": errors,
        }


def compared(*, quick: bool) -> dict[str, Any]:
    """The schemes of the paper under equal numbers of comparisons, simulated tuple by tuple."""
    from skewless.lab.reproduce.shedding_experiments import perform, points
    from skewless.lab.reproduce.shedding_report import targets

    judged_points = [p for p in points(quick=quick) if p.experiment in ("rates", "lag", "steady")]
    seeds = range(1, 2 if quick else 1 + SEEDS)
    results = [perform(point, seed) for point in judged_points for seed in seeds]
    return {
        "title": "Equal comparisons: the paper's schemes, simulated",
        "parameters": {"seeds": len(seeds)},
        "targets": targets(results, quick=quick),
        "results": [result.as_json() for result in results],
        "errors": [],
    }
