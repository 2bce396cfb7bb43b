"""What every balancing policy offers the engine."""

from abc import ABC, abstractmethod
from dataclasses import Field, asdict
from typing import Any, ClassVar, Generic, TypeVar

from skewless.load.heavy import STANDING_OUT, Detail
from skewless.planning.decision import Decision, Limits, Memory, RouteT
from skewless.planning.scaling import BUSY_MS, Instances
from skewless.planning.snapshot import Snapshot
from skewless.routing.partitions import PartitionTable
from skewless.routing.route import Route
from skewless.routing.table import TableRoute

# What was measured in a batch.
SnapshotT = TypeVar("SnapshotT", contravariant=True)


class Policy(ABC, Generic[SnapshotT, RouteT]):
    """What `balance=` takes: the first route of a query, and after every batch the next one.

    A policy is a dataclass. Its fields are its options.
    """

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    def describe(self) -> dict[str, Any]:
        """The policy and its options. A restart under the same ones keeps what was planned.

        A range is a list, as it comes back from a commit.
        """
        options = asdict(self).items()
        told = {name: list(v) if isinstance(v, tuple) else v for name, v in options}
        return {"policy": type(self).__name__, **told}

    @abstractmethod
    def start(self, cores: int) -> RouteT:
        """The route that a new query starts with on a cluster of so many cores."""

    @abstractmethod
    def plan(self, snapshot: SnapshotT, memory: Memory) -> Decision[RouteT]:
        """The next route, and what the policy wants to remember until it is asked again.

        `memory` is what it returned the last time, {} at first; it must survive JSON.
        """


class RoutingPolicy(Policy[Snapshot, Route]):
    """A policy for operators with state: options become the first route, measured load the next.

    The attributes below are what the control loop asks for; a policy that has them as options
    makes them fields.
    """

    # How many instances; None: one per core; (lowest, highest): as many as the load needs, where an
    # instance that works for longer than `busy_ms` per batch is busy.
    instances: Instances = None
    busy_ms: float = BUSY_MS
    # After how many batches it wants to be asked.
    every: int = 1
    # Whether the rows of a key may be on several instances, which only some work can combine.
    needs_combinable: ClassVar[bool] = False
    # How many keys tasks report by themselves.
    detail: ClassVar[Detail] = STANDING_OUT

    @abstractmethod
    def table(self, cores: int) -> PartitionTable:
        """The partitions of a new query on a cluster of so many cores, and their instances."""

    def start(self, cores: int) -> Route:
        return TableRoute(self.table(cores))

    def limits(self, partitions: int) -> Limits:
        """What its plans have to keep to."""
        return Limits()
