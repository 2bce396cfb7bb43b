"""Routing with split keys: the rows of a key too hot for one instance are shared by several."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from skewless.routing.partitions import PartitionTable
from skewless.routing.router import Hashes, Instances, Meeting, Side, Visits, scaled


@dataclass(frozen=True)
class Split:
    """A hot key whose rows are shared by several instances.

    The members are the cells of a grid of so many `lines`, one line after the other. A row is at
    home in one cell; for the rows of its batch a left row also visits the rest of its line, a right
    row the rest of its column. With a single line left rows go everywhere and right rows nowhere,
    with as many lines as members it is the other way round.
    """

    hash: int
    partition: int
    members: tuple[int, ...]
    lines: int

    @property
    def columns(self) -> int:
        return len(self.members) // self.lines

    def among(self, members: Sequence[int]) -> "Split":
        """The same key over other members, in a grid as much like this one as they allow."""
        count = len(members)

        def distortion(lines: int) -> float:
            tall, wide = lines * lines * self.columns, count * self.lines
            return max(tall, wide) / min(tall, wide)

        return replace(self, members=tuple(members), lines=min(divisors(count), key=distortion))


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
        """A row of a split key has a home among the members; it visits the rest of its line or
        column too, where it meets the rows of this batch that come there."""
        home = homes(self.table, self.splits, hashes, spread)
        rows, instances = [np.arange(len(hashes))], [home]
        for split in self.splits:
            of_key = np.flatnonzero(hashes == np.uint64(split.hash))
            cells = np.array(split.members, np.int64).reshape(split.lines, split.columns)
            for visited in cells if side == "left" else cells.T:
                here = of_key[np.isin(home[of_key], visited)]
                for member in visited:
                    elsewhere = here[home[here] != member]
                    rows.append(elsewhere)
                    instances.append(np.full(len(elsewhere), member))
        row, instance = np.concatenate(rows), np.concatenate(instances)
        is_home = np.arange(len(row)) < len(hashes)
        order = np.argsort(row, kind="stable")
        return Visits(row[order], instance[order], is_home[order])


def replicas(
    left_rows: float, right_rows: float, lines: int | Instances, columns: int | Instances
) -> Any:
    """How many visits the rows of a split key make besides those at home.

    >>> replicas(100, 100, lines=4, columns=4), replicas(100, 100, lines=1, columns=16)
    (600, 1500)
    """
    return left_rows * (columns - 1) + right_rows * (lines - 1)


def divisors(count: int) -> list[int]:
    """How many lines a grid of so many cells may have.

    >>> divisors(12)
    [1, 2, 3, 4, 6, 12]
    """
    return [n for n in range(1, count + 1) if count % n == 0]


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
