"""The control loop: reports become loads, loads a plan, a plan the route of the next batch."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from skewless.errors import bad_argument
from skewless.load.cost import CostModel
from skewless.load.heavy import EVERY_KEY_THAT_COUNTS, STANDING_OUT, Detail
from skewless.load.report import Report
from skewless.planning.auto import Auto
from skewless.planning.keys.plan import WHOLE, KeyPlan, validate_keys
from skewless.planning.keys.policies import KeyPolicy
from skewless.planning.keys.snapshot import KeySnapshot
from skewless.planning.measure import Measured
from skewless.planning.plan import Plan, PlanError, validate
from skewless.planning.policy import PartitionPolicy, Policy
from skewless.planning.resize import resized, resized_splits
from skewless.planning.scaling import scaled, wanted
from skewless.planning.snapshot import HotKey, Loads, Snapshot
from skewless.routing.partitions import as_bitmap, partition_of
from skewless.routing.route import Route
from skewless.routing.splits import Split
from skewless.state.commit import OperatorState
from skewless.state.segment import Segment

if TYPE_CHECKING:
    from typing_extensions import TypeIs

# The newest batch against all before it: two batches after a hotspot jumps, it is 9/10 of the load.
_NEWEST = 0.7
AnyPolicy = PartitionPolicy | KeyPolicy


def routing_policy(balance: Policy | None, example: str) -> AnyPolicy:
    """The policy of an operator with state; one that deals out rows without keys is refused."""
    if balance is None:
        return Auto()
    if not callable(getattr(balance, "table", None)) or isinstance(balance, type):
        raise bad_argument("balance", balance, f"a policy such as {example}")
    return cast("AnyPolicy", balance)


@dataclass(frozen=True)
class Balance:
    """What the control loop remembers from batch to batch; kept in the commit."""

    cost: CostModel
    load: Loads | None  # smoothed, per partition
    rows: Loads | None
    memory: dict[str, Any]  # the planner's own
    order: tuple[int, ...]  # instances, the heaviest first
    batches: int = 0  # seen so far
    streak: int = 0  # batches for which all instances were busy; below 0: idle

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
            "streak": self.streak,
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
            streak=record["streak"],
        )


@dataclass(frozen=True)
class Round:
    """One turn of the control loop."""

    balance: Balance
    route: Route
    plan: Plan | KeyPlan | None  # None where no plan was due, or it was refused
    reason: str
    plan_ms: float

    def to_json(self) -> dict[str, Any]:
        """What progress tells of it."""
        return {
            "reason": self.reason,
            **_told(self.plan),
            "splits": [
                {"hash": s.hash, "members": list(s.members), "lines": s.lines}
                for s in self.route.splits
                if len(s.members) > 1
            ],
            "keyTable": sum(len(s.members) == 1 for s in self.route.splits),
            "planMs": round(self.plan_ms, 3),
        }


def _told(plan: Plan | KeyPlan | None) -> dict[str, Any]:
    told: dict[str, Any] = {"moves": [], "movedKeys": 0, "movedRows": 0}
    before = after = None
    if isinstance(plan, Plan):
        told["moves"] = [[m.partition, m.source, m.target] for m in plan.moves]
        told["movedRows"] = round(plan.moved_rows)
        before, after = plan.imbalance_before, plan.imbalance_after
    elif plan is not None:
        told["movedKeys"] = len(plan.moved)
        told["movedRows"] = round(plan.migration)
        before, after = plan.skewness_before, plan.skewness_after
    told["imbalanceBefore"] = None if before is None else round(before, 4)
    told["imbalanceAfter"] = None if after is None else round(after, 4)
    return told


def detail_of(policy: AnyPolicy) -> Detail:
    """How many keys a task should report by themselves."""
    return EVERY_KEY_THAT_COUNTS if plans_keys(policy) else STANDING_OUT


def plans_keys(policy: AnyPolicy) -> "TypeIs[KeyPolicy]":
    """Whether a policy keeps a table of keys instead of moving partitions."""
    return hasattr(policy, "plan_keys")


def adopt(policy: AnyPolicy, fresh: Route, state: OperatorState, cores: int) -> OperatorState:
    """The committed state under today's policy; state is shared, so nothing has to move.

    Another number of instances keeps what was learned; another policy starts from `fresh`.
    """
    today, before = policy.describe(), state.planner["policy"]
    route = state.route
    count = wanted(getattr(policy, "instances", fresh.instances), cores, route.instances)
    if today == before and count == route.instances:
        return state
    balance = Balance.from_json(state.planner["balance"])
    segments = state.segments
    same_but_for_instances = {**today, "instances": None} == {**before, "instances": None}
    if same_but_for_instances and route.kind == "table" and count <= route.partitions:
        route, balance = _resized(route, balance, count)
    else:
        if fresh.partitions != route.partitions:
            everywhere = as_bitmap(range(fresh.partitions))
            segments = tuple(replace(s, partitions=everywhere) for s in segments)
        route, balance = fresh, Balance.initial(fresh.instances)
    planner = {**state.planner, "policy": today, "balance": balance.to_json(), "round": None}
    return replace(state, route=route, segments=segments, planner=planner)


def _resized(route: Route, balance: Balance, instances: int) -> tuple[Route, Balance]:
    table = resized(route.table, instances)
    splits = resized_splits(route.splits, instances)
    balance = replace(balance, memory={}, order=tuple(range(instances)))
    return replace(route, table=table, splits=splits), balance


def next_round(
    policy: AnyPolicy,
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
    route, balance = _scaled(policy, route, balance, reports)
    snapshot = Snapshot(
        table=route.table,
        load=load,
        stored=_stored(segments, seen),
        queued=seen,
        hot_keys=_hot_keys(reports, route.partitions, row_ms, match_ms, load),
        splits=route.splits,
    )
    batches = balance.batches + 1
    plan: Plan | KeyPlan | None = None
    memory, reason = balance.memory, f"plans every {_every(policy)} batches"
    if batches % _every(policy) == 0:
        try:
            plan, memory, route = _planned(policy, snapshot, route, balance.memory)
            reason = plan.reason
        except (PlanError, ArithmeticError, LookupError, ValueError) as refused:
            # A planner's mistake costs balance, never the query.
            plan, reason = None, f"refused: {refused}"
    order = _heaviest_first(snapshot, route)
    after = Balance(cost, load, seen, memory, order, batches, balance.streak)
    return Round(after, route, plan, reason, 1e3 * (time.perf_counter() - started))


def _scaled(
    policy: AnyPolicy, route: Route, balance: Balance, reports: Sequence[Report]
) -> tuple[Route, Balance]:
    """More or fewer instances, where the policy was given a range of them."""
    instances, busy_ms = getattr(policy, "instances", None), getattr(policy, "busy_ms", None)
    if busy_ms is None or route.kind != "table":
        return route, balance
    scale = scaled(instances, busy_ms, [r.cpu_ms for r in reports], balance.streak)
    balance = replace(balance, streak=scale.streak)
    count = min(scale.instances, route.partitions)
    return (route, balance) if count == route.instances else _resized(route, balance, count)


def _planned(
    policy: AnyPolicy, snapshot: Snapshot, route: Route, memory: dict[str, Any]
) -> tuple[Plan | KeyPlan, dict[str, Any], Route]:
    if plans_keys(policy):
        keys = key_snapshot(snapshot)
        proposed, memory = policy.plan_keys(keys, memory)
        validate_keys(proposed, keys, getattr(policy, "table_limit", None))
        return proposed, memory, replace(route, splits=_entries(proposed, route.partitions))
    plan, memory = policy.plan(snapshot, memory)
    validate(plan, snapshot)
    return plan, memory, replace(route, table=plan.table, splits=plan.splits)


def key_snapshot(snapshot: Snapshot) -> KeySnapshot:
    """The reported keys by themselves, and per instance the load of all others.

    A key of the table that was not heavy enough to be reported has no cost of its own: what it has
    counts among the others at its home.
    """
    table = snapshot.table
    entries = {s.hash: s.members[0] for s in snapshot.splits}
    cost = {key.hash: key.load for key in snapshot.hot_keys}
    rows = {key.hash: key.left_rows + key.right_rows for key in snapshot.hot_keys}
    hashes = np.array([*cost, *(h for h in entries if h not in cost)], np.uint64)
    places = partition_of(hashes, table.partitions)
    costs = np.array([cost.get(h, 0.0) for h in hashes.tolist()])
    seen = np.array([rows.get(h, 0) for h in hashes.tolist()], np.float64)
    home = table.owners[places].astype(np.int64)
    # A key has as large a share of its partition's state as it has of its rows.
    share = np.minimum(1.0, seen / np.maximum(snapshot.queued[places], 1.0))
    others = snapshot.load.copy()
    np.subtract.at(others, places, costs)
    return KeySnapshot(
        hashes=hashes,
        cost=costs,
        state=share * snapshot.stored[places],
        home=home,
        current=np.array(
            [entries.get(h, at) for h, at in zip(hashes.tolist(), home.tolist(), strict=True)],
            np.int64,
        ),
        rest=snapshot.by_instance(np.maximum(others, 0.0)),
    )


def _entries(plan: KeyPlan, partitions: int) -> tuple[Split, ...]:
    """The key table as the router takes it: keys with an instance of their own, or two."""
    places = partition_of(plan.hashes, partitions).tolist()
    entries = zip(
        plan.hashes.tolist(), places, plan.instances.tolist(), plan.seconds.tolist(), strict=True
    )
    return tuple(
        _alone(h, place, (first,) if second == WHOLE else (first, second))
        for h, place, first, second in entries
    )


def _alone(hash_: int, partition: int, members: tuple[int, ...]) -> Split:
    """A split whose left rows visit no instance but their home: a key table replicates nothing."""
    return Split(hash_, partition, members, lines=len(members))


def _every(policy: AnyPolicy) -> int:
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


def _heaviest_first(snapshot: Snapshot, route: Route) -> tuple[int, ...]:
    """With more instances than cores a batch ends evenly when the long tasks start first."""
    loads = Measured().loads(snapshot, route.table, route.splits)
    return tuple(np.argsort(-loads, kind="stable").tolist())
