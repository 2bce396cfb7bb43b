"""The control loop of a join: reports become loads, loads a plan, a plan the next route."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from skewless.load.cost import CostModel
from skewless.load.report import Report
from skewless.planning.measure import Measured
from skewless.planning.plan import Plan, PlanError, validate
from skewless.planning.policy import Policy
from skewless.planning.snapshot import HotKey, Loads, Snapshot
from skewless.routing.partitions import partition_of
from skewless.routing.route import Route
from skewless.state.segment import Segment

# The newest batch against all before it: two batches after a hotspot jumps, it is 9/10 of the load.
_NEWEST = 0.7


@dataclass(frozen=True)
class Balance:
    """What the control loop remembers from batch to batch; kept in the commit."""

    cost: CostModel
    load: Loads | None  # smoothed, per partition
    rows: Loads | None
    memory: dict[str, Any]  # the planner's own
    order: tuple[int, ...]  # instances, the heaviest first
    batches: int = 0  # seen so far

    @staticmethod
    def initial(instances: int) -> "Balance":
        return Balance(CostModel.empty(), None, None, {}, tuple(range(instances)))

    def to_json(self) -> dict[str, Any]:
        return {
            "cost": self.cost.to_json(),
            "load": None if self.load is None else np.round(self.load, 4).tolist(),
            "rows": None if self.rows is None else np.round(self.rows, 1).tolist(),
            "memory": self.memory,
            "order": list(self.order),
            "batches": self.batches,
        }

    @staticmethod
    def from_json(record: dict[str, Any]) -> "Balance":
        return Balance(
            cost=CostModel.from_json(record["cost"]),
            load=None if record["load"] is None else np.array(record["load"], np.float64),
            rows=None if record["rows"] is None else np.array(record["rows"], np.float64),
            memory=record["memory"],
            order=tuple(record["order"]),
            batches=record["batches"],
        )


@dataclass(frozen=True)
class Round:
    """One turn of the control loop."""

    balance: Balance
    route: Route
    plan: Plan | None  # None where no plan was due, or it was refused
    reason: str
    plan_ms: float

    def to_json(self) -> dict[str, Any]:
        """What progress tells of it."""
        plan = self.plan
        return {
            "reason": self.reason,
            "moves": []
            if plan is None
            else [[m.partition, m.source, m.target] for m in plan.moves],
            "movedRows": 0 if plan is None else round(plan.moved_rows),
            "splits": [
                {"hash": s.hash, "members": list(s.members), "replicated": s.replicated}
                for s in self.route.splits
            ],
            "imbalanceBefore": None if plan is None else round(plan.imbalance_before, 4),
            "imbalanceAfter": None if plan is None else round(plan.imbalance_after, 4),
            "planMs": round(self.plan_ms, 3),
        }


def next_round(
    policy: Policy,
    route: Route,
    balance: Balance,
    reports: Sequence[Report],
    segments: Sequence[Segment],
) -> Round:
    """Plans the route of the next batch from the reports of this one."""
    started = time.perf_counter()
    cost = balance.cost.observe(
        [sum(r.rows.values()) + sum(r.replicas.values()) for r in reports],
        [r.matches for r in reports],
        [r.wall_ms for r in reports],
    )
    row_ms, match_ms = cost.per_row_and_match()
    rows, matches = np.zeros(route.partitions), np.zeros(route.partitions)
    for report in reports:
        loads = report.partitions
        np.add.at(rows, loads.partitions, loads.rows)
        np.add.at(matches, loads.partitions, loads.matches)
    load = _smoothed(balance.load, row_ms * rows + match_ms * matches)
    seen = _smoothed(balance.rows, rows)
    snapshot = Snapshot(
        table=route.table,
        load=load,
        stored=_stored(segments, seen),
        queued=seen,
        hot_keys=_hot_keys(reports, route.partitions, row_ms, match_ms, load),
        splits=route.splits,
    )
    batches = balance.batches + 1
    plan: Plan | None = None
    memory, reason = balance.memory, f"plans every {_every(policy)} batches"
    if batches % _every(policy) == 0:
        try:
            plan, memory = policy.plan(snapshot, balance.memory)
            validate(plan, snapshot)
            route, reason = replace(route, table=plan.table, splits=plan.splits), plan.reason
        except (PlanError, ArithmeticError, LookupError, ValueError) as refused:
            # A planner's mistake costs balance, never the query.
            plan, reason = None, f"refused: {refused}"
    order = _heaviest_first(snapshot, route)
    after = Balance(cost, load, seen, memory, order, batches)
    return Round(after, route, plan, reason, 1e3 * (time.perf_counter() - started))


def _every(policy: Policy) -> int:
    """After how many batches a policy wants to be asked; those that never move do not say."""
    return int(getattr(policy, "every", 1))


def _smoothed(before: Loads | None, now: Loads) -> Loads:
    if before is None or before.shape != now.shape:
        return now
    return _NEWEST * now + (1 - _NEWEST) * before


def _stored(segments: Sequence[Segment], rows: Loads) -> Loads:
    """Stored rows per partition: those of a segment in proportion to what its partitions get.

    An estimate: exact counts would make every commit several times larger, and a move copies
    nothing, so what they are needed for (the least state to read anew) is not worth that.
    """
    partitions = len(rows)
    stored = np.zeros(partitions)
    weight = rows + 1e-9
    for segment in segments:
        bits = int(segment.partitions, 16).to_bytes(partitions // 8 + 1, "little")
        present = np.unpackbits(np.frombuffer(bits, np.uint8), bitorder="little")[:partitions]
        share = weight * present
        stored += segment.rows * share / share.sum()
    return stored


def _hot_keys(
    reports: Sequence[Report], partitions: int, row_ms: float, match_ms: float, load: Loads
) -> tuple[HotKey, ...]:
    counts: dict[int, list[int]] = {}
    for report in reports:
        for key in report.hot_keys:
            total = counts.setdefault(key.hash, [0, 0, 0])
            total[0] += key.left_rows
            total[1] += key.right_rows
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


def _heaviest_first(snapshot: Snapshot, route: Route) -> tuple[int, ...]:
    """With more instances than cores a batch ends evenly when the long tasks start first."""
    loads = Measured().loads(snapshot, route.table, route.splits)
    return tuple(np.argsort(-loads, kind="stable").tolist())
