"""The default policy: chooses the number of instances, then routes by hash."""

from dataclasses import dataclass
from typing import Any

from skewless.planning.hash import Hash
from skewless.routing.partitions import PartitionTable


@dataclass(frozen=True)
class Auto:
    """One instance per core of the session.

    >>> Auto().table(cores=8).instances
    8
    """

    def table(self, cores: int) -> PartitionTable:
        return Hash(max(1, cores)).table(cores)

    def describe(self) -> dict[str, Any]:
        return {"policy": "Auto"}
