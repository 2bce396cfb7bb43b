"""How points are found on an instance: left ones in their cell, right ones in all within reach."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from skewless.engine.badrows import BAD_POINT, BAD_POSITION
from skewless.engine.columns import ITEMS, ROW_HASH
from skewless.kernels.distance import Globe
from skewless.kernels.near import Columns, NearCondition, coordinates
from skewless.kernels.ordering import HashArray, TimeArray
from skewless.kernels.runs import SortedRun, index_rows, sort_run
from skewless.operators.join.bounds import LEFT
from skewless.operators.join.postings import postings_here
from skewless.routing.route import Route

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class CellPostings:
    """Rows are found by the cells that they travel with."""

    condition: NearCondition
    route: Route
    keeps_row_hash: bool = False  # of right rows

    @property
    def flaw(self) -> str:
        return BAD_POSITION if isinstance(self.condition.metric, Globe) else BAD_POINT

    def needed(self, side: str) -> tuple[str, ...]:
        return self._columns(side)

    def _columns(self, side: str) -> Columns:
        return self.condition.left if side == LEFT else self.condition.right

    def prepared(self, rows: pa.RecordBatch, side: str) -> tuple[pa.RecordBatch, Mask | None]:
        """The rows, and which have a coordinate that no point has; a null is no flaw."""
        sound = np.ones(rows.num_rows, np.bool_)
        for name, most in zip(self._columns(side), self.condition.most, strict=True):
            sound &= np.abs(_without_nulls(rows.column(name))) <= most  # false for NaN
        return rows, None if sound.all() else ~sound

    def findable(self, rows: pa.RecordBatch) -> Mask:
        return np.ones(rows.num_rows, np.bool_)

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
        if not usable.all():
            chosen = pa.array(usable)
            rows, times, spread = rows.filter(chosen), times[usable], spread[usable]
        cells = rows.column(ITEMS)
        offsets, hashes = cells.offsets.to_numpy(), cells.flatten().to_numpy().view(np.uint64)
        row = np.repeat(np.arange(rows.num_rows), np.diff(offsets))
        stored = self._stored(rows, side, columns, spread)
        found = []
        for posting in postings_here(self.route, instance, side, hashes, spread[row]):
            if side == LEFT:
                # A left row has one cell, and is its own posting.
                run = sort_run(hashes, times, stored, (), posting, hash_is_key=True)
            else:
                at = row[posting]
                run = index_rows(hashes[posting], times[at], stored, at)
            found.append(run)
        return found[0], found[1]

    def _stored(
        self, rows: pa.RecordBatch, side: str, columns: list[str], spread: HashArray
    ) -> pa.RecordBatch:
        stored = rows.select(columns)
        metric = self.condition.metric
        derived = metric.derive(*coordinates(rows, self._columns(side))) if metric.derived else ()
        for name, column in zip(metric.derived, derived, strict=True):
            stored = stored.append_column(name, pa.array(column))
        if self.keeps_row_hash and side != LEFT:
            stored = stored.append_column(ROW_HASH, pa.array(spread))
        return stored


def _without_nulls(column: pa.Array) -> npt.NDArray[np.float64]:
    numbers: npt.NDArray[np.float64] = column.fill_null(0.0).to_numpy()
    return numbers
