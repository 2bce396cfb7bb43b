"""The experiments of the POSG paper's §V: points that are run for many seeds and five policies."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from skewless.lab.reproduce.online.references import FullKnowledge, LeastOutstanding
from skewless.lab.reproduce.online.simulation import (
    OnlinePolicy,
    ShuffleCourse,
    ShuffleRun,
    simulate_shuffle,
)
from skewless.lab.reproduce.online.streams import CostlyStream, Spacing, draw_stream, draw_tweets
from skewless.planning.leastwork import LeastWork
from skewless.planning.posg import Posg
from skewless.planning.roundrobin import RoundRobin

POLICIES = ("RoundRobin", "Posg", "LeastOutstanding", "LeastWork", "FullKnowledge")
ZIPFS = (0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0)
LOADS = (0.95, 0.98, 1.0, 1.02, 1.05, 1.07, 1.09, 1.12, 1.15)
LONGEST_MS = (16.0, 32.0, 64.0, 128.0, 256.0)
VALUES = (2, 4, 16, 64, 256, 1024)
INSTANCES = tuple(range(1, 11))
EPSILONS = (0.001, 0.005, 0.01, 0.05, 0.09, 0.2, 0.5, 1.0)
TAIL_LOADS = (1.0, 1.05, 1.15, 1.5)
TAIL_MS = 1_000.0
# The time series: every instance's factor before and after the change (§V-B).
FACTORS = (1.05, 1.025, 1.0, 0.975, 0.95)
FACTORS_AFTER = (0.90, 0.95, 1.0, 1.05, 1.10)
SERIES_TUPLES = 150_000
SERIES_WINDOW = 2_000
TWEETS = 500_000


@dataclass(frozen=True)
class Point:
    """One value on the axis of one figure."""

    experiment: str
    at: float
    zipf: float = 1.0
    over_provisioning: float = 1.0
    longest_ms: float = 64.0
    values: int = 64
    spacing: Spacing = "even"
    instances: int = 5
    epsilon: float | None = None  # None: every policy's own default
    tuples: int = 32_768

    def stream(self, seed: int) -> CostlyStream:
        rng = np.random.default_rng([seed, 41])
        if self.experiment == "tweets":
            return draw_tweets(rng, tuples=self.tuples)
        return draw_stream(
            self.zipf,
            rng,
            tuples=self.tuples,
            values=self.values,
            longest_ms=self.longest_ms,
            spacing=self.spacing,
        )

    def course(self) -> ShuffleCourse:
        if self.experiment == "series":
            return ShuffleCourse(
                self.instances,
                self.over_provisioning,
                factors=FACTORS,
                factors_after=FACTORS_AFTER,
                change_at=self.tuples // 2,
            )
        return ShuffleCourse(self.instances, self.over_provisioning)

    def policies(self) -> dict[str, OnlinePolicy]:
        posg, work = Posg(), LeastWork()
        if self.epsilon is not None:
            posg, work = Posg(epsilon=self.epsilon), LeastWork(epsilon=self.epsilon)
        made = (RoundRobin(), posg, LeastOutstanding(), work, FullKnowledge())
        return dict(zip(POLICIES, made, strict=True))


@dataclass(frozen=True)
class Result:
    """Completion times of a point with one seed under each policy, and what POSG did."""

    point: Point
    seed: int
    mean_ms: dict[str, float]
    p99_ms: dict[str, float]
    longest_ms: dict[str, float]
    messages: int
    run_from: int | None
    recovered_at: int | None
    series: dict[str, list[float]] = field(default_factory=dict)  # the mean of every window

    def as_json(self) -> dict[str, Any]:
        record = {
            "experiment": self.point.experiment,
            "at": self.point.at,
            "seed": self.seed,
            "meanMs": self.mean_ms,
            "p99Ms": self.p99_ms,
            "longestMs": self.longest_ms,
            "messages": self.messages,
            "runFrom": self.run_from,
            "recoveredAt": self.recovered_at,
        }
        return record | ({"series": self.series} if self.series else {})


def points(*, quick: bool) -> Iterator[Point]:
    """Every point of every figure; `quick` takes the ends and the middle."""

    def some(axis: tuple[Any, ...]) -> tuple[Any, ...]:
        return (axis[0], axis[len(axis) // 2], axis[-1]) if quick else axis

    tuples = 8_192 if quick else 32_768
    for zipf in (0.0, 1.0, 3.0) if quick else ZIPFS:
        yield Point("skew", zipf, zipf=zipf, tuples=tuples)
    for load in (1.0, 1.02, 1.15) if quick else LOADS:
        yield Point("load", load, over_provisioning=load, tuples=tuples)
    for longest in some(LONGEST_MS):
        yield Point("longest", longest, longest_ms=longest, tuples=tuples)
    for values in some(VALUES):
        yield Point("values", values, values=values, tuples=tuples)
    for instances in some(INSTANCES):
        yield Point("instances", instances, instances=instances, tuples=tuples)
    for epsilon in some(EPSILONS):
        yield Point("epsilon", epsilon, epsilon=epsilon, tuples=tuples)
    for load in some(TAIL_LOADS):
        yield Point(
            "tail", load, over_provisioning=load, spacing="pareto", values=4_096,
            longest_ms=TAIL_MS, tuples=tuples,
        )  # fmt: skip
    # What is hardest for a policy that learns: costs that are all alike, and items so many and so
    # equally frequent that the sketch can hardly tell them apart.
    for load in some(TAIL_LOADS):
        yield Point("alike", load, over_provisioning=load, values=1, tuples=tuples)
        yield Point(
            "uniform", load, zipf=0.0, over_provisioning=load, spacing="geometric", tuples=tuples
        )
    yield Point("series", 0, tuples=SERIES_TUPLES // 5 if quick else SERIES_TUPLES)
    for instances in some(INSTANCES):
        count = TWEETS // 20 if quick else TWEETS
        yield Point("tweets", instances, instances=instances, tuples=count)


def perform(point: Point, seed: int) -> Result:
    """One point with one seed, under all policies."""
    stream, course = point.stream(seed), point.course()
    runs = {name: simulate_shuffle(p, stream, course) for name, p in point.policies().items()}
    posg = runs["Posg"]
    series = {}
    if point.experiment == "series":
        series = {name: _windows(run) for name, run in runs.items()}
    return Result(
        point,
        seed,
        {name: run.mean_ms for name, run in runs.items()},
        {name: float(np.quantile(run.completion_ms, 0.99)) for name, run in runs.items()},
        {name: float(run.completion_ms.max()) for name, run in runs.items()},
        posg.messages,
        posg.run_from,
        posg.renewed_at if course.change_at else None,
        series,
    )


def _windows(run: ShuffleRun) -> list[float]:
    whole = len(run.completion_ms) // SERIES_WINDOW * SERIES_WINDOW
    means = run.completion_ms[:whole].reshape(-1, SERIES_WINDOW).mean(axis=1)
    return [round(float(mean), 2) for mean in means]
