"""`skewless bench balance`: what rebalancing gains, what it costs, and how fast it reacts."""

import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console

from skewless.lab.bench import choice, planning
from skewless.lab.bench.balance_child import Order, Turn
from skewless.lab.bench.balance_figures import batches_until_even, figures
from skewless.lab.bench.balance_table import render
from skewless.lab.bench.machine import busy_share, cores, driver_memory
from skewless.lab.bench.measure import Batch, disagreements
from skewless.lab.bench.overhead import report_ms
from skewless.lab.bench.process import OnBatch, listed
from skewless.lab.bench.record import Record, in_turn, watched
from skewless.lab.bench.scenarios import (
    FULL,
    HOT_KEY,
    JUMP,
    PARTITIONS,
    QUICK,
    STRAGGLER,
    UNIFORM,
    ZIPF,
    Contender,
    Scenario,
)
from skewless.lab.bench.table import duration
from skewless.lab.bench.verdict import Target, judged

CHILD = (sys.executable, "-m", "skewless.lab.bench.balance_child")
PLANNING, SIMULATION = "planning", "simulation"
SCENARIOS = (*(scenario.name for scenario in FULL), PLANNING, SIMULATION)
JUDGED_PLANNERS = ("LsStream", "Auto")
SIMULATED = ("BiStream", "FastJoin", "LsStream", "Auto")
SEEDS = 3

TARGETS: dict[str, tuple[Target, ...]] = {
    STRAGGLER: (Target("hash_over_lsstream", "Hash ÷ LsStream ≥ 1.6", 1.6, at_least=True),),
    HOT_KEY: (Target("hash_over_auto", "Hash ÷ Auto ≥ 1.5", 1.5, at_least=True),),
    ZIPF: (Target("auto_imbalance", "Auto: max ÷ mean CPU ≤ 1.15", 1.15, at_least=False),),
    JUMP: (Target("auto_batches", "Auto: even again within 3 batches", 3, at_least=False),),
    UNIFORM: (Target("share", "reports and planning ≤ 3 % of the batch", 0.03, at_least=False),),
    PLANNING: tuple(
        Target(f"ms_{p}x{i}", f"{p:,} partitions × {i:,} instances ≤ {ms} ms", ms, at_least=False)
        for (p, i), ms in zip(planning.SIZES, (10, 500), strict=True)
    ),
    SIMULATION: (
        Target("lsstream_over_bistream", "LsStream ÷ BiStream ≥ 2", 2.0, at_least=True),
        Target("lsstream_over_fastjoin", "LsStream ÷ FastJoin ≥ 1.06", 1.06, at_least=True),
        Target("auto_over_lsstream", "Auto ÷ LsStream ≥ 1", 1.0, at_least=True),
    ),
}

Heard = tuple[list[Turn], str | None]
Measure = Callable[[Order, OnBatch], Heard]
Busy = Callable[[], float]


def measure(order: Order, on_batch: OnBatch, command: Sequence[str] = CHILD) -> Heard:
    """Run one policy in a process of its own: its batches, and what went wrong if anything did."""
    return listed(
        order.as_json(), on_batch, command, lambda e: [Turn(**turn) for turn in e["turns"]]
    )


def run(
    *,
    scenarios: list[str] | None,
    json_path: Path | None,
    quick: bool,
    measure: Measure = measure,
    busy: Busy = busy_share,
    console: Console | None = None,
) -> dict[str, Any]:
    """Measure these scenarios (None: all), print tables, return everything.

    `measure` runs one policy on one scenario, by default in a process of its own; `busy` tells what
    else the machine does before it.

    >>> run(scenarios=["straggler"], json_path=None, quick=True)  # doctest: +SKIP
    """
    console = console or Console(highlight=False)
    selected = choice.chosen("scenario", scenarios, SCENARIOS)
    record = Record(
        "balance", "scenarios", quick=quick, json_path=json_path, render=render, console=console
    )
    on_spark = {scenario.name: scenario for scenario in (QUICK if quick else FULL)}
    for name in selected:
        if name in on_spark:
            with tempfile.TemporaryDirectory(prefix="skewless-bench-") as folder:
                outcome = _Bench(on_spark[name], Path(folder), measure, busy, console).run()
        elif name == PLANNING:
            outcome = _plan(quick=quick)
        else:
            outcome = _simulate(quick=quick)
        outcome["targets"] = judged(TARGETS[name], outcome["values"], quick=quick)
        record.add(name, outcome)
    return record.saved()


