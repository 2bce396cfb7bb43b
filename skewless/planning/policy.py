"""What every balancing policy offers the engine."""

from abc import ABC, abstractmethod
from typing import Any, ClassVar

from skewless.load.heavy import STANDING_OUT, Detail
from skewless.planning.decision import Decision, Limits, Memory
from skewless.planning.scaling import BUSY_MS, Instances
from skewless.planning.snapshot import Snapshot
from skewless.routing.partitions import PartitionTable
from skewless.routing.route import Route
from skewless.routing.table import TableRoute


class Policy(ABC):
    """What `balance=` takes, and what all policies have in common."""

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """The policy and its options. A restart under the same ones keeps what was planned."""


class RoutingPolicy(Policy):
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
        """The route that a new query starts with on a cluster of so many cores."""
        return TableRoute(self.table(cores))

    @abstractmethod
    def plan(self, snapshot: Snapshot, memory: Memory) -> Decision:
        """The next route, and what the policy wants to remember until it is asked again.

        `memory` is what it returned the last time, {} at first; it must survive JSON.
        """

    def limits(self, partitions: int) -> Limits:
        """What its plans have to keep to."""
        return Limits()
