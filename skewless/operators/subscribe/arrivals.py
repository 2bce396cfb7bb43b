"""Takes in the rows of one instance: what is bad is counted, of the rest the last word counts."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from skewless.engine.badrows import BAD_TIME, bad_row, times_and_bad
from skewless.engine.columns import (
    ACTION,
    ADD,
    ORDER,
    REMOVE,
    RIGHT_CODE,
    SIDE,
    SNAPSHOT,
    TIME,
    UNKNOWN,
    X,
    Y,
)
from skewless.engine.dropped import Dropped
from skewless.engine.intake import Taken
from skewless.engine.moments import shown_time
from skewless.kernels.ordering import TimeArray
from skewless.kernels.rectangles import Boxes
from skewless.operators.subscribe.layout import POINTS, QUERIES, SIDES, Layout
from skewless.operators.subscribe.subscriptions import boxes_of
from skewless.operators.subscribe.window import PastWindow
from skewless.routing.cells import CellGrid, Numbers

Mask = npt.NDArray[np.bool_]
Reals = npt.NDArray[np.float64]
BAD_PLACE = "its place is NaN, infinite or outside the bounds"
BAD_ACTION = "its op is none of add, change, remove and snapshot"
BAD_ID = "its id is null"
NO_WINDOW = "its op is snapshot, but no window of past points is kept: say time= and window="


@dataclass(frozen=True)
class Points:
    """Points that can be worked with."""

    x: Reals
    y: Reals
    cells: Numbers
    times: TimeArray | None  # microseconds
    rows: pa.RecordBatch

    def __len__(self) -> int:
        return len(self.x)


@dataclass(frozen=True)
class Asked:
    """Past points that are asked for: where, and from when to when, both inclusive."""

    boxes: Boxes
    from_us: TimeArray
    until_us: TimeArray
    rows: pa.RecordBatch

    def __len__(self) -> int:
        return len(self.boxes)


@dataclass(frozen=True)
class Changes:
    """What a batch says of subscriptions, the last word on each of them."""

    rows: pa.RecordBatch  # those that begin, and those that end
    home: Mask  # which of them this instance stores
    begins: Mask
    asked: Asked | None


class Intake:
    """Counts per side over all the rows of one instance's batch."""

    def __init__(
        self,
        layout: Layout,
        grid: CellGrid,
        window: PastWindow | None,
        watermark_us: int | None,
        dropped: Dropped,
        *,
        drop_bad_rows: bool,
        reads_time: bool = True,
    ) -> None:
        self._layout = layout
        self._grid = grid
        self._window = window
        self._watermark_us = watermark_us
        self._dropped = dropped
        self._drop_bad_rows = drop_bad_rows
        self._reads_time = reads_time  # else an operator upstream tells how far time has come
        self._rows = dict.fromkeys(SIDES, 0)
        self._replicas = dict.fromkeys(SIDES, 0)
        self._late = dict.fromkeys(SIDES, 0)
        self._nulls = dict.fromkeys(SIDES, 0)
        self._bad = dict.fromkeys(SIDES, 0)
        self.max_time_us: int | None = None

    def taken(self) -> Taken:
        """What has come in so far."""
        return Taken(
            self._rows,
            self._replicas,
            self._late,
            self._nulls,
            self._bad,
            {POINTS: self.max_time_us, QUERIES: None},
        )

    def points(self, rows: pa.RecordBatch) -> Points:
        """The points among the rows that can be worked with."""
        self._rows[POINTS] += rows.num_rows
        places = [rows.column(name) for name in (X, Y)]
        null = np.zeros(rows.num_rows, np.bool_)
        for place in places:
            if place.null_count:
                null |= place.is_null().to_numpy(zero_copy_only=False)
        x, y = (place.to_numpy(zero_copy_only=place.null_count == 0) for place in places)
        x_min, y_min, x_max, y_max = self._grid.bounds
        inside = (x >= x_min) & (x <= x_max) & (y >= y_min) & (y <= y_max)
        bad = ~inside & ~null
        if bad.any():
            self._refuse(POINTS, rows, bad, BAD_PLACE)
        self._nulls[POINTS] += int(null.sum())
        usable = inside & ~null
        times = None
        if self._window is not None:
            times, bad_times = times_and_bad(rows.column(TIME))
            if bad_times is not None:
                self._refuse(POINTS, rows, usable & bad_times, BAD_TIME)
                usable &= ~bad_times
            if self._reads_time and usable.any():
                newest = int(times[usable].max())
                seen = self.max_time_us
                self.max_time_us = newest if seen is None else max(seen, newest)
        if not usable.all():
            rows = rows.filter(pa.array(usable))
            x, y = x[usable], y[usable]
            times = None if times is None else times[usable]
        return Points(x, y, self._grid.cells(x, y), times, rows)

    def changes(self, rows: pa.RecordBatch) -> Changes:
        """What the subscriptions among the rows say; `rows` are all that the batch has."""
        home = rows.column(SIDE).to_numpy() == RIGHT_CODE
        self._rows[QUERIES] += int(home.sum())
        self._replicas[QUERIES] += int((~home).sum())
        action = np.zeros(rows.num_rows, np.int8)
        usable = np.ones(rows.num_rows, np.bool_)
        if self._layout.changes:
            action = rows.column(ACTION).to_numpy()
            usable &= self._unless(rows, home, usable & (action == UNKNOWN), BAD_ACTION)
            null_ids = rows.column(self._layout.id).is_null().to_numpy(zero_copy_only=False)
            usable &= self._unless(rows, home, usable & null_ids & (action != SNAPSHOT), BAD_ID)
        boxes = boxes_of(rows)
        edges = np.array([boxes.x_min, boxes.y_min, boxes.x_max, boxes.y_max])
        proper = (boxes.x_min <= boxes.x_max) & (boxes.y_min <= boxes.y_max)
        flawed = np.isnan(edges).any(axis=0) | ~proper | self._layout.shape.flawed(rows)
        shape = self._layout.shape
        usable &= self._unless(rows, home, usable & flawed & (action != REMOVE), shape.bad)
        asked = None
        if self._layout.changes:
            wanted = usable & (action == SNAPSHOT)
            asked = self._asked(rows, home, wanted) if wanted.any() else None
            usable = self._last(rows, usable & (action != SNAPSHOT))
        at = np.flatnonzero(usable)
        kept = rows.select(list(self._layout.stored_queries)).take(pa.array(at))
        return Changes(kept, home[at], action[at] == ADD, asked)

    def _last(self, rows: pa.RecordBatch, usable: Mask) -> Mask:
        """The last row for each id, by time if there is one, then as the rows came."""
        at = np.flatnonzero(usable)
        if not len(at):
            return usable
        ids = rows.column(self._layout.id).take(pa.array(at))
        known = pc.dictionary_encode(ids).indices.to_numpy()
        order = rows.column(ORDER).to_numpy()[at]
        times = np.zeros(len(at), np.int64)
        if TIME in rows.schema.names:
            given = rows.column(TIME).take(pa.array(at))
            # Rows without a time come before those that have one.
            times = given.cast(pa.int64()).fill_null(-(2**63)).to_numpy()
        by_id = np.lexsort((order, times, known))
        last = np.append(known[by_id[1:]] != known[by_id[:-1]], True)
        chosen = np.zeros(rows.num_rows, np.bool_)
        chosen[at[by_id[last]]] = True
        return chosen

    def _asked(self, rows: pa.RecordBatch, home: Mask, wanted: Mask) -> Asked | None:
        """Queries of past points; late if some of what they ask for may be gone."""
        if self._window is None:
            self._unless(rows, home, wanted, NO_WINDOW)
            return None
        times, bad = times_and_bad(rows.column(TIME))
        if bad is not None:
            wanted = wanted & self._unless(rows, home, wanted & bad, BAD_TIME)
        if self._watermark_us is not None:
            late = wanted & (times < self._watermark_us)
            until = shown_time(self._watermark_us)
            reason = f"late: it asks for points as of a time before the watermark, {until}"
            shown = self._layout.as_input(QUERIES, rows)
            self._late[QUERIES] += self._dropped.take(QUERIES, shown, home & late, reason)
            wanted = wanted & ~late
        at = np.flatnonzero(wanted)
        if not len(at):
            return None
        until_us = times[at]
        from_us = self._window.starts(until_us)
        columns = rows.select(list(self._layout.stored_queries)).take(pa.array(at))
        return Asked(boxes_of(rows).among(at), from_us, until_us, columns)

    def _unless(self, rows: pa.RecordBatch, home: Mask, bad: Mask, why: str) -> Mask:
        """Drops bad subscriptions; which rows are left."""
        if bad.any():
            self._refuse(QUERIES, rows, bad, why, home)
        return ~bad

    def _refuse(
        self, side: str, rows: pa.RecordBatch, bad: Mask, why: str, home: Mask | None = None
    ) -> None:
        if not bad.any():
            return
        shown = self._layout.as_input(side, rows)
        if not self._drop_bad_rows:
            raise bad_row(f"the {side} input", why, shown, bad)
        counted = bad if home is None else bad & home
        self._bad[side] += self._dropped.take(side, shown, counted, f"bad row: {why}")
