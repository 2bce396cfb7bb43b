"""The map as the engine sees it: a task for every batch, and what was learned after it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from skewless.engine.progress import dropped_samples
from skewless.engine.setting import Setting
from skewless.load.report import Report
from skewless.load.sketches import CostSketch
from skewless.operators.map.assign import AssignTask
from skewless.operators.map.function import MapFunction
from skewless.operators.map.layout import MapLayout
from skewless.operators.map.task import INPUT, MapTask
from skewless.planning.shuffle.policy import InstanceWork, ShufflePolicy
from skewless.routing.partitions import round_robin
from skewless.routing.table import TableRoute
from skewless.state.commit import OperatorState


@dataclass(frozen=True)
class MapOperator:
    """A stateless map. It has no segments and no watermark; what it remembers is what rows cost."""

    layout: MapLayout
    schema: pa.Schema
    function: MapFunction
    policy: ShufflePolicy
    fingerprint: dict[str, Any]

    def triggered(self, interval_us: int | None) -> "MapOperator":
        """The same: how often batches come does not matter here."""
        return self

    def initial_state(self, cores: int) -> OperatorState:
        instances = self.policy.start(cores).instances
        return OperatorState(
            # Rows carry their instance; the table only says how many there are.
            route=TableRoute(round_robin(instances, instances)),
            max_time_us={},
            watermark_us=None,
            planner=self._planner(self.policy.initial(instances)),
        )

    def adopt(self, state: OperatorState, cores: int) -> OperatorState:
        """The committed state under today's policy and number of instances."""
        fresh = self.initial_state(cores)
        then, now = state.planner["policy"], fresh.planner["policy"]
        # What rows cost does not depend on how many instances there are.
        if {**then, "instances": None} != {**now, "instances": None}:
            return fresh
        if then == now and state.route == fresh.route:
            return state
        return replace(state, route=fresh.route, planner=self._planner(state.planner["memory"]))

    def order(self, state: OperatorState) -> tuple[int, ...]:
        """The instances in the order in which their tasks should start: all have equal work."""
        return tuple(range(state.route.instances))

    def task(self, state: OperatorState, setting: Setting) -> MapTask:
        """The task of a batch; its `assign` is what runs on the input partitions before it."""
        dealing = self.policy.dealing(state.planner["memory"], state.route.instances)
        return MapTask(
            setting=setting,
            layout=self.layout,
            schema=self.schema,
            function=self.function,
            assign=AssignTask(dealing, setting.names.batch),
            blank=self.policy.blank(),
        )

    @property
    def emits(self) -> bool:
        """A map looks at no event time."""
        return False

    @property
    def waits(self) -> bool:
        return False

    def advance(
        self, state: OperatorState, reports: Sequence[Report], elapsed_ms: float
    ) -> OperatorState:
        """The state after a batch: nothing but what the policy has learned."""
        blank = self.policy.blank()
        if blank is None:
            return state
        work = [_work(report, blank) for report in sorted(reports, key=lambda r: r.instance)]
        return replace(
            state, planner=self._planner(self.policy.learn(state.planner["memory"], work))
        )

    def output_watermark_us(self, state: OperatorState) -> int | None:
        """None: event time goes through unchanged, and a map does not look at it."""
        return state.watermark_us

    def progress(self, state: OperatorState, reports: Sequence[Report]) -> dict[str, Any]:
        """What `lastProgress["skewless"]["operators"]` says of this map."""
        by_instance = sorted(reports, key=lambda r: r.instance)
        busy = [float((r.costs or {}).get("busyMs", 0.0)) for r in by_instance]
        mean = sum(busy) / len(busy)
        return {
            "operator": "map",
            "instances": len(reports),
            "rows": sum(r.rows[INPUT] for r in reports),
            "outputRows": sum(r.output_rows or 0 for r in reports),
            "badRows": sum(r.bad_rows[INPUT] for r in reports),
            "dropped": dropped_samples(reports),
            "load": {
                "busyMs": [round(b, 3) for b in busy],
                "wallMs": [round(r.wall_ms, 3) for r in by_instance],
                "rows": [r.rows[INPUT] for r in by_instance],
            },
            "imbalance": round(max(busy) / mean, 4) if mean else 1.0,
            "balance": {**self.policy.describe(), **self._costs(state)},
            "peakMemoryBytes": max(r.peak_memory_bytes for r in reports),
        }

    def _costs(self, state: OperatorState) -> dict[str, Any]:
        """What rows are thought to cost in the next batch, the costliest keys by their hash."""
        dealing = self.policy.dealing(state.planner["memory"], state.route.instances)
        if len(dealing.sketches) != 1:
            return {"learned": bool(dealing.sketches)}
        sketch = dealing.sketches[0]
        heavy = sketch.heaviest
        top = np.argsort(-heavy.times, kind="stable")[:10]
        total = float(sketch.W[0].sum()) or 1.0
        return {
            "learned": True,
            "meanMs": round(sketch.mean, 4),
            "slowness": list(dealing.slowness),
            "costliest": [
                {
                    "hash": int(heavy.hashes[i]),
                    "costMs": round(float(heavy.times[i] / heavy.counts[i]), 4),
                    "share": round(float(heavy.times[i]) / total, 4),
                }
                for i in top.tolist()
            ],
        }

    def _planner(self, memory: dict[str, Any]) -> dict[str, Any]:
        return {"policy": self.policy.describe(), "memory": memory}


def _work(report: Report, blank: CostSketch) -> InstanceWork:
    costs = report.costs or {}
    sketch = costs.get("sketch")
    return InstanceWork(
        instance=report.instance,
        rows=report.rows[INPUT],
        busy_ms=float(costs.get("busyMs", 0.0)),
        estimated_ms=float(costs.get("estimatedMs", 0.0)),
        sketch=blank if sketch is None else CostSketch.from_json(sketch),
    )
