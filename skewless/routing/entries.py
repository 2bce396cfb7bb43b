"""Entries of a key table: keys that go where their entry says, not where their hash does."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Entry:
    """A key with an instance of its own, or with several among which its rows choose.

    No row of it visits more than its home: several instances are for work whose parts are added up.
    """

    hash: int
    partition: int
    members: tuple[int, ...]

    def to_json(self) -> dict[str, Any]:
        return {"hash": self.hash, "partition": self.partition, "members": list(self.members)}

    @staticmethod
    def from_json(record: dict[str, Any]) -> "Entry":
        return Entry(record["hash"], record["partition"], tuple(record["members"]))
