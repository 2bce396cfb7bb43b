"""A table of partitions, with exceptions: keys with an instance of their own, and split keys."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from skewless.errors import SkewlessError, bad_argument
from skewless.routing.entries import Entry
from skewless.routing.lookup import NOWHERE
from skewless.routing.partitions import PartitionTable
from skewless.routing.resize import resized_entries, resized_splits, resized_table
from skewless.routing.route import Hashes, Instances, Route, Side, Visits, at_home, scaled
from skewless.routing.splits import Split


@dataclass(frozen=True)
class TableRoute(Route):
    """A row goes to its partition's instance, unless its key has an entry or is split.

    Entries replicate nothing; the rows of a split key also visit some of its other members.
    """

    kind: ClassVar[str] = "table"

    table: PartitionTable
    entries: tuple[Entry, ...] = ()
    splits: tuple[Split, ...] = ()

    def __post_init__(self) -> None:
        hashes = [key.hash for key in self.exceptions]
        if len(set(hashes)) < len(hashes):
            twice = next(h for h in hashes if hashes.count(h) > 1)
            raise SkewlessError(f"entries, splits: got key {twice:#018x} twice; takes it once")
        for key in self.exceptions:
            if not key.members or not 0 <= min(key.members) <= max(key.members) < self.instances:
                takes = f"members from 0 to {self.instances - 1}"
                raise bad_argument(f"key {key.hash:#018x}", key.members, takes)
        for split in self.splits:
            if len(split.members) < 2 or len(split.members) % split.lines:
                takes = f"at least 2 of them, in {split.lines} lines of equal length"
                raise bad_argument(f"members of key {split.hash:#018x}", split.members, takes)

    @property
    def exceptions(self) -> tuple[Entry | Split, ...]:
        """The keys that do not follow their partition; entries come first."""
        return (*self.entries, *self.splits)

    @property
    def spreads(self) -> bool:
        return any(len(key.members) > 1 for key in self.exceptions)

    @property
    def replicates(self) -> bool:
        return bool(self.splits)

    @property
    def replicas_meet(self) -> bool:
        return any(1 < split.lines < len(split.members) for split in self.splits)

    @cached_property
    def _sorted(self) -> tuple[Hashes, Instances]:
        """The hashes of the exceptions in order, and the place of each among them."""
        hashes = np.array([key.hash for key in self.exceptions], np.uint64)
        order = np.argsort(hashes)
        return hashes[order], order

    def _places(self, hashes: Hashes) -> Instances:
        """The place of every row's key among the exceptions, or `NOWHERE`."""
        known, order = self._sorted
        if not len(known):
            return np.full(len(hashes), NOWHERE)
        found = np.minimum(np.searchsorted(known, hashes), len(known) - 1)
        return np.where(known[found] == hashes, order[found], NOWHERE)

    def shares(self, hashes: Hashes) -> npt.NDArray[np.bool_]:
        places = self._places(hashes)
        sizes = np.array([len(key.members) for key in self.exceptions] or [1])
        shared: npt.NDArray[np.bool_] = (places != NOWHERE) & (sizes[places] > 1)
        return shared

    def homes(self, side: Side, hashes: Hashes, spread: Hashes) -> Instances:
        """A row of an exception goes to a member chosen by its spread value."""
        home = self.table.route(hashes)
        places = self._places(hashes)
        apart = np.flatnonzero(places != NOWHERE)
        if apart.size:
            sizes = np.array([len(key.members) for key in self.exceptions])
            members = np.array([m for key in self.exceptions for m in key.members], np.int64)
            first = np.cumsum(sizes) - sizes
            place = places[apart]
            home[apart] = members[first[place] + scaled(spread[apart], sizes[place])]
        return home

    def visits(self, side: Side, hashes: Hashes, spread: Hashes) -> Visits:
        """A row of a split key also visits the rest of its line or column, where it meets the rows
        of this batch that come there."""
        home = self.homes(side, hashes, spread)
        if not self.replicates:
            return at_home(home)
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

    def reads(self, instance: int) -> frozenset[int]:
        shared = {key.partition for key in self.exceptions if instance in key.members}
        return self.table.partitions_of(instance) | shared

    def resized(self, instances: int) -> "TableRoute | None":
        if instances > self.partitions:
            return None
        return TableRoute(
            resized_table(self.table, instances),
            resized_entries(self.entries, instances),
            resized_splits(self.splits, instances),
        )

    def _fields(self) -> dict[str, Any]:
        return {
            **self.table.to_json(),
            "entries": [entry.to_json() for entry in self.entries],
            "splits": [split.to_json() for split in self.splits],
        }

    @classmethod
    def from_json(cls, record: dict[str, Any]) -> Self:
        return cls(
            PartitionTable.from_json(record),
            tuple(Entry.from_json(entry) for entry in record["entries"]),
            tuple(Split.from_json(split) for split in record["splits"]),
        )


def as_table(route: Route) -> TableRoute:
    """The route of an operator that sends every row to one instance: a table."""
    if not isinstance(route, TableRoute):
        raise SkewlessError(f"route: got one of kind {route.kind!r}; takes a table of partitions")
    return route
