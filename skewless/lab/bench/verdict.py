"""Compares the engines on a workload, and the result with what was set out to be reached."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from skewless.lab.bench.measure import Figures

SKEWLESS, FLOOR = "skewless", "floor"
SKEWLESS_INNER = "skewless-inner"  # beside another type of join
GIB = 2**30


@dataclass(frozen=True)
class Target:
    """A bound on one of the ratios: to be at least or at most `bound`."""

    ratio: str
    text: str
    bound: float
    at_least: bool

    def reached(self, value: float) -> bool:
        return value >= self.bound if self.at_least else value <= self.bound


TARGETS: dict[str, tuple[Target, ...]] = {
    "zipf0.8": (
        Target("times_spark_best", "≥ 25 × Spark's best", 25, at_least=True),
        Target("share_of_floor", "≥ 70 % of the floor", 0.70, at_least=True),
    ),
    "zipf1.0": (Target("times_spark_best", "≥ 12 × Spark's best", 12, at_least=True),),
    "empty": (Target("seconds_per_batch", "≤ 0.25 s per batch", 0.25, at_least=False),),
    "window": (Target("long_over_short", "≤ 1.3 × the time per batch", 1.3, at_least=False),),
    "asof": (Target("times_spark_best", "≥ 10 × Spark's best", 10, at_least=True),),
    "memory": (Target("peak_memory_bytes", "worker below 1.5 GiB", 1.5 * GIB, at_least=False),),
}


# Of any other type of join.
_OF_HOW = (Target("times_spark_best", "≥ 15 × Spark's best", 15, at_least=True),)
_OF_LEFT = (*_OF_HOW, Target("over_inner", "≤ 1.3 × the inner join", 1.3, at_least=False))


def best_spark(runs: Mapping[str, Figures], spark_engines: Sequence[str]) -> str | None:
    """The configuration of Spark's own join with the least time per batch."""
    candidates = [name for name in spark_engines if name in runs]
    return min(candidates, key=lambda name: runs[name].seconds, default=None)


def ratios(runs: Mapping[str, Figures], best: str | None) -> dict[str, float]:
    """What is said of Skewless beside the others; whatever was not run is absent.

    `runs` are those with the workload's first window.
    """
    own = runs.get(SKEWLESS)
    if own is None:
        return {}
    found = {"seconds_per_batch": own.seconds}
    if best is not None:
        found["times_spark_best"] = runs[best].seconds / own.seconds
    if FLOOR in runs:
        found["share_of_floor"] = runs[FLOOR].seconds / own.seconds
    if SKEWLESS_INNER in runs:
        found["over_inner"] = own.seconds / runs[SKEWLESS_INNER].seconds
    if own.peak_memory_bytes is not None:
        found["peak_memory_bytes"] = own.peak_memory_bytes
    return found


def window_ratios(short: Figures, long: Figures) -> dict[str, float]:
    """How much longer a batch takes with the long window: by the median, and by the mean.

    Merging of segments happens in some batches only: the mean has its cost, the median may not.
    """
    return {
        "long_over_short": long.seconds / short.seconds,
        "long_over_short_mean": long.seconds_mean / short.seconds_mean,
    }


def verdicts(
    workload: str, values: Mapping[str, float], *, quick: bool, how: str = "inner"
) -> list[dict[str, Any]]:
    """Each target of the workload with what was measured; small inputs prove nothing."""
    targets = TARGETS.get(workload, ())
    if how != "inner":
        targets = () if workload != "zipf0.8" else _OF_LEFT if how == "left" else _OF_HOW
    return judged(targets, values, quick=quick)


def judged(
    targets: Sequence[Target], values: Mapping[str, float], *, quick: bool
) -> list[dict[str, Any]]:
    """Each target with its value and whether it is reached: None where that cannot be said."""
    result: list[dict[str, Any]] = []
    for target in targets:
        value = values.get(target.ratio)
        proves = value is not None and not quick
        result.append(
            {
                "target": target.text,
                "ratio": target.ratio,
                "bound": target.bound,
                "value": value,
                "reached": target.reached(value) if proves and value is not None else None,
            }
        )
    return result
