"""POSG, the paper's policy: a sketch per instance, sent when stable; greedy by cumulated time."""

from dataclasses import dataclass
from typing import Any

from skewless.load.sketches import CostSketch, SketchShape, instability
from skewless.planning.checks import check_count, check_number, check_whole
from skewless.planning.decision import Decision, Memory
from skewless.planning.shuffle.dealing import Dealing
from skewless.planning.shuffle.policy import ShufflePolicy
from skewless.planning.shuffle.snapshot import InstanceWork, WorkSnapshot

# The state machine of an instance that has seen nothing yet.
_NOTHING: dict[str, Any] = {"building": None, "snapshot": None, "executed": 0, "sent": None}


@dataclass(frozen=True)
class Posg(ShufflePolicy):
    """Proactive Online Shuffle Grouping.

    An instance sends its sketch (`epsilon`, `delta`) once two snapshots, `window` tuples apart,
    differ by no more than `mu`; until all have sent one, rows are dealt out in turn.

    With micro-batches, an instance checks its sketch at the end of a batch. All instances are idle
    when a batch begins, so cumulated times start from zero and need no synchronisation.

    >>> Posg(instances=5).blank().shape
    SketchShape(rows=4, columns=55, seed=0)
    """

    instances: int | None = None
    window: int = 1024
    mu: float = 0.05
    epsilon: float = 0.05
    delta: float = 0.1

    def __post_init__(self) -> None:
        check_count(self.instances)
        check_whole("window", self.window, 1, 2**40)
        check_number("mu", self.mu, 0.0)
        check_number("epsilon", self.epsilon, 0.0, 1.0)
        check_number("delta", self.delta, 0.0, 0.99)
        SketchShape.within(self.epsilon, self.delta)  # raises if no sketch can be that exact

    def blank(self) -> CostSketch:
        return CostSketch.empty(SketchShape.within(self.epsilon, self.delta))

    def plan(self, snapshot: WorkSnapshot, memory: Memory) -> Decision[Dealing]:
        machines = memory.get("instances", [])
        if len(machines) != snapshot.instances:  # a new query, or another number of instances
            machines = [_NOTHING] * snapshot.instances
        after = [self._step(machine, w) for machine, w in zip(machines, snapshot.work, strict=True)]
        sent = sum(machine["sent"] is not None for machine in after)
        reason = f"{sent} of {len(after)} instances have sent a sketch"
        return self.decided(snapshot, reason, {"instances": after})

    def _step(self, machine: dict[str, Any], work: InstanceWork) -> dict[str, Any]:
        """The instance's state machine (Fig. 2); a snapshot means that it is STABILIZING."""
        sketch = self.blank() if work.sketch is None else work.sketch
        if machine["building"] is not None:
            sketch = CostSketch.from_json(machine["building"]).merge(sketch)
        executed = machine["executed"] + work.rows
        sent, snapshot = machine["sent"], machine["snapshot"]
        if executed < self.window:
            return {**machine, "building": sketch.to_json(), "executed": executed}
        if snapshot is not None:
            before = CostSketch.from_json(snapshot).snapshot()
            if instability(before, sketch.snapshot()) <= self.mu:
                # A new sketch is started, so that later changes of the costs are noticed.
                sent = sketch.to_json()
                return {"building": None, "snapshot": None, "executed": 0, "sent": sent}
        packed = sketch.to_json()
        return {"building": packed, "snapshot": packed, "executed": 0, "sent": sent}

    def route(self, memory: Memory, instances: int) -> Dealing:
        sent = [machine["sent"] for machine in memory.get("instances", [])]
        if len(sent) != instances or any(sketch is None for sketch in sent):
            return Dealing(instances)
        sketches = tuple(CostSketch.from_json(sketch) for sketch in sent)
        return Dealing(instances, sketches)
