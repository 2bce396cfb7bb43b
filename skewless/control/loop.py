"""The control loop: loads become a decision, a decision the route of the next batch.

Spark, the local runner of `skewless.testing` and the simulation all run it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

import numpy as np

from skewless.control.loads import BatchLoads, loads_of
from skewless.control.memory import Balance, Planner
from skewless.control.restart import adopt
from skewless.control.scaling import rescaled
from skewless.load.report import Report
from skewless.planning.decision import Decision, Limits, Memory, Proposal, RouteT
from skewless.planning.measure import Measured
from skewless.planning.plan import PlanError
from skewless.planning.policy import Policy, RoutingPolicy, SnapshotT
from skewless.planning.snapshot import Snapshot
from skewless.routing.route import Route
from skewless.routing.splits import Split
from skewless.routing.table import TableRoute
from skewless.state.commit import OperatorState
from skewless.state.segment import Segment

Clock = Callable[[], float]  # seconds
_NO_PLAN = {
    "moves": [],
    "movedKeys": 0,
    "movedRows": 0,
    "imbalanceBefore": None,
    "imbalanceAfter": None,
}


@dataclass(frozen=True)
class Round:
    """One turn of the control loop."""

    balance: Balance
    route: Route
    plan: Proposal | None  # None where no plan was due, or it was refused
    reason: str
    plan_ms: float

    def to_json(self) -> dict[str, Any]:
        """Its entry in the progress record."""
        return {
            "reason": self.reason,
            **(_NO_PLAN if self.plan is None else self.plan.told()),
            **_exceptions(self.route),
            "planMs": round(self.plan_ms, 3),
        }


@dataclass(frozen=True)
class ControlLoop:
    """Asks a policy after every batch, checks its decision, and applies it.

    >>> from skewless.planning.hash import Hash
    >>> ControlLoop(Hash(4)).start(cores=2).instances
    4
    """

    policy: RoutingPolicy
    clock: Clock = perf_counter

    def start(self, cores: int) -> Route:
        """The route of the first batch."""
        return self.policy.start(cores)

    def adopt(self, state: OperatorState, cores: int) -> OperatorState:
        """A committed state under this policy."""
        return adopt(self.policy, state, cores)

    def planner(
        self,
        balance: Balance,
        last: Round | None = None,
        probing: dict[str, Any] | None = None,
    ) -> dict[str, Any]:
        """`OperatorState.planner` after a turn, or before the first."""
        told = None if last is None else last.to_json()
        return Planner(self.policy.describe(), balance, told, probing).to_json()

    def next_round(
        self,
        route: Route,
        balance: Balance,
        reports: Sequence[Report],
        segments: Sequence[Segment],
    ) -> Round:
        """The turn after a batch, from the reports of its tasks."""
        started = self.clock()
        loads, balance = loads_of(balance, route.partitions, reports, segments)
        return self.turn(route, balance, loads, started)

    def turn(
        self, route: Route, balance: Balance, loads: BatchLoads, started: float | None = None
    ) -> Round:
        """The turn after a batch with these loads."""
        started = self.clock() if started is None else started
        route, balance = rescaled(self.policy, route, balance, loads.work_ms)
        snapshot = _snapshot(route, loads)
        balance = replace(balance, batches=balance.batches + 1)
        reason = f"plans every {self.policy.every} batches"
        decision: Decision[Route] = Decision(None, reason, balance.memory)
        if balance.batches % self.policy.every == 0:
            limits = self.policy.limits(snapshot.table.partitions)
            decision = decided(self.policy, snapshot, balance.memory, limits)
        route = decision.route or route
        balance = replace(balance, memory=decision.memory, order=_heaviest_first(snapshot, route))
        plan_ms = 1e3 * (self.clock() - started)
        return Round(balance, route, decision.plan, decision.reason, plan_ms)


def decided(
    policy: Policy[SnapshotT, RouteT], snapshot: SnapshotT, memory: Memory, limits: Limits
) -> Decision[RouteT]:
    """The policy's decision, or the reason why it was refused."""
    try:
        decision = policy.plan(snapshot, memory)
        if decision.plan is not None:
            decision.plan.check(snapshot, limits)
    except (PlanError, ArithmeticError, LookupError, ValueError) as refused:
        # A bug in a planner must not stop the query.
        return Decision(None, f"refused: {refused}", memory)
    return decision


def _snapshot(route: Route, loads: BatchLoads) -> Snapshot:
    table = route if isinstance(route, TableRoute) else TableRoute(route.table)
    return Snapshot(
        table=route.table,
        load=loads.load,
        stored=loads.stored,
        queued=loads.rows,
        hot_keys=loads.hot_keys,
        splits=table.splits,
        entries=table.entries,
    )


def _heaviest_first(snapshot: Snapshot, route: Route) -> tuple[int, ...]:
    """The instances by load. If there are more than cores, long tasks should start first."""
    shared = route.exceptions if isinstance(route, TableRoute) else ()
    loads = Measured().loads(snapshot, route.table, shared)
    return tuple(np.argsort(-loads, kind="stable").tolist())


def _exceptions(route: Route) -> dict[str, Any]:
    """The keys that several instances share, and how many have an instance of their own."""
    if not isinstance(route, TableRoute):
        return {"splits": [], "keyTable": 0}
    # Rows of an entry go to one of its members: a grid of one column.
    shared = [Split(e.hash, e.partition, e.members, len(e.members)) for e in route.entries]
    shared = [split for split in shared if len(split.members) > 1]
    return {
        "splits": [
            {"hash": s.hash, "members": list(s.members), "lines": s.lines}
            for s in (*shared, *route.splits)
        ],
        "keyTable": len(route.entries) - len(shared),
    }
