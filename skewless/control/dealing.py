"""The control loop of a map: the work of a batch becomes the dealing of the next one."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from skewless.control.restart import same_but_for_instances
from skewless.load.report import Report
from skewless.load.sketches import CostSketch
from skewless.planning.decision import Memory
from skewless.planning.shuffle.dealing import Dealing
from skewless.planning.shuffle.policy import ShufflePolicy
from skewless.planning.shuffle.snapshot import InstanceWork, WorkSnapshot
from skewless.routing.partitions import round_robin
from skewless.routing.table import TableRoute
from skewless.state.commit import OperatorState


@dataclass(frozen=True)
class DealingLoop:
    """Asks a map's policy after every batch, and keeps its memory in the operator's state.

    The state holds the memory only, because a dealing would store its sketches twice. `dealing` is
    the one place where the policy's decision is rebuilt from the memory, after a restart too.

    >>> from skewless.planning.leastwork import LeastWork
    >>> DealingLoop(LeastWork()).start(cores=4).route.instances
    4
    """

    policy: ShufflePolicy

    def start(self, cores: int) -> OperatorState:
        """The state of a new query on a cluster with this many cores."""
        return OperatorState(
            route=_table(self.policy.start(cores)),
            max_time_us={},
            watermark_us=None,
            planner=self._planner({}),
        )

    def adopt(self, state: OperatorState, cores: int) -> OperatorState:
        """A committed state under this policy. Costs are kept if only `instances` has changed."""
        fresh = self.start(cores)
        before, today = state.planner["policy"], fresh.planner["policy"]
        if before == today and state.route == fresh.route:
            return state
        if not same_but_for_instances(before, today):
            return fresh
        memory = state.planner["memory"]
        return replace(state, route=fresh.route, planner=self._planner(memory))

    def dealing(self, state: OperatorState) -> Dealing:
        """The dealing of the batch that follows this state."""
        return self.policy.route(state.planner["memory"], state.route.instances)

    def after(self, state: OperatorState, reports: Sequence[Report]) -> OperatorState:
        """The state after a batch, from the reports of its tasks."""
        decision = self.policy.plan(work_of(reports), state.planner["memory"])
        return replace(state, planner=self._planner(decision.memory))

    def _planner(self, memory: Memory) -> dict[str, Any]:
        return {"policy": self.policy.describe(), "memory": memory}


def work_of(reports: Sequence[Report]) -> WorkSnapshot:
    """The work of a batch, from the reports of its tasks."""
    by_instance = sorted(reports, key=lambda report: report.instance)
    return WorkSnapshot(tuple(_work(report) for report in by_instance))


def _work(report: Report) -> InstanceWork:
    costs = report.costs or {}
    sketch = costs.get("sketch")
    return InstanceWork(
        instance=report.instance,
        rows=sum(report.rows.values()),
        busy_ms=float(costs.get("busyMs", 0.0)),
        estimated_ms=float(costs.get("estimatedMs", 0.0)),
        sketch=None if sketch is None else CostSketch.from_json(sketch),
    )


def _table(dealing: Dealing) -> TableRoute:
    """Rows carry their instance; the table only holds the number of instances."""
    return TableRoute(round_robin(dealing.instances, dealing.instances))
