"""Groups (BiStream-ContRand): a key's hash names a group, its rows are stored on random members."""

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from skewless.errors import bad_argument
from skewless.routing.partitions import PartitionTable
from skewless.routing.route import Hashes, Instances, ScatteringRoute, Side, Visits, at_home, scaled


@dataclass(frozen=True)
class GroupRoute(ScatteringRoute):
    """Groups of `group` neighbouring instances; the last may be smaller.

    The group is that of the instance that plain hashing chooses, so a group's share of the hashes
    follows its number of members. Stored rows are read at a new row's home. For pairs within a
    batch it is enough that the right rows visit all members.
    """

    kind: ClassVar[str] = "groups"

    table: PartitionTable
    group: int

    def __post_init__(self) -> None:
        if self.group < 1:
            raise bad_argument("group", self.group, "a whole number of at least 1")

    @property
    def replicas_meet(self) -> bool:
        return False

    def homes(self, side: Side, hashes: Hashes, spread: Hashes) -> Instances:
        first, size = self._groups(hashes)
        return first + scaled(spread, size)

    def visits(self, side: Side, hashes: Hashes, spread: Hashes) -> Visits:
        home = self.homes(side, hashes, spread)
        if side == "left":
            return at_home(home)
        first, size = self._groups(hashes)
        row = np.repeat(np.arange(len(hashes)), size)
        place = np.arange(len(row)) - np.repeat(np.cumsum(size) - size, size)
        instance = first[row] + place
        return Visits(row, instance, instance == home[row])

    def _groups(self, hashes: Hashes) -> tuple[Instances, Instances]:
        """The first member of every row's group, and how many there are."""
        first = self.table.route(hashes) // self.group * self.group
        return first, np.minimum(self.group, self.instances - first)

    def members(self, instance: int) -> range:
        """The group of an instance."""
        first = instance // self.group * self.group
        return range(first, min(first + self.group, self.instances))

    def reads(self, instance: int) -> frozenset[int]:
        return frozenset().union(*(self.table.partitions_of(m) for m in self.members(instance)))

    def _fields(self) -> dict[str, Any]:
        return {**self.table.to_json(), "group": self.group}

    @classmethod
    def from_json(cls, record: dict[str, Any]) -> Self:
        return cls(PartitionTable.from_json(record), record["group"])
