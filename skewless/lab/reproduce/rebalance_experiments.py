"""The experiments of the rebalancing paper's §V: planners on a stream whose frequencies change."""

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from statistics import fmean
from typing import Any

import numpy as np
import numpy.typing as npt

from skewless.load.imbalance import overload
from skewless.planning.keys.compact import compact
from skewless.planning.keys.ideal import ideal_loads
from skewless.planning.keys.minmig import min_mig, pack_min_mig
from skewless.planning.keys.mintable import min_table
from skewless.planning.keys.mixed import mixed
from skewless.planning.keys.pkg import partial_key_grouping
from skewless.planning.keys.plan import (
    KeyPlan,
    placement,
    planned_loads,
    stay,
    validate_keys,
)
from skewless.planning.keys.readj import readj
from skewless.planning.keys.snapshot import KeySnapshot
from skewless.simulate.fluctuation import Fluctuation

Instances = npt.NDArray[np.int64]

SYSTEMS = ("Hash", "PKG", "Readj", "MinTable", "MinMig", "Mixed", "MixedBF", "Ideal")
ZIPF = 0.85
# The paper's figure on MinMig's table has it grow to 9,350 of 10,000 keys, which is 14/15 of them.
INSTANCES = 15
KEYS = 100_000


@dataclass(frozen=True)
class Task:
    """One point of one experiment: a system over some intervals."""

    experiment: str
    system: str
    at: float  # the value that the experiment varies
    seed: int
    instances: int = INSTANCES
    theta_max: float = 0.08
    keys: int = KEYS
    degree: int | None = None  # of compact statistics
    rate: float = 1.0
    beta: float = 1.5
    window: int = 1
    table_limit: int = 3_000
    intervals: int = 10
    scale_out: bool = False  # an empty instance joins in the last interval


@dataclass(frozen=True)
class Result:
    """Means over the intervals; of the table also its last size."""

    task: Task
    skewness: float  # L(d) of the straggler ÷ L̄, after the plan
    skewness_before: float
    milliseconds: float | None  # None: nothing is planned
    migration: float  # share of all state
    table_size: float
    last_table: int
    load_error: float | None  # of compact statistics
    last_skewness: float

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def planner_of(task: Task) -> Callable[[KeySnapshot], KeyPlan] | None:
    """The system's planner without any patience: it acts whenever θ is above θmax."""
    theta, limit = task.theta_max, task.table_limit
    planners: dict[str, Callable[[KeySnapshot], KeyPlan]] = {
        "PKG": lambda s: partial_key_grouping(s, theta),
        "Readj": lambda s: readj(s, theta, table_limit=limit),
        "MinTable": lambda s: min_table(s, theta, table_limit=limit),
        "MinMig": lambda s: min_mig(s, theta, beta=task.beta),
        "Mixed": lambda s: mixed(s, theta, table_limit=limit, beta=task.beta, compact=task.degree),
        "MixedBF": lambda s: mixed(s, theta, table_limit=limit, beta=task.beta, brute_force=True),
    }
    return planners.get(task.system)


def perform(task: Task, clock: Callable[[], float] = time.perf_counter) -> Result:
    """Run one task; equal tasks give equal results, but for the time."""
    rng = np.random.default_rng(task.seed)
    home: Instances = rng.integers(0, task.instances, task.keys)
    stream = Fluctuation(task.keys, zipf=ZIPF, rate=task.rate, window=task.window, rng=rng)
    hashes = np.arange(task.keys, dtype=np.uint64)
    planner = planner_of(task)
    limit = None if task.system in ("MinMig", "PKG") else task.table_limit
    current = home
    before, after, spent, moved, tables, errors = [], [], [], [], [], []
    for interval in range(task.intervals):
        last = interval == task.intervals - 1
        instances = task.instances + (1 if task.scale_out and last else 0)
        stream.step(current, task.instances)
        snapshot = KeySnapshot(
            hashes, stream.cost, stream.state, home, current, np.zeros(instances)
        )
        before.append(1 + overload(snapshot.loads))
        if planner is not None and snapshot.skewness > task.theta_max:
            began = clock()
            plan = planner(snapshot)
            spent.append(1e3 * (clock() - began))
        else:
            plan = stay(snapshot, "within the threshold, or nothing is ever planned")
        validate_keys(plan, snapshot, limit)
        loads = ideal_loads(snapshot) if task.system == "Ideal" else planned_loads(plan, snapshot)
        after.append(1 + overload(loads))
        moved.append(plan.migration / float(snapshot.state.sum()))
        tables.append(plan.table_size)
        if task.degree is not None:
            few = compact(snapshot, task.degree)
            packing = pack_min_mig(few.units, task.theta_max, task.beta)
            errors.append(few.load_error(packing, snapshot))
        if not plan.combinable:
            current = placement(plan, snapshot)
    return Result(
        task=task,
        skewness=fmean(after),
        skewness_before=fmean(before),
        milliseconds=fmean(spent) if spent else None,
        migration=fmean(moved),
        table_size=fmean(tables),
        last_table=tables[-1],
        load_error=max(errors) if errors else None,
        last_skewness=after[-1],
    )
