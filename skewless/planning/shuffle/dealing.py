"""How the rows of one batch are shared out among the instances of a map: the route of a map."""

from dataclasses import dataclass

import numpy as np

from skewless.errors import bad_argument
from skewless.load.sketches import CostSketch, Hashes
from skewless.planning.shuffle.greedy import (
    Floats,
    Instances,
    assign_batch,
    assign_in_order,
    loads_after,
)


@dataclass(frozen=True)
class Dealing:
    """How the rows of one batch are shared out.

    No sketch: in turn. One sketch: all instances share its estimates. One sketch per instance: the
    cost of a row depends on its instance (POSG).
    """

    instances: int
    sketches: tuple[CostSketch, ...] = ()
    slowness: tuple[float, ...] = ()  # per instance, relative to the mean; empty: all alike

    def __post_init__(self) -> None:
        if len(self.sketches) not in (0, 1, self.instances):
            raise bad_argument("sketches", len(self.sketches), f"none, one or {self.instances}")
        if len(self.slowness) not in (0, self.instances):
            raise bad_argument("slowness", len(self.slowness), f"none or {self.instances}")

    def costs(self, hashes: Hashes) -> Floats:
        """Estimated costs of rows; with one sketch per instance, one line per instance."""
        if not self.sketches:
            return np.ones(len(hashes))
        # A batch has far fewer keys than rows.
        keys, place = np.unique(hashes, return_inverse=True)
        if len(self.sketches) == 1:
            return self.sketches[0].estimate(keys)[place]
        by_instance = np.stack([sketch.estimate(keys) for sketch in self.sketches])
        # C order, which is what the compiled loop was warmed up with.
        return np.ascontiguousarray(by_instance[:, place])

    def assign(self, hashes: Hashes, loads: Floats, offset: int) -> tuple[Instances, Floats]:
        """The instance of every row, and the load of every instance afterwards."""
        costs = self.costs(hashes)
        if costs.ndim == 2:
            assigned = assign_in_order(costs, loads, offset)
            costs = costs[assigned, np.arange(len(hashes))]
        elif self.slowness:
            slow = np.array(self.slowness)
            assigned = assign_in_order(costs, loads, offset, slow, heaviest_first=True)
            costs = costs * slow[assigned]
        else:
            assigned = assign_batch(costs, self.instances, loads, offset)
        return assigned, loads_after(costs, assigned, loads)

    def mean_costs(self, hashes: Hashes) -> Floats:
        """Estimated costs of rows, averaged over instances."""
        costs = self.costs(hashes)
        return costs.mean(axis=0) if costs.ndim == 2 else costs
