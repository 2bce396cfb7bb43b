"""Plain hashing: the partition decides, nothing ever moves. What Spark and BiStream do."""

from dataclasses import dataclass
from typing import Any

from skewless.errors import bad_argument
from skewless.routing.partitions import MAX_PARTITIONS, PartitionTable, round_robin

_PARTITIONS = 256


@dataclass(frozen=True)
class Hash:
    """Every key stays on the instance its hash names.

    >>> Hash(instances=4).table(cores=2).instances
    4
    """

    instances: int

    def __post_init__(self) -> None:
        whole = isinstance(self.instances, int) and not isinstance(self.instances, bool)
        if not whole or not 1 <= self.instances <= MAX_PARTITIONS:
            raise bad_argument(
                "instances", self.instances, f"a whole number from 1 to {MAX_PARTITIONS:,}"
            )

    def table(self, cores: int) -> PartitionTable:
        # A multiple of the instances, so that each owns equally many partitions.
        per_instance = max(1, -(-_PARTITIONS // self.instances))
        return round_robin(self.instances, min(per_instance * self.instances, MAX_PARTITIONS))

    def describe(self) -> dict[str, Any]:
        return {"policy": "Hash", "instances": self.instances}
