"""BiStream-ContRand: a key's hash names a group, its rows are stored on random members of it."""

from dataclasses import dataclass

import numpy as np

from skewless.routing.partitions import PartitionTable
from skewless.routing.router import Hashes, Meeting, Side, Visits, scaled


@dataclass(frozen=True)
class ContRandRouter:
    """Groups of `group` neighbouring instances (the last may be smaller); see `Router`.

    The group is that of the instance which plain hashing names, so a group gets as much of the
    hashes as it has members.
    """

    table: PartitionTable
    group: int

    @property
    def instances(self) -> int:
        return self.table.instances

    @property
    def meeting(self) -> Meeting:
        return "where stored"

    def visits(self, side: Side, hashes: Hashes, spread: Hashes) -> Visits:
        """Every row visits its whole group, and one member stores it."""
        first = self.table.route(hashes) // self.group * self.group
        size = np.minimum(self.group, self.instances - first)
        row = np.repeat(np.arange(len(hashes)), size)
        place = np.arange(len(row)) - np.repeat(np.cumsum(size) - size, size)
        return Visits(row, first[row] + place, place == scaled(spread, size)[row])
