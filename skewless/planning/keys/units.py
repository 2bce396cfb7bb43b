"""What the planners place: single keys, or records that stand for several equal keys."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from skewless.planning.keys.descending import Order, descending
from skewless.planning.keys.snapshot import Floats, Instances, KeySnapshot

Counts = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Units:
    """Keys, each `count` times; `cost` and `state` are those of one of them.

    `standing` is where a unit is if nothing is planned, `current` where its state is.
    """

    cost: Floats
    state: Floats
    home: Instances
    current: Instances
    standing: Instances
    count: Counts
    rest: Floats

    @property
    def instances(self) -> int:
        return len(self.rest)

    @cached_property
    def work(self) -> Floats:
        """The load of all keys of each unit."""
        return self.cost * self.count

    @cached_property
    def by_cost(self) -> Order:
        """Highest cost first; sorted once, however often a planner tries."""
        return descending(self.cost)

    def loads_of(self, placed: Instances) -> Floats:
        """L(d) of every instance if whole units were placed so."""
        return self.rest + np.bincount(placed, self.work, self.instances)

    def priority(self, beta: float) -> Floats:
        """γ = c^β / S: what a key relieves, per row that has to move. Without state it is free."""
        gained = self.cost**beta
        with np.errstate(divide="ignore", invalid="ignore"):
            gamma = gained / self.state
        return np.where(gained > 0, gamma, 0.0)


def units_of(snapshot: KeySnapshot) -> Units:
    """Every key a unit of its own."""
    return Units(
        cost=snapshot.cost,
        state=snapshot.state,
        home=snapshot.home,
        current=snapshot.current,
        standing=snapshot.standing,
        count=np.ones(snapshot.keys, np.int64),
        rest=snapshot.rest,
    )
