"""What every route promises: each row is stored once, each pair of equal keys meets once."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt

from skewless.routing.partitions import PartitionTable

Hashes = npt.NDArray[np.uint64]
Instances = npt.NDArray[np.int64]
Side = Literal["left", "right"]


@dataclass(frozen=True)
class Visits:
    """Which instances the rows of a batch are sent to, one entry per visit.

    `row` counts within the batch and rises; `home` marks the one visit that stores the row.
    """

    row: Instances
    instance: Instances
    home: npt.NDArray[np.bool_]


class Route(ABC):
    """Where the rows of a batch go. State is shared, so a route of any kind may follow any other.

    Contract (eq. 5 and 6): every row has exactly one home, where it is stored and where it meets
    all stored rows of its key. Two rows of one batch meet where both visit and one of them is at
    home, or anywhere if `replicas_meet`; every pair of equal keys meets exactly once.

    A kind of route is one class here, one in `skewless.runtime.routing` that says the same in SQL,
    and one line in `skewless.routing.kinds`.
    """

    kind: ClassVar[str]
    # The units in which stored rows and loads are counted, and the owner of each. The kind of route
    # defines what a unit is (a hash partition, a cell of a map) and whether rows go to its owner.
    table: PartitionTable

    @property
    def instances(self) -> int:
        """The number of instances."""
        return self.table.instances

    @property
    def partitions(self) -> int:
        """The number of units in which stored rows and loads are counted."""
        return self.table.partitions

    @property
    @abstractmethod
    def spreads(self) -> bool:
        """Whether rows of one key may have different homes."""

    @property
    @abstractmethod
    def replicates(self) -> bool:
        """Whether a row may visit more than one instance."""

    @property
    @abstractmethod
    def replicas_meet(self) -> bool:
        """Whether two rows may meet where neither is at home."""

    def shares(self, hashes: Hashes) -> npt.NDArray[np.bool_]:
        """Which of these keys may have rows of one batch on several instances."""
        return np.full(len(hashes), self.spreads)

    @abstractmethod
    def homes(self, side: Side, hashes: Hashes, spread: Hashes) -> Instances:
        """The instance that stores each row.

        `spread` is any deterministic, uniform hash of the row: a replayed batch must be routed in
        the same way.
        """

    @abstractmethod
    def visits(self, side: Side, hashes: Hashes, spread: Hashes) -> Visits:
        """All the instances that the rows of a side are sent to."""

    @abstractmethod
    def reads(self, instance: int) -> frozenset[int]:
        """The partitions whose stored rows the rows at home on an instance may meet."""

    def resized(self, instances: int) -> "Route | None":
        """The same route over another number of instances, with as much as possible where it is;
        None: there is no such route, and a new one has to be made."""
        return None

    def to_json(self) -> dict[str, Any]:
        """For a commit; `skewless.routing.kinds` reads it back."""
        return {"kind": self.kind, **self._fields()}

    @abstractmethod
    def _fields(self) -> dict[str, Any]:
        """What `from_json` needs."""

    @classmethod
    @abstractmethod
    def from_json(cls, record: dict[str, Any]) -> Self:
        """The route of a commit."""


class ScatteringRoute(Route):
    """A route that stores the rows of a key on several instances, and sends copies to others."""

    @property
    def spreads(self) -> bool:
        return True

    @property
    def replicates(self) -> bool:
        return True


def scaled(spread: Hashes, size: int | Instances) -> Instances:
    """A uniform integer in [0, size), from the upper half of a uniform 64-bit one.

    >>> scaled(np.array([0, 2**63, 2**64 - 1], np.uint64), 3).tolist()
    [0, 1, 2]
    """
    upper = spread >> np.uint64(32)
    return (upper * np.asarray(size, np.uint64) >> np.uint64(32)).astype(np.int64)


def at_home(homes: Instances) -> Visits:
    """The visits of rows that are sent to their home only."""
    return Visits(np.arange(len(homes)), homes, np.ones(len(homes), np.bool_))
