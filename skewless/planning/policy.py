"""The protocol of all balancing policies."""

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
        """The policy and its options. A restart with the same ones keeps the route and the memory.

        A range is a list, as it comes back from a commit.
        """
        options = asdict(self).items()
        told = {name: list(v) if isinstance(v, tuple) else v for name, v in options}
        return {"policy": type(self).__name__, **told}

    @abstractmethod
    def start(self, cores: int) -> RouteT:
        """The route of a new query on a cluster with this many cores."""

    @abstractmethod
    def plan(self, snapshot: SnapshotT, memory: Memory) -> Decision[RouteT]:
        """The next route, with the memory for the next call.

        `memory` is what the last call returned, {} at first. It must survive JSON.
        """


class RoutingPolicy(Policy[Snapshot, Route]):
    """A policy for operators with state: options become the first route, measured load the next.

    The control loop reads the attributes below. A policy declares those that are its options as
    fields.
    """

    # The number of instances. None: one per core. (lowest, highest): as many as the load needs; an
    # instance is busy if it works for longer than `busy_ms` per batch.
    instances: Instances = None
    busy_ms: float = BUSY_MS
    # It plans once every `every` batches.
    every: int = 1
    # Whether rows of one key may be on several instances. The operator must then combine results.
    needs_combinable: ClassVar[bool] = False
    # Which keys tasks report one by one.
    detail: ClassVar[Detail] = STANDING_OUT

    @abstractmethod
    def table(self, cores: int) -> PartitionTable:
        """The partition table of a new query on a cluster with this many cores."""

    def start(self, cores: int) -> Route:
        return TableRoute(self.table(cores))

    def resized(self, route: Route, instances: int) -> Route | None:
        """The route for another number of instances; None: there is no such route."""
        return route.resized(instances)

    def limits(self, partitions: int) -> Limits:
        """The limits of its plans."""
        return Limits()
