"""Takes in the rows of one instance: counts what is late or bad, hands on the rest."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from skewless.engine.badrows import BAD_TIME, bad_time, times_and_bad
from skewless.engine.chunks import Limits
from skewless.engine.columns import HASH, SIDE, TIME
from skewless.engine.dropped import Dropped
from skewless.engine.intake import Taken, gather, without_control
from skewless.engine.moments import shown_time
from skewless.kernels.groups import Mask, without_negative_zero
from skewless.kernels.ordering import HashArray, TimeArray
from skewless.kernels.pieces import schema_for
from skewless.operators.keyed.layout import INPUT, Layout
from skewless.operators.keyed.lifetimes import Lifetimes


@dataclass(frozen=True)
class Rows:
    """Rows that can be worked with; event times in microseconds."""

    hashes: HashArray
    times: TimeArray
    columns: pa.RecordBatch  # the travelling columns

    def __len__(self) -> int:
        return len(self.hashes)


class Intake:
    """Counts over all the rows of one instance's batch."""

    def __init__(
        self,
        layout: Layout,
        lifetimes: Lifetimes,
        closed_us: int | None,
        dropped: Dropped,
        *,
        drop_bad_rows: bool,
        drop_null_keys: bool,
        reads_time: bool = True,
        limits: Limits | None = None,
    ) -> None:
        self._layout = layout
        self._lifetimes = lifetimes
        self._closed_us = closed_us  # windows that end here or before are closed; None: none is
        self._dropped = dropped
        self._drop_bad_rows = drop_bad_rows
        self._drop_null_keys = drop_null_keys
        self._reads_time = reads_time  # else an operator upstream tells how far time has come
        self._array_bytes = (limits or Limits()).array_bytes
        self.rows = 0
        self.late = 0
        self.null_keys = 0
        self.bad_rows = 0
        self.max_time_us: int | None = None

    def taken(self) -> Taken:
        """What has come in so far."""
        return Taken(
            rows={INPUT: self.rows},
            replicas={INPUT: 0},
            late={INPUT: self.late},
            null_keys={INPUT: self.null_keys},
            bad_rows={INPUT: self.bad_rows},
            max_time_us={INPUT: self.max_time_us},
        )

    def pieces(
        self, batches: Iterator[pa.RecordBatch], run_bytes: int
    ) -> Iterator[tuple[Rows, int | None, bool]]:
        """The input in pieces of about `run_bytes`: with the instance if the rows tell it, and
        whether the piece is the last."""
        for gathered, last in gather(batches, run_bytes, self._array_bytes):
            named = None
            if SIDE in gathered.schema.names:
                gathered, named = without_control(gathered)
            yield self._usable(gathered), named, last

    def _usable(self, batch: pa.RecordBatch) -> Rows:
        self.rows += batch.num_rows
        hashes = batch.column(HASH).to_numpy().view(np.uint64)
        columns = batch.select(self._layout.travelling.names)
        wanted = schema_for(columns.nbytes, self._layout.travelling, self._array_bytes)
        if not columns.schema.equals(wanted):
            # Another time zone of the session, large or small text offsets.
            columns = columns.cast(wanted)
        times, usable = self._times(columns)
        if self._reads_time and usable.any():
            newest = int(times[usable].max())
            seen = self.max_time_us
            self.max_time_us = newest if seen is None else max(newest, seen)
        late = self._late(times)
        if late is not None:
            late &= usable
            shown = self._layout.as_input(columns)
            self.late += self._dropped.take(INPUT, shown, late, self._late_reason)
            usable &= ~late
        if self._drop_null_keys:
            null = usable & self._any_null_key(columns)
            self.null_keys += int(null.sum())
            usable &= ~null
        if not usable.all():
            hashes, times = hashes[usable], times[usable]
            columns = columns.filter(pa.array(usable))
        return Rows(hashes, times, self._compared(columns))

    def _times(self, columns: pa.RecordBatch) -> tuple[TimeArray, Mask]:
        """Event times in microseconds, and which rows have one that can be used."""
        times, bad = times_and_bad(columns.column(TIME))
        if bad is None:
            return times, np.ones(len(times), np.bool_)
        self._refuse(columns, bad)
        return times, ~bad

    def _late(self, times: TimeArray) -> Mask | None:
        """Which rows are late; None where none is."""
        closed = self._closed_us
        # No row is late whose own time has not passed: that tells in most batches.
        if closed is None or not len(times) or int(times.min()) > closed:
            return None
        closing = self._lifetimes.closing_us(times)
        return None if closing is None else closing <= closed

    def _refuse(self, columns: pa.RecordBatch, bad: Mask) -> None:
        shown = self._layout.as_input(columns)
        if bad.any() and not self._drop_bad_rows:
            raise bad_time("the input", shown, bad)
        self.bad_rows += self._dropped.take(INPUT, shown, bad, f"bad row: {BAD_TIME}")

    @property
    def _late_reason(self) -> str:
        mark = shown_time(self._closed_us)
        if self._lifetimes.window is None:
            return f"late: its event time is not after the watermark, {mark}"
        return f"late: its window ends at or before the watermark, {mark}"

    def _any_null_key(self, columns: pa.RecordBatch) -> Mask:
        null = np.zeros(columns.num_rows, np.bool_)
        for key in self._layout.keys:
            if columns.column(key).null_count:
                null |= columns.column(key).is_null().to_numpy(zero_copy_only=False)
        return null

    def _compared(self, columns: pa.RecordBatch) -> pa.RecordBatch:
        """Keys in the form in which they are grouped and shown."""
        for key in self._layout.keys:
            column = columns.column(key)
            if pa.types.is_floating(column.type):
                place = columns.schema.get_field_index(key)
                columns = columns.set_column(place, key, without_negative_zero(column))
        return columns
