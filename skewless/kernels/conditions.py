"""What two rows must fulfil that an index has brought together."""

from dataclasses import dataclass
from typing import Protocol, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from skewless.kernels.ordering import HashArray, IndexArray
from skewless.kernels.runs import SortedRun, equal_at_rows
from skewless.kernels.sets import ItemSets, SetPairs

Mask = npt.NDArray[np.bool_]


class Condition(Protocol):
    """Tells the pairs of a join from candidates: postings of equal hash, inside the bounds."""

    def seen_from(self, side: str) -> Self:
        """The same for needles of this side."""
        ...

    def qualifying(
        self, needles: SortedRun, stored: SortedRun, needle: IndexArray, other: IndexArray
    ) -> Mask:
        """Which of these pairs of postings are pairs of the result; each is so at one posting."""
        ...

    def seeds(self, rows: pa.RecordBatch) -> HashArray | None:
        """A deterministic hash of every needle by what it is compared by; None: of its key."""
        ...


@dataclass(frozen=True)
class SetColumn:
    """Where the sets of a run's rows are, and the fields of an item that is more than its hash."""

    name: str
    hash: str
    weight: str
    item: str
    signature: str = ""  # the column of their signatures, where rows have one

    def sets(self, rows: pa.RecordBatch) -> ItemSets:
        signed = None
        if self.signature in rows.schema.names:
            signed = rows.column(self.signature).to_numpy()
        column = rows.column(self.name)
        return ItemSets.of(column, self.hash, self.weight, self.item, signed)

    def of(self, column: pa.Array) -> ItemSets:
        return ItemSets.of(column, self.hash, self.weight, self.item)


@dataclass(frozen=True)
class SetCondition:
    """Two sets have `at_least` common items, or (`weighted`) an inner product of `at_least`.

    A pair may meet at several postings. It counts at that of the least hash that the two sets have
    in common, which both sides know without asking anybody.
    """

    column: SetColumn
    at_least: float
    weighted: bool
    keys: tuple[str, ...] = ()  # equal, too; part of every hash
    hash_is_item: bool = False  # the hash is one-to-one: equal hash, equal keys and item

    @property
    def indexed_for(self) -> int:
        """How many common items a pair has at least, whatever their weights."""
        return 1 if self.weighted else int(self.at_least)

    def seen_from(self, side: str) -> "SetCondition":
        """Sets of both sides are in a column of one name."""
        return self

    def seeds(self, rows: pa.RecordBatch) -> HashArray:
        return self.column.sets(rows).whole_hashes()

    def qualifying(
        self, needles: SortedRun, stored: SortedRun, needle: IndexArray, other: IndexArray
    ) -> Mask:
        first = needles.hashes[needle].view(np.int64)
        pairs = SetPairs(
            self.column.sets(needles.rows),
            needles.rows_of(needle),
            self.column.sets(stored.rows),
            stored.rows_of(other),
        )
        if not self.weighted:
            found = pairs.overlapping(int(self.at_least), first)
        else:
            product, most = pairs.products(first)
            found = (product if self.hash_is_item else most) >= self.at_least
        if not self.hash_is_item:
            at = np.flatnonzero(found)
            if self.keys and len(at):
                rows = pairs.left_rows[at], pairs.right_rows[at]
                at = at[equal_at_rows(needles, stored, *rows, self.keys)]
            found = np.zeros(len(found), np.bool_)
            found[at] = self._proved(pairs.chosen(at))
        return found

    def _proved(self, pairs: SetPairs) -> Mask:
        """Hashes have said yes: whether the items do, too."""
        if not len(pairs):
            return np.zeros(0, np.bool_)
        found = self._holds(pairs) if self.weighted else np.ones(len(pairs), np.bool_)
        doubted = np.flatnonzero(~pairs.proved())
        if len(doubted):
            found[doubted] = self._holds(pairs.chosen(doubted).by_identity())
        return found

    def _holds(self, pairs: SetPairs) -> Mask:
        if not self.weighted:
            return pairs.overlapping(int(self.at_least))
        held: Mask = pairs.products()[0] >= self.at_least
        return held
