"""A route for more or fewer instances, in which as much as possible stays where it is."""

from collections.abc import Sequence

import numpy as np

from skewless.errors import bad_argument
from skewless.routing.entries import Entry
from skewless.routing.partitions import PartitionTable
from skewless.routing.splits import Split


def resized_table(table: PartitionTable, instances: int) -> PartitionTable:
    """The same partitions on another number of instances.

    Partitions of removed instances go to the instances with the fewest. New instances take their
    share from those with the most, because not every policy moves partitions.

    >>> resized_table(PartitionTable(3, (0, 1, 2, 2)), 2).assignment
    (0, 1, 0, 1)
    >>> resized_table(PartitionTable(1, (0, 0, 0, 0)), 2).assignment
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


def resized_entries(entries: Sequence[Entry], instances: int) -> tuple[Entry, ...]:
    """The entries whose instances all remain; other keys go back to their partition's instance."""
    return tuple(entry for entry in entries if max(entry.members) < instances)


def resized_splits(splits: Sequence[Split], instances: int) -> tuple[Split, ...]:
    """The splits without the instances that have gone; with one of its members left, a key is whole
    again, and at home."""
    kept = []
    for split in splits:
        members = tuple(member for member in split.members if member < instances)
        if len(members) > 1:
            kept.append(split.among(members))
    return tuple(kept)
