"""The experiments of the load shedding paper (§6): points, run for some seeds and schemes."""

import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from skewless.lab.reproduce.shedding_cashtags import cashtag_streams, full_comparisons
from skewless.lab.reproduce.windowed.simulation import (
    Access,
    Comparisons,
    Join,
    MeasuredTime,
    Run,
    Scheme,
    simulate,
)
from skewless.lab.reproduce.windowed.streams import LAG, PHASES, Streams, paper_streams

WINDOW_S = 20.0
EXPONENT = 0.8
# One CPU for all experiments: with a window on both streams, 100 tuples per second keep it busy
# for 80 % of the time.
BUDGET = 2 * 100.0 * 100.0 * WINDOW_S / 0.8
BUDGETS = (420_000.0, BUDGET, 800_000.0, 1_600_000.0)
EXPONENTS = (0.2, 0.4, 0.6, 0.8, 1.0, 1.2)
SHOWN_EXPONENTS = (0.6, 0.8)  # those of Fig. 2
WINDOWS_S = (10.0, 20.0, 40.0)
BASIC_S = (0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0)
INDEXED_WINDOW_S = 200.0
INDEXED_BASIC_S = (0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 25.0, 50.0, 100.0, 200.0)
STEADY_RATE = 500.0
SETTLING_S, LEAST_MEASURED_S = 20.0, 40.0
# Real data: a day takes a second.
CASHTAG_LAGS_S = (0.0, 15.0)
CASHTAG_KEEPS = (0.5, 0.98)
CASHTAG_SHARE = 0.1  # of what the join would need
CASHTAG_THRESHOLD = 2

DROPPING = (Scheme.DROP, Scheme.RATE)
SELECTIVE = (Scheme.RATE, Scheme.TIME, Scheme.DIRECTION)
Phases = tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class Point:
    """One value on the axis of one figure."""

    experiment: str
    at: float
    schemes: tuple[Scheme, ...]
    exponent: float = EXPONENT
    window_s: float = WINDOW_S
    lag: float = LAG  # in cycles
    one_sided: bool = False
    threshold: int = 3
    phases: Phases = PHASES
    steady: bool = False  # windows are full from the start, and the rate stays
    basic_s: float = 1.0
    access: Access = Access.SCAN
    budget: float = BUDGET  # comparisons per second, or as much time as they take
    measured: bool = False
    single_values: bool = False
    keep: float = 0.5  # of older statistics, per period
    learns_all: bool = False  # every tuple is processed in full, whatever it costs
    cashtags: Path | None = None

    @property
    def join(self) -> Join:
        windows_s = (0.0 if self.one_sided else self.window_s, self.window_s)
        join = Join(windows_s, self.threshold, self.basic_s, self.access, keep=self.keep)
        if self.steady:
            join = replace(join, filled_s=self.window_s)
        if self.learns_all:
            join = replace(join, sampling=1.0, keep=1.0)
        return join

    @property
    def parts(self) -> dict[str, tuple[float, float]]:
        """The parts of the run whose output is told."""
        ends = np.cumsum([0.0, *(seconds for _, seconds in self.phases)])
        if self.steady or self.cashtags is not None:
            begin = self.window_s + (SETTLING_S if self.steady else 0.0)
            return {"all": (begin, np.inf if self.cashtags else float(ends[-1]))}
        return {
            "all": (0.0, float(ends[-1])),
            "500/s": (float(ends[1]), float(ends[2])),
            "300/s": (float(ends[2]), float(ends[3])),
            "raised": (float(ends[1]), float(ends[3])),
        }

    def streams(self, seed: int) -> Streams:
        if self.cashtags is not None:
            return cashtag_streams(self.cashtags, seed, lag_s=self.at)
        return _drawn(seed, self.exponent, self.window_s, self.lag, self.phases, self.single_values)


