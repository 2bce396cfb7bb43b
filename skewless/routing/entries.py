"""Entries of a key table: their keys go to the instance of the entry, not to that of the hash."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Entry:
    """A key with an instance of its own, or with several among which its rows choose.

    A row visits only its home. Several instances are for work whose partial results are combined.
    """

    hash: int
    partition: int
    members: tuple[int, ...]

    def to_json(self) -> dict[str, Any]:
        return {"hash": self.hash, "partition": self.partition, "members": list(self.members)}

    @staticmethod
    def from_json(record: dict[str, Any]) -> "Entry":
        return Entry(record["hash"], record["partition"], tuple(record["members"]))
