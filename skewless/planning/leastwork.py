"""LeastWork, the default for maps: learns what rows cost, and sends each where it is done first."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from skewless.load.sketches import CostSketch, SketchShape
from skewless.planning.policy import check_instances, check_number, check_whole
from skewless.planning.shuffle.policy import Dealing, InstanceWork

# Instances whose speeds differ by less are treated as alike: that much is noise.
_ALIKE = 0.1
# A single batch may be disturbed, and no instance is believed to be faster or slower than this.
_NEWEST = 0.5
_EXTREME = 4.0


@dataclass(frozen=True)
class LeastWork:
    """Rows of a batch go, the heaviest first, to the instance with the least estimated work.

    Costs are learned by `cost_key` into one sketch for all instances (`epsilon`, `delta`), with
    exact entries for the `heaviest` keys. After a round the past weighs `decay` times as much; a
    round is a batch, or `window` tuples where tuples are assigned one at a time.

    >>> LeastWork().blank().shape.columns
    1360
    """

    instances: int | None = None
    epsilon: float = 0.002
    delta: float = 0.1
    heaviest: int = 512
    decay: float = 0.5
    window: int = 8192

    def __post_init__(self) -> None:
        if self.instances is not None:
            check_instances(self.instances)
        check_number("epsilon", self.epsilon, 0.0, 1.0)
        check_number("delta", self.delta, 0.0, 0.99)
        check_whole("heaviest", self.heaviest, 0, 65_536)
        check_number("decay", self.decay, 0.0, 1.0)
        check_whole("window", self.window, 1, 2**40)

    def count(self, cores: int) -> int:
        return max(1, cores) if self.instances is None else self.instances

    def describe(self) -> dict[str, Any]:
        return {
            "policy": "LeastWork",
            "instances": self.instances,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "heaviest": self.heaviest,
            "decay": self.decay,
            "window": self.window,
        }

    def blank(self) -> CostSketch:
        return CostSketch.empty(SketchShape.within(self.epsilon, self.delta), self.heaviest)

    def initial(self, instances: int) -> dict[str, Any]:
        return {"sketch": None, "slowness": [1.0] * instances}

    def learn(self, memory: dict[str, Any], work: Sequence[InstanceWork]) -> dict[str, Any]:
        before = memory["sketch"]
        sketch = self.blank() if before is None else CostSketch.from_json(before)
        if any(w.rows for w in work):
            sketch = sketch.decay(self.decay)
        for w in work:
            sketch = sketch.merge(w.sketch)
        slowness = memory["slowness"]
        if before is not None:
            slowness = _slowness(slowness, work)
        return {"sketch": sketch.to_json(), "slowness": slowness}

    def dealing(self, memory: dict[str, Any], instances: int) -> Dealing:
        if memory["sketch"] is None:
            return Dealing(instances)
        slowness = tuple(memory["slowness"])
        # After a restart with another number of instances nothing is known of their speed.
        differs = len(slowness) == instances and max(slowness) - min(slowness) > _ALIKE
        sketch = CostSketch.from_json(memory["sketch"])
        return Dealing(instances, (sketch,), slowness if differs else ())


def _slowness(before: list[float], work: Sequence[InstanceWork]) -> list[float]:
    """Measured beside estimated time of every instance, as a share of the mean, smoothed."""
    now = np.ones(max(w.instance for w in work) + 1) if work else np.ones(len(before))
    old = np.array(before) if len(before) == len(now) else np.ones(len(now))
    seen = [w for w in work if w.estimated_ms > 0 and w.busy_ms > 0]
    if len(seen) < len(now):
        return [float(x) for x in old]
    for w in seen:
        now[w.instance] = w.busy_ms / w.estimated_ms
    now = np.clip(now / now.mean(), 1 / _EXTREME, _EXTREME)
    return [float(x) for x in np.round(_NEWEST * now + (1 - _NEWEST) * old, 4)]
