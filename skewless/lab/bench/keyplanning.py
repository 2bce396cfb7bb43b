"""Key-table planning: how long a plan takes at a million keys, and what the planners move."""

import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from skewless.planning.keys.compact import compact
from skewless.planning.keys.llfd import llfd
from skewless.planning.keys.minmig import min_mig, pack_min_mig
from skewless.planning.keys.mintable import min_table
from skewless.planning.keys.mixed import mixed
from skewless.planning.keys.plan import KeyPlan, placement, validate_keys
from skewless.planning.keys.snapshot import KeySnapshot
from skewless.simulate.fluctuation import Fluctuation

SEED = 7
KEYS, INSTANCES, TIGHT = 1_000_000, 40, 0.02
DEGREES = (1, 8, 64, 256)
REPEATS = 7
# The paper's defaults. Its number of instances is known from one figure only: the table of MinMig
# grows to 9,350 of 10,000 keys, which is 14/15 of them.
DEFAULT_KEYS, DEFAULT_INSTANCES, THRESHOLD, TABLE_LIMIT, BETA, ZIPF, RATE = (
    100_000, 15, 0.08, 3_000, 1.5, 0.85, 1.0,
)  # fmt: skip
WINDOWS = (1, 5)


@dataclass(frozen=True)
class PlanningTime:
    """One planner on one snapshot: the fastest of some runs, and what the plan does."""

    planner: str
    degree: int | None  # of compact statistics
    keys: int
    instances: int
    threshold: float
    milliseconds: float
    skewness_before: float
    skewness_after: float
    load_error: float | None  # of a compact plan: the largest misjudged load after it
    moved_share: float
    table_size: int


@dataclass(frozen=True)
class Migration:
    """What a planner moves in an interval of a fluctuating stream, as a share of all state."""

    planner: str
    window: int
    moved_share: float
    skewness_after: float
    largest_table: int


def run(
    *,
    progress: Callable[[str], None] = lambda name: None,
    quick: bool = False,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, Any]:
    """All measurements, fit for JSON; `progress` is told what is being measured.

    >>> sorted(run(quick=True))
    ['benchmark', 'migration', 'mintable_to_mixed', 'quick', 'seed', 'times']
    """
    times = planning_times(20_000 if quick else KEYS, progress=progress, clock=clock)
    migrations = []
    for window in WINDOWS:
        progress(f"migration, w = {window}")
        migrations += migration(window, intervals=4 if quick else 20, keys=5_000 if quick else None)
    by_name = {(m.planner, m.window): m.moved_share for m in migrations}
    return {
        "benchmark": "keyplanning",
        "quick": quick,
        "seed": SEED,
        "times": [asdict(row) for row in times],
        "migration": [asdict(row) for row in migrations],
        "mintable_to_mixed": {
            str(w): by_name["MinTable", w] / by_name["Mixed", w] if by_name["Mixed", w] else None
            for w in WINDOWS
        },
    }


def planning_times(
    keys: int, *, progress: Callable[[str], None], clock: Callable[[], float]
) -> list[PlanningTime]:
    """Every planner on the same skewed snapshot; the table may be as large as it must."""
    snapshot = skewed(keys, INSTANCES, window=5)
    planners: list[tuple[str, int | None, Callable[[], KeyPlan]]] = [
        ("LLFD", None, lambda: llfd(snapshot, TIGHT)),
        ("MinTable", None, lambda: min_table(snapshot, TIGHT)),
        ("MinMig", None, lambda: min_mig(snapshot, TIGHT)),
        ("Mixed", None, lambda: mixed(snapshot, TIGHT, table_limit=keys)),
    ]
    planners += [
        ("Mixed", r, lambda r=r: mixed(snapshot, TIGHT, table_limit=keys, compact=r))  # type: ignore[misc]
        for r in DEGREES
    ]
    rows = []
    for name, degree, make in planners:
        progress(name if degree is None else f"{name}, compact R = {degree}")
        make()  # loads what is compiled
        spent = []
        for _ in range(REPEATS):
            began = clock()
            plan = make()
            spent.append(clock() - began)
        validate_keys(plan, snapshot)
        rows.append(
            PlanningTime(
                planner=name,
                degree=degree,
                keys=keys,
                instances=INSTANCES,
                threshold=TIGHT,
                milliseconds=1e3 * min(spent),
                skewness_before=plan.skewness_before,
                skewness_after=plan.skewness_after,
                load_error=None if degree is None else _load_error(snapshot, degree),
                moved_share=plan.migration / float(snapshot.state.sum()),
                table_size=plan.table_size,
            )
        )
    return rows


def _load_error(snapshot: KeySnapshot, degree: int) -> float:
    few = compact(snapshot, degree)
    return few.load_error(pack_min_mig(few.units, TIGHT, BETA), snapshot)


def skewed(keys: int, instances: int, *, window: int) -> KeySnapshot:
    """Zipf keys after some intervals of fluctuation, all of them at home."""
    rng = np.random.default_rng(SEED)
    home = rng.integers(0, instances, keys)
    stream = Fluctuation(keys, zipf=ZIPF, rate=RATE, window=window, rng=rng)
    for _ in range(window):
        stream.step(home, instances)
    return _snapshot(stream, home, home, instances)


def migration(window: int, *, intervals: int, keys: int | None = None) -> list[Migration]:
    """MinTable and Mixed, each on the stream that it shapes itself: swaps follow its placement."""
    planners: dict[str, Callable[[KeySnapshot], KeyPlan]] = {
        "MinTable": lambda s: min_table(s, THRESHOLD, table_limit=TABLE_LIMIT),
        "Mixed": lambda s: mixed(s, THRESHOLD, table_limit=TABLE_LIMIT, beta=BETA),
    }
    rows = []
    count = DEFAULT_KEYS if keys is None else keys
    for name, planner in planners.items():
        rng = np.random.default_rng(SEED)
        home = rng.integers(0, DEFAULT_INSTANCES, count)
        stream = Fluctuation(count, zipf=ZIPF, rate=RATE, window=window, rng=rng)
        current, moved, after, largest = home, [], [], 0
        for _ in range(intervals):
            stream.step(current, DEFAULT_INSTANCES)
            snapshot = _snapshot(stream, home, current, DEFAULT_INSTANCES)
            plan = planner(snapshot)
            validate_keys(plan, snapshot, TABLE_LIMIT)
            moved.append(plan.migration / float(snapshot.state.sum()))
            after.append(plan.skewness_after)
            largest = max(largest, plan.table_size)
            current = placement(plan, snapshot)
        rows.append(
            Migration(name, window, statistics.fmean(moved), statistics.fmean(after), largest)
        )
    return rows


def _snapshot(
    stream: Fluctuation,
    home: np.ndarray[Any, np.dtype[np.int64]],
    current: np.ndarray[Any, np.dtype[np.int64]],
    instances: int,
) -> KeySnapshot:
    hashes = np.arange(len(home), dtype=np.uint64)
    return KeySnapshot(hashes, stream.cost, stream.state, home, current, np.zeros(instances))
