"""The routing table: hash → partition → instance."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from skewless.errors import bad_argument

# partition = ((hash >> 33) · partitions) >> 31: the hash's upper half scaled to the number of
# partitions. It rises with the hash, so rows sorted by hash are sorted by partition, and it works
# for any number of partitions, not only powers of two. Spark SQL computes the same expression.
HASH_SHIFT = 33
SCALE_SHIFT = 31
MAX_PARTITIONS = 65_536
Packed = bytes


def partition_of(hashes: npt.NDArray[np.uint64], partitions: int) -> npt.NDArray[np.int64]:
    """The partition of every hash.

    >>> partition_of(np.array([0, 2**63, 2**64 - 1], np.uint64), 4).tolist()
    [0, 2, 3]
    """
    scaled = (hashes >> np.uint64(HASH_SHIFT)) * np.uint64(partitions)
    return (scaled >> np.uint64(SCALE_SHIFT)).astype(np.int64)


@dataclass(frozen=True)
class PartitionTable:
    """Which instance owns which partition. Contract: every partition has exactly one instance."""

    instances: int
    assignment: tuple[int, ...]

    def __post_init__(self) -> None:
        if self.instances < 1:
            raise bad_argument("instances", self.instances, "a whole number of at least 1")
        if not 1 <= len(self.assignment) <= MAX_PARTITIONS:
            raise bad_argument(
                "partitions", len(self.assignment), f"between 1 and {MAX_PARTITIONS:,}"
            )
        wrong = [i for i in self.assignment if not 0 <= i < self.instances]
        if wrong:
            raise bad_argument("assignment", wrong[0], f"instances from 0 to {self.instances - 1}")

    @property
    def partitions(self) -> int:
        return len(self.assignment)

    @cached_property
    def owners(self) -> npt.NDArray[np.int64]:
        """The assignment as a read-only array."""
        owners = np.asarray(self.assignment, np.int64)
        owners.flags.writeable = False
        return owners

    def route(self, hashes: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
        """The instance of every hash."""
        routed: npt.NDArray[np.int64] = self.owners[partition_of(hashes, self.partitions)]
        return routed

    def partitions_of(self, instance: int) -> frozenset[int]:
        """The partitions that an instance owns."""
        return frozenset(np.flatnonzero(self.owners == instance).tolist())

    def to_json(self) -> dict[str, Any]:
        return {"instances": self.instances, "assignment": list(self.assignment)}

    @staticmethod
    def from_json(record: dict[str, Any]) -> "PartitionTable":
        return PartitionTable(record["instances"], tuple(record["assignment"]))


def round_robin(instances: int, partitions: int) -> PartitionTable:
    """Partitions dealt out in turn: what plain hashing does.

    >>> round_robin(2, 4).assignment
    (0, 1, 0, 1)
    """
    return PartitionTable(instances, tuple(p % instances for p in range(partitions)))


def packed(partitions: Iterable[int] | npt.NDArray[np.int64]) -> Packed:
    """A set of partitions, two bytes each: an instance owns few of many."""
    ids = np.unique(np.fromiter(partitions, np.int64))
    return ids.astype("<u2").tobytes()


def unpacked(partitions: Packed) -> npt.NDArray[np.uint16]:
    """The packed partitions, in ascending order."""
    return np.frombuffer(partitions, "<u2")


# A task asks for the same partitions once per segment.
@lru_cache(maxsize=16)
def as_flags(partitions: frozenset[int], of: int) -> npt.NDArray[np.bool_]:
    """A read-only flag per partition: whether it is in the set."""
    flags = np.zeros(of, np.bool_)
    flags[list(partitions)] = True
    flags.flags.writeable = False
    return flags
