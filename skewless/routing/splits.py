"""Routing with split keys: the rows of a key too hot for one instance are shared by several."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from skewless.routing.partitions import PartitionTable
from skewless.routing.router import Hashes, Instances, Meeting, Side, Visits, scaled


@dataclass(frozen=True)
class Split:
    """A hot key whose rows are shared by several instances; `replicated` is the side whose rows of
    the current batch go to all of them."""

    hash: int
    partition: int
    members: tuple[int, ...]
    replicated: str


@dataclass(frozen=True)
class SplitRouter:
    """A partition table with exceptions for split keys; see `Router` for the contract."""

    table: PartitionTable
    splits: tuple[Split, ...] = ()

    @property
    def instances(self) -> int:
        return self.table.instances

    @property
    def meeting(self) -> Meeting:
        return "at own home"

    def visits(self, side: Side, hashes: Hashes, spread: Hashes) -> Visits:
        """A row of a split key has a home among the members; on the replicated side it visits the
        others too, where the rows of this batch that live there meet it."""
        home = homes(self.table, self.splits, hashes, spread)
        rows, instances = [np.arange(len(hashes))], [home]
        for split in self.splits:
            if split.replicated != side:
                continue
            of_key = np.flatnonzero(hashes == np.uint64(split.hash))
            for member in split.members:
                elsewhere = of_key[home[of_key] != member]
                rows.append(elsewhere)
                instances.append(np.full(len(elsewhere), member))
        row, instance = np.concatenate(rows), np.concatenate(instances)
        is_home = np.arange(len(row)) < len(hashes)
        order = np.argsort(row, kind="stable")
        return Visits(row[order], instance[order], is_home[order])


def homes(
    table: PartitionTable, splits: Sequence[Split], hashes: Hashes, spread: Hashes
) -> Instances:
    """The instance that stores each row: its partition's, or for a split key a member of its
    split, chosen by the row's spread value."""
    home = table.route(hashes)
    for split in splits:
        of_key = np.flatnonzero(hashes == np.uint64(split.hash))
        members = np.asarray(split.members, np.int64)
        home[of_key] = members[scaled(spread[of_key], len(members))]
    return home
