"""The map as the engine sees it: a task for every batch, and the costs learned from it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from skewless.control.dealing import DealingLoop
from skewless.engine.operator import Operator
from skewless.engine.progress import dropped_samples
from skewless.engine.setting import Setting
from skewless.load.report import Report
from skewless.operators.map.assign import AssignTask
from skewless.operators.map.function import MapFunction
from skewless.operators.map.layout import MapLayout
from skewless.operators.map.task import INPUT, MapTask
from skewless.planning.shuffle.policy import ShufflePolicy
from skewless.state.commit import OperatorState


@dataclass(frozen=True)
class MapOperator(Operator):
    """A stateless map, without segments and watermark. It only remembers what rows cost."""

    layout: MapLayout
    schema: pa.Schema
    function: MapFunction
    policy: ShufflePolicy
    fingerprint: dict[str, Any]

    def initial_state(self, cores: int) -> OperatorState:
        return self._loop.start(cores)

    def adopt(self, state: OperatorState, cores: int) -> OperatorState:
        """The committed state under the current policy and number of instances."""
        return self._loop.adopt(state, cores)

    def order(self, state: OperatorState) -> tuple[int, ...]:
        """The instances in the order in which their tasks should start: all have equal work."""
        return tuple(range(state.route.instances))

    def task(self, state: OperatorState, setting: Setting) -> MapTask:
        """The task of a batch; its `assign` is what runs on the input partitions before it."""
        return MapTask(
            setting=setting,
            layout=self.layout,
            schema=self.schema,
            function=self.function,
            assign=AssignTask(self._loop.dealing(state), setting.names.batch),
            blank=self.policy.blank(),
        )

    def advance(
        self, state: OperatorState, reports: Sequence[Report], elapsed_ms: float | None
    ) -> OperatorState:
        """The state after a batch: only the policy's memory changes."""
        return self._loop.after(state, reports)

    def output_watermark_us(self, state: OperatorState) -> int | None:
        """None: event time passes through unchanged."""
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
        """The estimated costs of rows, with the costliest keys by their hash."""
        dealing = self._loop.dealing(state)
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

    @property
    def _loop(self) -> DealingLoop:
        return DealingLoop(self.policy)
