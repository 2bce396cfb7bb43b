"""LeastWork, the default for maps: learns what rows cost, and sends each where it is done first."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from skewless.load.sketches import CostSketch, SketchShape
from skewless.planning.checks import check_count, check_number, check_whole
from skewless.planning.decision import Decision, Memory
from skewless.planning.shuffle.dealing import Dealing
from skewless.planning.shuffle.policy import ShufflePolicy
from skewless.planning.shuffle.snapshot import InstanceWork, WorkSnapshot

# Instances whose speed is within this share of the mean count as equally fast.
_ALIKE = 0.05
# Speeds are smoothed, because a single batch may be disturbed. They are clipped to this factor.
_NEWEST = 0.5
_EXTREME = 4.0
# New keys make an instance look fast or slow in a single batch. A speed counts only if it differs
# from the mean by more than this many standard deviations.
_SURE = 3.0


@dataclass(frozen=True)
class LeastWork(ShufflePolicy):
    """Rows of a batch go, the heaviest first, to the instance with the least estimated work.

    Costs are learned by `cost_key` into one sketch for all instances (`epsilon`, `delta`), with
    exact entries for the `heaviest` keys. After every round, the weight of the past is multiplied
    by `decay`. A round is a batch, or `window` tuples where tuples are assigned one at a time.

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
        SketchShape.within(self.epsilon, self.delta)  # raises if no sketch can be that exact

    def blank(self) -> CostSketch:
        return CostSketch.empty(SketchShape.within(self.epsilon, self.delta), self.heaviest)

    def plan(self, snapshot: WorkSnapshot, memory: Memory) -> Decision[Dealing]:
        before = memory.get("sketch")
        speeds = _Speeds.from_json(memory, snapshot.instances)
        if before is None and not snapshot.rows:
            reason = "no costs are known yet: rows are dealt out in turn"
            return self.decided(snapshot, reason, {"sketch": None, **speeds.to_json()})
        sketch = self.blank() if before is None else CostSketch.from_json(before)
        if snapshot.rows:
            sketch = sketch.decay(self.decay)
        for w in snapshot.work:
            sketch = sketch if w.sketch is None else sketch.merge(w.sketch)
        if before is not None:
            speeds = speeds.after(snapshot.work)
        reason = f"a row takes {sketch.mean:.3g} ms on average"
        return self.decided(snapshot, reason, {"sketch": sketch.to_json(), **speeds.to_json()})

    def route(self, memory: Memory, instances: int) -> Dealing:
        if memory.get("sketch") is None:
            return Dealing(instances)
        sketch = CostSketch.from_json(memory["sketch"])
        return Dealing(
            instances, (sketch,), _Speeds.from_json(memory, instances).certain(instances)
        )


@dataclass(frozen=True)
class _Speeds:
    """How much longer than the mean each instance takes, and how certain that is."""

    slowness: tuple[float, ...]  # smoothed
    newest: tuple[float, ...]  # of the last batch alone
    noise: float | None  # variance from batch to batch, smoothed; None: not known yet

    @staticmethod
    def alike(instances: int) -> "_Speeds":
        return _Speeds((1.0,) * instances, (), None)

    @staticmethod
    def from_json(memory: Memory, instances: int) -> "_Speeds":
        """The speeds in the memory; equal speeds for a new query."""
        if "slowness" not in memory:
            return _Speeds.alike(instances)
        return _Speeds(tuple(memory["slowness"]), tuple(memory["newest"]), memory["noise"])

    def to_json(self) -> dict[str, Any]:
        return {
            "slowness": [round(x, 4) for x in self.slowness],
            "newest": [round(x, 4) for x in self.newest],
            "noise": self.noise,
        }

    def after(self, work: Sequence[InstanceWork]) -> "_Speeds":
        """The speeds after one more batch: measured ÷ estimated time, relative to the mean."""
        count = len(work)
        speeds = self if count == len(self.slowness) else _Speeds.alike(count)
        if not all(w.estimated_ms > 0 and w.busy_ms > 0 for w in work):
            return speeds
        now = np.array([w.busy_ms / w.estimated_ms for w in work])
        now = np.clip(now / now.mean(), 1 / _EXTREME, _EXTREME)
        noise = speeds.noise
        if speeds.newest:
            # Half the squared change from batch to batch: a constantly slow instance adds nothing.
            steps = float(np.mean((now - np.array(speeds.newest)) ** 2)) / 2
            noise = steps if noise is None else _NEWEST * steps + (1 - _NEWEST) * noise
        smoothed = _NEWEST * now + (1 - _NEWEST) * np.array(speeds.slowness)
        return _Speeds(tuple(smoothed.tolist()), tuple(now.tolist()), noise)

    def certain(self, instances: int) -> tuple[float, ...]:
        """The slowness of each instance, 1 where it may be noise; empty: all are equally fast.

        After a restart with another number of instances, all count as equally fast.
        """
        if len(self.slowness) != instances or self.noise is None:
            return ()
        # The variance of a mean that is smoothed like this.
        deviation = (self.noise * _NEWEST / (2 - _NEWEST)) ** 0.5
        bound = max(_ALIKE, _SURE * deviation)
        found = tuple(x if abs(x - 1) > bound else 1.0 for x in self.slowness)
        return () if set(found) == {1.0} else found
