"""How rows are found that have several hashes, and which of these an instance has."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from skewless.engine.badrows import BAD_WEIGHT
from skewless.engine.columns import ITEM, ITEM_HASH, ITEMS, SIGNATURE, WEIGHT
from skewless.kernels.conditions import SetColumn, SetCondition
from skewless.kernels.ordering import HashArray, IndexArray, TimeArray
from skewless.kernels.runs import SortedRun, index_rows
from skewless.kernels.sets import ItemSets, added_up, signatures_of
from skewless.operators.join.bounds import LEFT
from skewless.routing.route import Route

Mask = npt.NDArray[np.bool_]
SETS = SetColumn(ITEMS, ITEM_HASH, WEIGHT, ITEM, SIGNATURE)


class Postings(Protocol):
    """How the rows of a join with a condition are found on one instance."""

    @property
    def flaw(self) -> str:
        """What is wrong with a row that `prepared` finds flawed."""
        ...

    def needed(self, side: str) -> tuple[str, ...]:
        """The columns without which a row of a side matches nothing."""
        ...

    def prepared(self, rows: pa.RecordBatch, side: str) -> tuple[pa.RecordBatch, Mask | None]:
        """Rows of a side as they are compared, and which are flawed; None: none is."""
        ...

    def findable(self, rows: pa.RecordBatch) -> Mask:
        """Which rows have a posting, if what they need is there."""
        ...

    def runs(
        self,
        instance: int,
        side: str,
        rows: pa.RecordBatch,
        columns: list[str],
        times: TimeArray,
        spread: HashArray,
        usable: Mask,
    ) -> tuple[SortedRun, SortedRun]:
        """The postings that are at home on the instance, and those that only visit it."""
        ...


@dataclass(frozen=True)
class SetPostings:
    """Rows are found by the items of their sets."""

    condition: SetCondition
    route: Route
    flaw: str = BAD_WEIGHT

    def needed(self, side: str) -> tuple[str, ...]:
        return (ITEMS,)

    def prepared(self, rows: pa.RecordBatch, side: str) -> tuple[pa.RecordBatch, Mask | None]:
        """Rows whose sets have every item once, and which have a bad weight; None: none has."""
        if not self.condition.weighted:
            return rows, None
        sets = SETS.sets(rows)
        summed = added_up(sets)
        if summed is not None:
            sets = summed
            place = rows.schema.get_field_index(ITEMS)
            rows = rows.set_column(place, ITEMS, _column(summed, rows.column(ITEMS)))
        assert sets.weights is not None, "weighted sets have weights"
        begin, end = int(sets.offsets[0]), int(sets.offsets[-1])
        flawed = ~np.isfinite(sets.weights[begin:end])
        if not flawed.any():
            return rows, None
        bad = np.zeros(rows.num_rows, np.bool_)
        bad[sets.owners[flawed]] = True
        return rows, bad

    def findable(self, rows: pa.RecordBatch) -> Mask:
        return SETS.sets(rows).sizes >= self.condition.indexed_for

    def runs(
        self,
        instance: int,
        side: str,
        rows: pa.RecordBatch,
        columns: list[str],
        times: TimeArray,
        spread: HashArray,
        usable: Mask,
    ) -> tuple[SortedRun, SortedRun]:
        sets = SETS.sets(rows)
        row, hashes = sets.postings(self.condition.indexed_for)
        if not usable.all():
            row, hashes = row[usable[row]], hashes[usable[row]]
        stored = rows.select(columns)
        if not self.condition.weighted:
            stored = stored.append_column(SIGNATURE, pa.array(signatures_of(sets)))
        found = []
        for posting in postings_here(self.route, instance, side, hashes, spread[row]):
            at = row[posting]
            found.append(index_rows(hashes[posting], times[at], stored, at))
        return found[0], found[1]


def postings_here(
    route: Route, instance: int, side: str, hashes: HashArray, spread: HashArray
) -> tuple[IndexArray, IndexArray]:
    """Which of these postings are at home on an instance, and which only visit it."""
    visits = route.visits("left" if side == LEFT else "right", hashes, spread)
    here = visits.instance == instance
    return visits.row[here & visits.home], visits.row[here & ~visits.home]


def _column(sets: ItemSets, like: pa.Array) -> pa.Array:
    """Sets as a column of the same type as another one, null where that is."""
    kind = like.type
    parts = {
        ITEM_HASH: pa.array(sets.hashes),
        WEIGHT: pa.array(sets.weights),
        ITEM: sets.items,
    }
    fields = [kind.value_type.field(i) for i in range(kind.value_type.num_fields)]
    values = pa.StructArray.from_arrays([parts[f.name] for f in fields], fields=fields)
    made = pa.LargeListArray if pa.types.is_large_list(kind) else pa.ListArray
    mask = like.is_null() if like.null_count else None
    return made.from_arrays(pa.array(sets.offsets), values, type=kind, mask=mask)