@dataclass(frozen=True)
class Result:
    """What the schemes gave at a point with one seed; measured ones were run again and again."""

    point: Point
    seed: int
    repeat: int
    output: dict[str, dict[str, float]]  # by scheme and part, matches per second
    comparisons: dict[str, float]  # per second
    dropped: dict[str, float]  # share of the tuples
    series: dict[str, list[int]] = field(default_factory=dict)
    fractions: dict[str, list[tuple[float, float, float, float]]] = field(default_factory=dict)
    learned: list[list[float]] = field(default_factory=list)  # o_ij of both windows

    def as_json(self) -> dict[str, Any]:
        point = self.point
        record: dict[str, Any] = {
            "experiment": point.experiment,
            "at": point.at,
            "exponent": point.exponent,
            "windowS": point.window_s,
            "budget": point.budget,
            "keep": point.keep,
            "seed": self.seed,
            "repeat": self.repeat,
            "output": self.output,
            "comparisons": self.comparisons,
            "dropped": self.dropped,
        }
        for name in ("series", "fractions", "learned"):
            if getattr(self, name):
                record[name] = getattr(self, name)
        return record


@lru_cache(maxsize=4)
def _drawn(
    seed: int, exponent: float, window_s: float, lag: float, phases: Phases, single_values: bool
) -> Streams:
    return paper_streams(
        seed, exponent=exponent, window_s=window_s, lag=lag, phases=phases,
        single_values=single_values,
    )  # fmt: skip


def steady(window_s: float) -> Phases:
    """500 tuples per second: windows are filled, fractions settle, and then it is measured.

    For a window's length at least: what a basic window finds depends on how full the newest is.
    """
    return ((STEADY_RATE, window_s + SETTLING_S + max(LEAST_MEASURED_S, window_s)),)


def points(*, quick: bool) -> Iterator[Point]:
    """Every point of every figure under a budget of comparisons; `quick` takes a few of them."""
    for exponent in SHOWN_EXPONENTS:
        yield Point(
            "probability", exponent, (Scheme.TIME,), exponent=exponent, learns_all=True,
            phases=((100.0, 60.0 if quick else 400.0),), steady=True, budget=1e15,
        )  # fmt: skip
    yield Point("rates", 0, DROPPING, lag=0.0, one_sided=True)
    yield Point("lag", 0, tuple(Scheme))
    for exponent in SHOWN_EXPONENTS:
        yield Point(
            "steady", exponent, tuple(Scheme), exponent=exponent, steady=True,
            phases=steady(WINDOW_S),
        )  # fmt: skip
    for exponent in (0.4, 0.8) if quick else EXPONENTS:
        for window_s in (20.0,) if quick else WINDOWS_S:
            yield Point(
                "windows", exponent, DROPPING, exponent=exponent, window_s=window_s, lag=0.0,
                one_sided=True,
            )  # fmt: skip
        yield Point("skew", exponent, SELECTIVE, exponent=exponent, threshold=4)
    for basic_s in (1.0, 20.0, 0.0) if quick else (*BASIC_S, 0.0):
        for exponent in SHOWN_EXPONENTS:
            yield _basic("basic", basic_s, WINDOW_S, exponent, Access.SCAN)
    yield Point("equality", 0, tuple(Scheme), threshold=1, single_values=True)
    if not quick:
        for budget in BUDGETS:
            for exponent in SHOWN_EXPONENTS:
                some: dict[str, Any] = {"exponent": exponent, "budget": budget}
                yield Point("budget rates", budget, DROPPING, lag=0.0, one_sided=True, **some)
                yield Point("budget lag", budget, SELECTIVE, **some)


