"""By what a policy weighs an instance: measured work, the paper's resources, or stored × queued."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from skewless.load.resources import compute, per_instance, resources
from skewless.planning.snapshot import Loads, Snapshot
from skewless.routing.entries import Entry
from skewless.routing.partitions import PartitionTable
from skewless.routing.splits import Split


class Measure(Protocol):
    """The load of every instance, had a table and splits been in force in the snapshot's batch."""

    def loads(
        self, snapshot: Snapshot, table: PartitionTable, splits: Sequence[Entry | Split] = ()
    ) -> Loads: ...


@dataclass(frozen=True)
class Measured:
    """What the tasks measured; the load of a split key is shared evenly by its members."""

    def loads(
        self, snapshot: Snapshot, table: PartitionTable, splits: Sequence[Entry | Split] = ()
    ) -> Loads:
        rest, shares = without_split_keys(snapshot, splits)
        return per_instance(rest, table.owners, table.instances) + shares


@dataclass(frozen=True)
class Resources:
    """The paper's resource model (eq. 11 and 12)."""

    gamma: float

    def loads(
        self, snapshot: Snapshot, table: PartitionTable, splits: Sequence[Entry | Split] = ()
    ) -> Loads:
        values = resources(snapshot.stored, snapshot.queued, self.gamma)
        return per_instance(values, table.owners, table.instances)


@dataclass(frozen=True)
class StoredTimesQueued:
    """FastJoin's load: every row that an instance gets is compared with every row it keeps."""

    def loads(
        self, snapshot: Snapshot, table: PartitionTable, splits: Sequence[Entry | Split] = ()
    ) -> Loads:
        return compute(
            per_instance(snapshot.stored, table.owners, table.instances),
            per_instance(snapshot.queued, table.owners, table.instances),
        )


def without_split_keys(snapshot: Snapshot, splits: Sequence[Entry | Split]) -> tuple[Loads, Loads]:
    """The load of every partition without its split keys, and of every instance from them alone."""
    rest = snapshot.load.copy()
    shares = np.zeros(snapshot.table.instances)
    loads = {key.hash: key.load for key in snapshot.hot_keys}
    for split in splits:
        load = min(loads.get(split.hash, 0.0), float(rest[split.partition]))
        rest[split.partition] -= load
        shares[list(split.members)] += load / len(split.members)
    return rest, shares
