"""What every balancing policy offers the engine."""

from typing import Any, Protocol

from skewless.routing.partitions import PartitionTable


class Policy(Protocol):
    """Turns options into a routing table; the engine asks nothing else of it."""

    def table(self, cores: int) -> PartitionTable:
        """The table that a new query starts with on a cluster of so many cores."""
        ...

    def describe(self) -> dict[str, Any]:
        """The policy and its options. A restart under the same ones keeps the committed table."""
        ...