def measured_points(*, quick: bool) -> Iterator[Point]:
    """The points that are measured on this machine; how often is up to the caller."""
    yield Point("rates measured", 0, DROPPING, lag=0.0, one_sided=True, measured=True)
    yield Point("lag measured", 0, tuple(Scheme), measured=True)
    window_s = 40.0 if quick else INDEXED_WINDOW_S
    for exponent in (EXPONENT,) if quick else SHOWN_EXPONENTS:
        for basic_s in (1.0, 0.0) if quick else (*BASIC_S, 0.0):
            yield _basic("basic measured", basic_s, WINDOW_S, exponent, Access.SCAN)
    for exponent in (EXPONENT,) if quick else SHOWN_EXPONENTS:
        for access in (Access.BY_TIME, Access.BY_IDENTIFIER):
            for basic_s in (1.0, 0.0) if quick else (*INDEXED_BASIC_S, 0.0):
                yield _basic(f"index {access.name}", basic_s, window_s, exponent, access)


def cashtag_points(path: Path) -> Iterator[Point]:
    """Real posts, as they were written and with one of the streams late."""
    for lag_s in CASHTAG_LAGS_S:
        for keep in CASHTAG_KEEPS:
            yield Point(
                "cashtags", lag_s, tuple(Scheme), threshold=CASHTAG_THRESHOLD, cashtags=path,
                lag=0.0, keep=keep,
            )  # fmt: skip


def _basic(
    experiment: str, basic_s: float, window_s: float, exponent: float, access: Access
) -> Point:
    """A basic window of 0 s stands for none: rate adaptation alone."""
    return Point(
        experiment, basic_s, (Scheme.TIME,) if basic_s else (Scheme.RATE,), exponent=exponent,
        window_s=window_s, phases=steady(window_s), steady=True, basic_s=basic_s or 1.0,
        access=access, measured=experiment != "basic",
    )  # fmt: skip


def perform(point: Point, seed: int, repeat: int = 0, comparison_s: float = 0.0) -> Result:
    """One point with one seed, under all its schemes.

    `comparison_s` is how long a comparison takes on this machine, for points that are measured.
    """
    streams, join = point.streams(seed), point.join
    budget: Comparisons | MeasuredTime = Comparisons(point.budget)
    if point.measured:
        budget = MeasuredTime(point.budget * comparison_s)
    elif point.cashtags is not None:
        budget = Comparisons(CASHTAG_SHARE * full_comparisons(streams, point.window_s))
    runs = {s.value: simulate(s, streams, join, budget) for s in point.schemes}
    shown = point.experiment in ("rates", "lag", "lag measured", "rates measured")
    return Result(
        point,
        seed,
        repeat,
        {name: _outputs(point, run, streams.seconds) for name, run in runs.items()},
        {name: float(run.comparisons.mean()) for name, run in runs.items()},
        {name: float(run.dropped.sum() / len(streams.tuples.time_s)) for name, run in runs.items()},
        {name: run.matches.tolist() for name, run in runs.items()} if shown else {},
        {name: _fractions(run) for name, run in runs.items()} if shown else {},
        _learned(runs) if point.experiment in ("probability", "cashtags") else [],
    )


def _outputs(point: Point, run: Run, seconds: float) -> dict[str, float]:
    return {
        part: round(run.output(begin, min(end, seconds)), 3)
        for part, (begin, end) in point.parts.items()
    }


def _fractions(run: Run) -> list[tuple[float, float, float, float]]:
    return [(s.time_s, s.fraction, s.fractions[0], s.fractions[1]) for s in run.course]


def _learned(runs: dict[str, Run]) -> list[list[float]]:
    run = runs[Scheme.TIME.value]
    assert run.learned is not None
    return [learned.expected.tolist() for learned in run.learned]


def time_of_a_comparison(*, quick: bool) -> float:
    """Seconds that a comparison takes here: a join without shedding ÷ its comparisons."""
    phases = ((300.0, 10.0 if quick else 40.0),)
    streams = paper_streams(1, exponent=EXPONENT, window_s=WINDOW_S, lag=LAG, phases=phases)
    taken = []
    for _ in range(3):
        began = time.thread_time()
        run = simulate(Scheme.RATE, streams, Join(), Comparisons(1e15))
        taken.append((time.thread_time() - began) / int(run.comparisons.sum()))
    return sorted(taken)[1]
