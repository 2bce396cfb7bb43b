"""From the reports of a batch to loads: what rows and matches cost, per partition and hot key."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from skewless.control.memory import Balance
from skewless.load.report import Report
from skewless.planning.snapshot import HotKey, Loads
from skewless.routing.partitions import partition_of, unpacked
from skewless.state.segment import Segment

# The newest batch against all before it: two batches after a hotspot jumps, it is 9/10 of the load.
_NEWEST = 0.7


@dataclass(frozen=True)
class BatchLoads:
    """The loads of a batch. Arrays have one entry per partition.

    A simulated cluster measures them directly; on Spark they are computed from reports.
    """

    load: Loads  # milliseconds of tasks
    rows: Loads
    stored: Loads
    hot_keys: tuple[HotKey, ...]
    work_ms: tuple[float, ...]  # CPU time of every instance


def loads_of(
    balance: Balance, partitions: int, reports: Sequence[Report], segments: Sequence[Segment]
) -> tuple[BatchLoads, Balance]:
    """The smoothed loads after a batch, and the updated balance."""
    cost = balance.cost.observe(
        [sum(r.rows.values()) + sum(r.replicas.values()) for r in reports],
        [r.comparisons for r in reports],
        wall_ms=[r.wall_ms for r in reports],
    )
    _, row_ms, match_ms = cost.costs_ms()
    rows, matches = np.zeros(partitions), np.zeros(partitions)
    for report in reports:
        # What a join sheds counts as if it were done: balance comes before shedding.
        counted = report.partitions
        np.add.at(rows, counted.partitions, counted.rows)
        np.add.at(matches, counted.partitions, counted.matches)
    load = smoothed(balance.load, row_ms * rows + match_ms * matches)
    seen = smoothed(balance.rows, rows)
    loads = BatchLoads(
        load=load,
        rows=seen,
        stored=stored_rows(segments, seen),
        hot_keys=_hot_keys(reports, partitions, row_ms, match_ms, load),
        work_ms=tuple(r.cpu_ms for r in reports),
    )
    return loads, replace(balance, cost=cost, load=load, rows=seen)


def smoothed(before: Loads | None, now: Loads) -> Loads:
    """The loads, smoothed over batches."""
    if before is None or before.shape != now.shape:
        return now
    return _NEWEST * now + (1 - _NEWEST) * before


def stored_rows(segments: Sequence[Segment], rows: Loads) -> Loads:
    """Stored rows per partition, estimated: a segment's rows are split by its partitions' input.

    Exact counts would make every commit several times larger. They would only help to choose moves
    with little state to read again, and a move copies nothing.
    """
    weight = rows + 1e-9
    mine = [s for s in segments if s.of_partitions == len(rows)]
    # Segments written with another number of partitions may hold rows of any partition.
    foreign = sum(s.rows for s in segments) - sum(s.rows for s in mine)
    stored: Loads = foreign * weight / weight.sum()
    if not mine:
        return stored
    places = unpacked(b"".join(s.partitions for s in mine)).astype(np.int64)
    owner = np.repeat(np.arange(len(mine)), [len(s.partitions) // 2 for s in mine])
    whole = np.bincount(owner, weight[places], len(mine))
    counts = np.array([s.rows for s in mine], np.float64)
    share = (counts / np.maximum(whole, 1e-300))[owner] * weight[places]
    return stored + np.bincount(places, share, len(rows))


def _hot_keys(
    reports: Sequence[Report], partitions: int, row_ms: float, match_ms: float, load: Loads
) -> tuple[HotKey, ...]:
    counts: dict[int, list[int]] = {}
    for report in reports:
        for key in report.hot_keys:
            total = counts.setdefault(key.hash, [0, 0, 0])
            right = key.rows.get("right", 0)
            # The rows of a single input visit no instance but their home, as the left's of a key
            # table do.
            total[0] += sum(key.rows.values()) - right
            total[1] += right
            total[2] += key.matches
    hashes = list(counts)
    places = partition_of(np.array(hashes, np.uint64), partitions).tolist()
    keys = []
    for h, place in zip(hashes, places, strict=True):
        left, right, matches = counts[h]
        # Smoothing may lag behind a key that has just become hot.
        weight = min(row_ms * (left + right) + match_ms * matches, float(load[place]))
        keys.append(HotKey(h, place, weight, left, right))
    return tuple(sorted(keys, key=lambda k: (-k.load, k.hash)))
