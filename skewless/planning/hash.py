"""Plain hashing: the partition decides, nothing ever moves. What Spark and BiStream do."""

from dataclasses import dataclass

from skewless.load.imbalance import imbalance
from skewless.planning.checks import check_count, counted
from skewless.planning.decision import Decision, Memory
from skewless.planning.plan import stay
from skewless.planning.policy import RoutingPolicy
from skewless.planning.snapshot import Snapshot
from skewless.routing.partitions import MAX_PARTITIONS, PartitionTable, round_robin
from skewless.routing.route import Route

_PARTITIONS = 256


@dataclass(frozen=True)
class Hash(RoutingPolicy):
    """Every key stays on the instance its hash names; one instance per core by default.

    >>> Hash(instances=4).table(cores=2).instances
    4
    """

    instances: int | None = None

    def __post_init__(self) -> None:
        check_count(self.instances)

    def table(self, cores: int) -> PartitionTable:
        instances = counted(self.instances, cores)
        # A multiple of the instances, so that each owns equally many partitions.
        per_instance = max(1, -(-_PARTITIONS // instances))
        return round_robin(instances, min(per_instance * instances, MAX_PARTITIONS))

    def plan(self, snapshot: Snapshot, memory: Memory) -> Decision[Route]:
        loads = snapshot.by_instance(snapshot.load)
        return stay(snapshot, "plain hashing moves nothing", imbalance(loads)).decision()
