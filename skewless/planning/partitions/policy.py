"""What the policies that move partitions, and nothing else, have in common."""

from dataclasses import dataclass

from skewless.planning.checks import check_count, check_partitions, check_whole, counted
from skewless.planning.policy import RoutingPolicy
from skewless.routing.partitions import PartitionTable, round_robin


@dataclass(frozen=True)
class PartitionPolicy(RoutingPolicy):
    """A fixed number of partitions, at least one for every instance."""

    instances: int | None = None
    partitions: int = 256

    def __post_init__(self) -> None:
        check_count(self.instances)
        check_partitions(self.partitions, self.instances)
        check_whole("every", self.every, 1, 1_000_000)

    def table(self, cores: int) -> PartitionTable:
        instances = counted(self.instances, cores)
        return round_robin(instances, max(self.partitions, instances))
