"""How even the load can be at all, when a key, or what cannot move, is heavier than the mean."""

from dataclasses import dataclass

import numpy as np

from skewless.planning.keys.snapshot import Floats, Instances, KeySnapshot


@dataclass(frozen=True, eq=False)
class Reach:
    """What a plan can reach.

    `level` is the mean load of the instances that hold nothing heavier than it. It is the paper's
    L̄ as long as no key costs more than L̄, which the paper takes for granted. `least` is the load
    that each instance cannot get rid of: what cannot move, and a key that is above the level.
    """

    level: float
    least: Floats

    def deviations(self, loads: Floats) -> Floats:
        """θ(d) of every instance, with what can be reached in the place of L̄."""
        if self.level <= 0:
            return np.zeros(len(loads))
        over = loads - np.maximum(self.least, self.level)
        return np.maximum(np.maximum(over, self.level - loads), 0.0) / self.level


def reach_of(cost: Floats, work: Floats, rest: Floats, placed: Instances) -> Reach:
    """What can be reached from a placement. `work` is the cost of all keys of a unit.

    Every block that is above the level takes an instance for itself, which lowers the level of the
    others and may leave more blocks above it.

    >>> cost = np.array([8.0, 1.0, 1.0])
    >>> reach = reach_of(cost, cost, np.zeros(3), np.array([0, 0, 1]))
    >>> reach.level, reach.least.tolist()
    (1.0, [8.0, 0.0, 0.0])
    """
    total = float(rest.sum() + work.sum())
    level, before = total / len(rest), np.inf
    least = rest
    while level < before:
        before = level
        giants = np.flatnonzero(cost > level)
        # The heaviest stays with what cannot move; the others need an instance each.
        heaviest = np.zeros(len(rest))
        np.maximum.at(heaviest, placed[giants], cost[giants])
        least = rest + heaviest
        others = cost[giants][cost[giants] < heaviest[placed[giants]]]
        level = min(level, _level(np.concatenate([least, others]), total, len(rest)))
    return Reach(level, least)


def reach(snapshot: KeySnapshot) -> Reach:
    """What can be reached from where the keys of a snapshot are."""
    return reach_of(snapshot.cost, snapshot.cost, snapshot.rest, snapshot.standing)


def _level(blocks: Floats, total: float, instances: int) -> float:
    """The mean of what is left when every block above that mean has an instance of its own."""
    heaviest = np.sort(blocks)[::-1][: instances - 1]
    taken = np.concatenate([[0.0], np.cumsum(heaviest)])
    levels = (total - taken) / (instances - np.arange(len(taken)))
    above = heaviest > levels[:-1]
    first = len(above) if above.all() else int(np.argmin(above))
    return float(max(levels[first], 0.0))