@dataclass(frozen=True)
class _Bench:
    """One scenario on Spark: its files, and every policy on them."""

    scenario: Scenario
    folder: Path
    measure: Measure
    busy: Busy
    console: Console

    def run(self) -> dict[str, Any]:
        scenario = self.scenario
        self.console.print(f"[bold]{scenario.name}[/]: writing its files")
        left, right = scenario.generate(self.folder / "data")
        contenders = {contender.label: contender for contender in scenario.contenders}
        heard, busy = in_turn(
            list(contenders),
            scenario.repeats,
            self.busy,
            lambda label: self._one(contenders[label], left, right),
        )
        runs = [
            self._summary(contender, heard[contender.label]) for contender in scenario.contenders
        ]
        errors = [f"{run['label']}: {run['error']}" for run in runs if run["error"]]
        found = {
            label: [Batch(t.number, t.seconds, t.rows, t.matches) for t in repeats[0][0]]
            for label, repeats in heard.items()
        }
        return {
            "title": scenario.title,
            "parameters": scenario.describe(),
            "busy_with_other_work": busy,
            "runs": runs,
            "values": values_of(scenario, runs),
            "errors": errors + disagreements(found),
        }

    def _summary(self, contender: Contender, repeats: list[Heard]) -> dict[str, Any]:
        scenario = self.scenario
        good = [turns for turns, error in repeats if error is None]
        each = [figures(turns, scenario.warm_up) for turns in good]
        jump = scenario.jumps_at
        return {
            "policy": contender.policy,
            "label": contender.label,
            "options": contender.options,
            "error": next((error for _, error in repeats if error is not None), None),
            "figures": {key: statistics.median(f[key] for f in each) for key in each[0]}
            if each
            else None,
            "batches_until_even": batches_until_even(good[0], scenario.warm_up, jump)
            if good and jump
            else None,
            "repeats": [[vars(turn) for turn in turns] for turns in good],
        }

    def _one(self, contender: Contender, left: Path, right: Path) -> Heard:
        scenario = self.scenario
        name = f"{scenario.name}: {contender.label}"
        with tempfile.TemporaryDirectory(dir=self.folder) as checkpoint:
            order = Order(
                contender,
                left=str(left),
                right=str(right),
                window_s=scenario.window_s,
                refines=scenario.refines,
                cores=cores(),
                checkpoint=f"{checkpoint}/c",
                driver_memory=driver_memory(),
            )
            measure = partial(self.measure, order)
            turns, error = watched(self.console, name, scenario.batches, measure)
        if error is None:
            seconds = figures(turns, scenario.warm_up)["seconds"]
            self.console.print(f"{name}: {duration(seconds)} s per batch", soft_wrap=True)
        else:
            self.console.print(f"{name}: failed", soft_wrap=True)
        return turns, error


def values_of(scenario: Scenario, runs: Sequence[dict[str, Any]]) -> dict[str, float]:
    """The figures that the targets are about; what was not measured is absent."""
    done = {run["policy"]: run for run in runs if run["figures"] is not None}
    found: dict[str, float] = {}
    seconds = {policy: run["figures"]["seconds"] for policy, run in done.items()}
    for policy in seconds.keys() - {"Hash"}:
        if "Hash" in seconds:
            found[f"hash_over_{policy.lower()}"] = seconds["Hash"] / seconds[policy]
    for policy, run in done.items():
        found[f"{policy.lower()}_imbalance"] = run["figures"]["imbalance"]
        if run["batches_until_even"] is not None:
            found[f"{policy.lower()}_batches"] = run["batches_until_even"]
    if scenario.name == UNIFORM and "Auto" in done:
        auto = done["Auto"]
        last = auto["repeats"][0][-1]
        instances = auto["options"]["instances"]
        # Tasks run side by side, so a batch is held up by the counting of one of them.
        found["report_ms"] = report_ms(
            last["rows"] // instances, last["matches"] // instances, PARTITIONS
        )
        found["plan_ms"] = auto["figures"]["plan_ms"]
        found["share"] = (found["report_ms"] + found["plan_ms"]) / (1e3 * seconds["Auto"])
    return found


def _plan(*, quick: bool) -> dict[str, Any]:
    """The time of the slowest round of each planner, from `skewless.lab.bench.planning`."""
    rows = [
        row
        for partitions, instances in (planning.SIZES[:1] if quick else planning.SIZES)
        for row in planning.compare(partitions, instances, 1.0, clock=time.perf_counter)
    ]
    slowest: dict[str, float] = {}
    for row in rows:
        # Others are there for comparison: a threshold that no user of the paper's policy has.
        if row["planner"] in JUDGED_PLANNERS:
            name = f"ms_{row['partitions']}x{row['instances']}"
            slowest[name] = max(slowest.get(name, 0.0), row["milliseconds_most"])
    return {
        "title": "Planning, Zipf 1.0: the slowest round",
        "planners": rows,
        "values": slowest,
        "errors": [],
    }


def _simulate(*, quick: bool) -> dict[str, Any]:
    """The highest rate that a simulated cluster sustains, as in `skewless reproduce ls-stream`."""
    from skewless.lab.reproduce.experiments import Task, perform

    rates: dict[str, float] = {}
    for system in SIMULATED:
        tasks = [
            Task("zipf", system, 1.0, seed, zipf=1.0, quick=quick)
            for seed in range(1, 2 if quick else 1 + SEEDS)
        ]
        found = [perform(task).bottleneck for task in tasks]
        rates[system] = statistics.fmean(rate for rate in found if rate is not None)
    own = rates["LsStream"]
    return {
        "title": "Simulation, Zipf 1.0, 20 instances: the highest rate that is sustained",
        "rates": rates,
        "values": {
            "lsstream_over_bistream": own / rates["BiStream"],
            "lsstream_over_fastjoin": own / rates["FastJoin"],
            "auto_over_lsstream": rates["Auto"] / own,
        },
        "errors": [],
    }
