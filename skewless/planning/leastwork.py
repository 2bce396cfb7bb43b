"""LeastWork, the default for maps: learns what rows cost, and sends each where it is done first."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from skewless.load.sketches import CostSketch, SketchShape
from skewless.planning.checks import check_count, check_number, check_whole
from skewless.planning.shuffle.policy import Dealing, InstanceWork, ShufflePolicy

# An instance whose speed is nearer to the mean than this is treated as like the others.
_ALIKE = 0.05
# A single batch may be disturbed, and no instance is believed to be faster or slower than this.
_NEWEST = 0.5
_EXTREME = 4.0
# What keys cost that were never seen makes an instance look fast or slow from batch to batch; one
# that is so in truth stays away from the mean by more than so many standard deviations.
_SURE = 3.0


@dataclass(frozen=True)
class LeastWork(ShufflePolicy):
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
        check_count(self.instances)
        check_number("epsilon", self.epsilon, 0.0, 1.0)
        check_number("delta", self.delta, 0.0, 0.99)
        check_whole("heaviest", self.heaviest, 0, 65_536)
        check_number("decay", self.decay, 0.0, 1.0)
        check_whole("window", self.window, 1, 2**40)
        SketchShape.within(self.epsilon, self.delta)  # names what it does not take

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
        return {"sketch": None, **_Speeds.alike(instances).to_json()}

    def learn(self, memory: dict[str, Any], work: Sequence[InstanceWork]) -> dict[str, Any]:
        before = memory["sketch"]
        if before is None and not any(w.rows for w in work):
            return memory
        sketch = self.blank() if before is None else CostSketch.from_json(before)
        if any(w.rows for w in work):
            sketch = sketch.decay(self.decay)
        for w in work:
            sketch = sketch.merge(w.sketch)
        speeds = _Speeds.from_json(memory)
        if before is not None:
            speeds = speeds.after(work)
        return {"sketch": sketch.to_json(), **speeds.to_json()}

    def dealing(self, memory: dict[str, Any], instances: int) -> Dealing:
        if memory["sketch"] is None:
            return Dealing(instances)
        sketch = CostSketch.from_json(memory["sketch"])
        return Dealing(instances, (sketch,), _Speeds.from_json(memory).certain(instances))


@dataclass(frozen=True)
class _Speeds:
    """How much longer than the mean every instance takes, and how sure that is."""

    slowness: tuple[float, ...]  # smoothed
    newest: tuple[float, ...]  # of the last batch alone
    noise: float | None  # variance from batch to batch, smoothed; None: not known yet

    @staticmethod
    def alike(instances: int) -> "_Speeds":
        return _Speeds((1.0,) * instances, (), None)

    @staticmethod
    def from_json(memory: dict[str, Any]) -> "_Speeds":
        return _Speeds(tuple(memory["slowness"]), tuple(memory["newest"]), memory["noise"])

    def to_json(self) -> dict[str, Any]:
        return {
            "slowness": [round(x, 4) for x in self.slowness],
            "newest": [round(x, 4) for x in self.newest],
            "noise": self.noise,
        }

    def after(self, work: Sequence[InstanceWork]) -> "_Speeds":
        """With one more batch: measured beside estimated time, as a share of the mean."""
        count = max((w.instance for w in work), default=-1) + 1
        speeds = self if count in (0, len(self.slowness)) else _Speeds.alike(count)
        seen = [w for w in work if w.estimated_ms > 0 and w.busy_ms > 0]
        if not count or len(seen) < count:
            return speeds
        now = np.ones(count)
        for w in seen:
            now[w.instance] = w.busy_ms / w.estimated_ms
        now = np.clip(now / now.mean(), 1 / _EXTREME, _EXTREME)
        noise = speeds.noise
        if speeds.newest:
            # Half the squared step: an instance that is always slow makes no steps.
            steps = float(np.mean((now - np.array(speeds.newest)) ** 2)) / 2
            noise = steps if noise is None else _NEWEST * steps + (1 - _NEWEST) * noise
        smoothed = _NEWEST * now + (1 - _NEWEST) * np.array(speeds.slowness)
        return _Speeds(tuple(smoothed.tolist()), tuple(now.tolist()), noise)

    def certain(self, instances: int) -> tuple[float, ...]:
        """The slowness of each, 1 where it may be chance; empty: all are alike.

        After a restart with another number of instances nothing is known of their speed.
        """
        if len(self.slowness) != instances or self.noise is None:
            return ()
        # The variance of a mean that is smoothed like this.
        deviation = (self.noise * _NEWEST / (2 - _NEWEST)) ** 0.5
        bound = max(_ALIKE, _SURE * deviation)
        found = tuple(x if abs(x - 1) > bound else 1.0 for x in self.slowness)
        return () if set(found) == {1.0} else found
