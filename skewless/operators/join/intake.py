"""Takes in the rows of one instance: counts what cannot match, sorts what can."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from skewless.engine.badrows import BAD_TIME, bad_row, times_and_bad
from skewless.engine.columns import HASH, LEFT_CODE, REPLICA, RIGHT_CODE, SIDE, TIME
from skewless.engine.dropped import Dropped
from skewless.engine.intake import Taken
from skewless.engine.moments import shown_time
from skewless.kernels.hashing import xxhash64
from skewless.kernels.runs import SortedRun, sort_run
from skewless.operators.join.bounds import LEFT, RIGHT, SIDES, late_until_us, merged_max
from skewless.operators.join.layout import Layout
from skewless.operators.join.pairing import OTHER
from skewless.operators.join.postings import Postings
from skewless.state.watermark import Delays

_CODE = {LEFT: LEFT_CODE, RIGHT: RIGHT_CODE}


class Thinned(Protocol):
    """Chooses the rows that are stored where there is no time for all."""

    def stored(
        self,
        side: str,
        rows: pa.RecordBatch,
        hashes: npt.NDArray[np.uint64],
        times: npt.NDArray[np.int64],
        usable: npt.NDArray[np.bool_],
    ) -> npt.NDArray[np.bool_]: ...
    def drop(self, side: str, rows: int) -> None: ...


@dataclass(frozen=True)
class Sorted:
    """The rows of a side that have come, sorted."""

    home: SortedRun
    replicas: SortedRun
    lone: SortedRun | None = None  # at home here, and of no use to a match; None: nobody asks


class Intake:
    """Counts per side over all the rows of one instance's batch."""

    def __init__(
        self,
        layout: Layout,
        delays: Delays,
        watermark_us: int | None,
        dropped: Dropped,
        *,
        drop_bad_rows: bool,
        postings: Postings | None = None,
        lone: Collection[str] = (),
    ) -> None:
        self._layout = layout
        self._delays = delays
        self._watermark_us = watermark_us
        self._dropped = dropped
        self._drop_bad_rows = drop_bad_rows
        self._postings = postings
        self._lone = lone  # the sides whose rows are given even if they can match nothing
        self.rows = dict.fromkeys(SIDES, 0)
        self.replicas = dict.fromkeys(SIDES, 0)
        self.late = dict.fromkeys(SIDES, 0)
        self.null_keys = dict.fromkeys(SIDES, 0)
        self.bad_rows = dict.fromkeys(SIDES, 0)
        self.max_time_us: dict[str, int | None] = dict.fromkeys(SIDES)

    def taken(self) -> Taken:
        """What has come in so far."""
        return Taken(
            self.rows,
            self.replicas,
            self.late,
            self.null_keys,
            self.bad_rows,
            self.max_time_us,
        )

    def sort(
        self,
        rows: pa.RecordBatch,
        side: str,
        instance: int = 0,
        thinned: Thinned | None = None,
    ) -> Sorted:
        """The rows of a side that can match, sorted: those at home here, and the replicas.

        Where rows have several postings, those at home here and those that only visit `instance`.
        A row is still counted where it is marked as at home. `thinned` says which rows are not
        even stored, where there is no time for all.
        """
        flawed = None
        if self._postings is not None:
            rows, flawed = self._postings.prepared(rows.filter(_of_side(rows, side)), side)
        codes = rows.column(SIDE).to_numpy()
        home = codes == _CODE[side]
        replica = codes == _CODE[side] + REPLICA
        self.rows[side] += int(home.sum())
        times, bad = times_and_bad(rows.column(TIME))
        usable = np.ones(len(times), np.bool_)
        if bad is not None:
            self._refuse(rows, side, home & bad, BAD_TIME)
            usable &= ~bad
        if flawed is not None:
            assert self._postings is not None, "only what it is compared by can be flawed"
            self._refuse(rows, side, home & usable & flawed, self._postings.flaw)
            usable &= ~flawed
        seen = home & usable
        if side not in self._delays.given and seen.any():
            newest = int(times[seen].max())
            self.max_time_us = merged_max(self.max_time_us, {side: newest, OTHER[side]: None})
        late_until = late_until_us(side, self._watermark_us, self._delays)
        if late_until is not None:
            late = usable & (times <= late_until)
            reason = f"late: its event time is not after the watermark, {shown_time(late_until)}"
            self.late[side] += self._dropped.take(
                side, self._layout.as_input(side, rows), home & late, reason
            )
            usable &= ~late
        on_time = home & usable
        needed = () if self._postings is None else self._postings.needed(side)
        for key in (*self._layout.key_columns, *needed):
            if rows.column(key).null_count:
                null = usable & _nulls(rows.column(key))
                self.null_keys[side] += int((home & null).sum())
                usable &= ~null
        hashes = self._hashes(rows)
        if thinned is not None:
            kept = thinned.stored(side, rows, hashes, times, usable & (home | replica))
            thinned.drop(side, int((home & usable & ~kept).sum()))
            usable = kept
        replica &= usable
        self.replicas[side] += int(replica.sum())
        lone = None
        if side in self._lone:
            found = usable if self._postings is None else usable & self._postings.findable(rows)
            lone = self._without_match(rows, side, times, on_time & ~found)
        if self._postings is not None:
            columns = list(self._layout.stored_columns(side))
            runs = self._postings.runs(instance, side, rows, columns, times, hashes, usable)
            return Sorted(*runs, lone)
        return Sorted(
            self._run(rows, side, hashes, times, home & usable),
            self._run(rows, side, hashes, times, replica),
            lone,
        )

    def _without_match(
        self,
        rows: pa.RecordBatch,
        side: str,
        times: npt.NDArray[np.int64],
        chosen: npt.NDArray[np.bool_],
    ) -> SortedRun:
        stored = rows.select(list(self._layout.stored_columns(side)))
        nowhere = np.zeros(len(times), np.uint64)
        return sort_run(nowhere, times, stored, (), np.flatnonzero(chosen), hash_is_key=True)

    def _run(
        self,
        rows: pa.RecordBatch,
        side: str,
        hashes: npt.NDArray[np.uint64],
        times: npt.NDArray[np.int64],
        chosen: npt.NDArray[np.bool_],
    ) -> SortedRun:
        return sort_run(
            hashes,
            times,
            rows.select(list(self._layout.stored_columns(side))),
            self._layout.key_columns,
            np.flatnonzero(chosen),
            self._layout.hash_is_key,
        )

    def _hashes(self, rows: pa.RecordBatch) -> npt.NDArray[np.uint64]:
        if not self._layout.hash_from_key:
            hashes: npt.NDArray[np.uint64] = rows.column(HASH).to_numpy().view(np.uint64)
            return hashes
        (key,) = (rows.column(k) for k in self._layout.key_columns)
        # Rows without a key are never chosen: any number will do for them.
        return xxhash64((key.fill_null(0) if key.null_count else key).to_numpy())

    def _refuse(
        self, rows: pa.RecordBatch, side: str, bad: npt.NDArray[np.bool_], why: str
    ) -> None:
        shown = self._layout.as_input(side, rows)
        if bad.any() and not self._drop_bad_rows:
            raise bad_row(f"the {side} input", why, shown, bad)
        self.bad_rows[side] += self._dropped.take(side, shown, bad, f"bad row: {why}")


def _of_side(rows: pa.RecordBatch, side: str) -> pa.Array:
    codes = rows.column(SIDE).to_numpy()
    return pa.array((codes == _CODE[side]) | (codes == _CODE[side] + REPLICA))


def _nulls(column: pa.Array) -> npt.NDArray[np.bool_]:
    mask: npt.NDArray[np.bool_] = column.is_null().to_numpy(zero_copy_only=False)
    return mask
