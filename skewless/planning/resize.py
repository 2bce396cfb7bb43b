"""A table for more or fewer instances, in which as much as possible stays where it is."""

from collections.abc import Sequence

import numpy as np

from skewless.errors import bad_argument
from skewless.routing.partitions import PartitionTable
from skewless.routing.splits import Split


def resized(table: PartitionTable, instances: int) -> PartitionTable:
    """The same partitions on another number of instances.

    The partitions of instances that go are dealt to those with the fewest; instances that come
    take their share from those with the most, since not every policy moves partitions.

    >>> resized(PartitionTable(3, (0, 1, 2, 2)), 2).assignment
    (0, 1, 0, 1)
    >>> resized(PartitionTable(1, (0, 0, 0, 0)), 2).assignment
    (1, 1, 0, 0)
    """
    if not 1 <= instances <= table.partitions:
        raise bad_argument("instances", instances, f"a number from 1 to {table.partitions:,}")
    owners = table.owners.copy()
    orphans = np.flatnonzero(owners >= instances)
    counts = np.bincount(owners[owners < instances], minlength=instances)
    for partition in orphans.tolist():
        target = int(counts.argmin())
        owners[partition] = target
        counts[target] += 1
    for newcomer in range(table.instances, instances):
        while counts[newcomer] < table.partitions // instances:
            fullest = int(counts.argmax())
            given = np.flatnonzero(owners == fullest)[0]
            owners[given] = newcomer
            counts[fullest] -= 1
            counts[newcomer] += 1
    return PartitionTable(instances, tuple(owners.tolist()))


def resized_splits(splits: Sequence[Split], instances: int) -> tuple[Split, ...]:
    """The splits without the instances that have gone.

    A key that is left with one of its instances is whole again, and at home; one that had only one
    is an entry of a key table, and stays while its instance does.
    """
    kept = []
    for split in splits:
        members = tuple(member for member in split.members if member < instances)
        if len(members) >= min(2, len(split.members)):
            kept.append(split.among(members))
    return tuple(kept)
