"""Measures what a task spends on counting and reporting, in a pure call."""

import json
import statistics
import time
from collections.abc import Callable

import numpy as np

from skewless.load.counts import TaskCounts
from skewless.load.report import Report

REPEATS = 15


def report_ms(
    rows: int, matches: int, partitions: int, *, clock: Callable[[], float] = time.perf_counter
) -> float:
    """Milliseconds to count the rows and matches of a task, half of them on each side, and to write
    its report; the median of some repetitions. Keys are all different: the most there is to do."""
    rng = np.random.default_rng(7)
    sides = {
        side: np.sort(rng.integers(0, 2**64, rows // 2, dtype=np.uint64))
        for side in ("left", "right")
    }
    hit = {side: hashes[: matches // 2] for side, hashes in sides.items()}
    taken = []
    for _ in range(REPEATS):
        began = clock()
        counts = TaskCounts(partitions)
        for side, hashes in sides.items():
            counts.add_rows(side, hashes)
            if len(hit[side]):
                counts.add_matches(hit[side], np.ones(len(hit[side]), np.int64))
        json.dumps(_report(rows, matches, counts).to_json()).encode()
        taken.append(clock() - began)
    return 1e3 * statistics.median(taken)


def _report(rows: int, matches: int, counts: TaskCounts) -> Report:
    none = {"left": 0, "right": 0}
    return Report(
        instance=0,
        rows={"left": rows // 2, "right": rows // 2},
        replicas=none,
        late=none,
        null_keys=none,
        bad_rows=none,
        max_time_us={"left": 0, "right": 0},
        matches=matches,
        cpu_ms=0.0,
        wall_ms=0.0,
        peak_memory_bytes=0,
        segments=[],
        replaced=[],
        partitions=counts.partitions(),
        hot_keys=counts.hot_keys(),
    )
