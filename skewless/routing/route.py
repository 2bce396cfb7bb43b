"""The route of a batch: which instances a row visits, which of them keeps it, who reads what."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from skewless.errors import SkewlessError
from skewless.routing.cont_rand import ContRandRouter
from skewless.routing.join_matrix import JoinMatrixRouter
from skewless.routing.partitions import PartitionTable
from skewless.routing.router import Hashes, Router, Side, Visits
from skewless.routing.splits import Split, SplitRouter

KINDS = ("table", "groups", "grid")


@dataclass(frozen=True)
class Route:
    """How rows are sent in one batch. State is shared, so any kind may follow any other.

    - "table": a partition has an instance, a split key has several.
    - "groups": rows spread over a group of neighbouring instances (ContRand).
    - "grid": left rows along a line of a grid, right rows along a column (Join-Matrix).
    """

    table: PartitionTable
    splits: tuple[Split, ...] = ()
    kind: str = "table"
    group: int = 1

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise SkewlessError(f"kind: got {self.kind!r}; takes one of {', '.join(KINDS)}")

    @property
    def instances(self) -> int:
        return self.table.instances

    @property
    def partitions(self) -> int:
        return self.table.partitions

    @property
    def replicates(self) -> bool:
        """Whether a row may visit more than one instance."""
        return self.kind != "table" or any(len(s.members) > 1 for s in self.splits)

    @property
    def replicas_meet(self) -> bool:
        """Whether two rows may meet where neither is at home."""
        return self.kind == "grid" or any(1 < s.lines < len(s.members) for s in self.splits)

    @cached_property
    def router(self) -> Router:
        if self.kind == "groups":
            return ContRandRouter(self.table, self.group)
        if self.kind == "grid":
            return JoinMatrixRouter(self.instances)
        return SplitRouter(self.table, self.splits)

    def visits(self, side: Side, hashes: Hashes, spread: Hashes) -> Visits:
        """Where the rows of a side go.

        Stored rows are read where a new row is at home, whatever the router would have stored
        where: so a group needs replicas of one side only, for the rows of this batch.
        """
        visits = self.router.visits(side, hashes, spread)
        if self.kind == "groups" and side == "left":
            home = visits.home
            return Visits(visits.row[home], visits.instance[home], visits.home[home])
        return visits

    def reads(self, instance: int) -> frozenset[int]:
        """The partitions whose stored rows the rows at home on an instance may meet."""
        if self.kind == "grid":
            return frozenset(range(self.partitions))
        if self.kind == "groups":
            first = instance // self.group * self.group
            members = range(first, min(first + self.group, self.instances))
            return frozenset().union(*(self.table.partitions_of(m) for m in members))
        shared = {s.partition for s in self.splits if instance in s.members}
        return self.table.partitions_of(instance) | shared

    def to_json(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "group": self.group,
            "instances": self.instances,
            "assignment": self.table.assignment,
            "splits": [
                {
                    "hash": s.hash,
                    "partition": s.partition,
                    "members": s.members,
                    "lines": s.lines,
                }
                for s in self.splits
            ],
        }

    @staticmethod
    def from_json(record: dict[str, Any]) -> "Route":
        splits = tuple(
            Split(s["hash"], s["partition"], tuple(s["members"]), s["lines"])
            for s in record["splits"]
        )
        table = PartitionTable(record["instances"], tuple(record["assignment"]))
        return Route(table, splits, record["kind"], record["group"])
