"""What one instance does with its rows of one batch: look up, stream out matches, store, report."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from skewless.engine.chunks import Chunks, Limits
from skewless.engine.columns import (
    CONTROL_CODE,
    IDENTITY,
    INSTANCE,
    LEFT_CODE,
    SIDE,
    TIME,
    X,
    Y,
)
from skewless.engine.dropped import Dropped
from skewless.engine.intake import gather
from skewless.engine.ledger import Ledger, live
from skewless.engine.setting import Setting
from skewless.kernels.intervals import Pairs
from skewless.kernels.ordering import IndexArray
from skewless.kernels.pieces import cuts
from skewless.kernels.points import Parts, stretches
from skewless.kernels.rectangles import Extent, Needles
from skewless.kernels.runs import SortedRun, concatenate, sort_run
from skewless.kernels.runs import merged as merged_runs
from skewless.kernels.warmup import compile_rectangles
from skewless.kernels.widths import bytes_at
from skewless.load.corners import CornerCounts
from skewless.operators.subscribe.arrivals import Asked, Changes, Intake, Points
from skewless.operators.subscribe.layout import MARKS, POINTS, QUERIES, Layout
from skewless.operators.subscribe.marks import alive, marked, merged_marks, read_marks
from skewless.operators.subscribe.reading import open_subscriptions
from skewless.operators.subscribe.subscriptions import CellRanges, Mask, Subscriptions, merged
from skewless.operators.subscribe.window import PastWindow
from skewless.routing.tiles import TileRoute
from skewless.state.compaction import Merge, choose_merges
from skewless.state.segment import Segment, open_segment

# Queries of past points that are answered at a time.
_ASKED_AT_ONCE = 256


@dataclass(frozen=True)
class SubscribeTask:
    """Everything a task needs; the same for all instances of a batch, and picklable."""

    setting: Setting
    layout: Layout
    route: TileRoute
    window: PastWindow | None
    watermark_us: int | None
    reads_time: bool = True
    limits: Limits = field(default_factory=Limits)

    @property
    def id_column(self) -> str:
        """By which all instances hear of a subscription that changes, wherever it is."""
        return self.layout.id

    def run(
        self, instance: int | None, batches: Iterator[pa.RecordBatch]
    ) -> Iterator[pa.RecordBatch]:
        """Yields the matches of one instance, then writes its segments and its report.

        `instance` is None where only the rows can tell: then every row carries it.
        """
        yield from _Execution(self).run(instance, batches)


class _Execution:
    """One pass over one instance's rows."""

    def __init__(self, task: SubscribeTask) -> None:
        self._task = task
        self._layout = task.layout
        self._grid = task.route.grid
        compile_rectangles()
        setting = task.setting
        self._ledger = Ledger(setting.storage, setting.names, task.route.partitions)
        self._dropped = Dropped(setting.storage, setting.names, keep=setting.keep_dropped)
        self._intake = Intake(
            task.layout,
            self._grid,
            task.window,
            task.watermark_us,
            self._dropped,
            drop_bad_rows=setting.drop_bad_rows,
            reads_time=task.reads_time,
        )
        self._changes: Changes | None = None
        self._chunks = Chunks(task.limits)
        self._parts = Parts(self._grid.side, self._grid.bounds, self._grid.shift)
        self._compared = np.zeros(task.route.partitions, np.int64)
        self._begun: CornerCounts | None = None  # None: no subscription has begun
        self._gone: CornerCounts | None = None

    def run(
        self, instance: int | None, batches: Iterator[pa.RecordBatch]
    ) -> Iterator[pa.RecordBatch]:
        task = self._task
        waiting: list[pa.RecordBatch] = []  # points that wait for all subscriptions of the batch
        asking: list[pa.RecordBatch] = []
        holding: list[_Held] | None = None
        for rows, _ in gather(batches, task.limits.run_bytes):
            task.setting.faults.reach("in_task", task.setting.names.batch)
            if INSTANCE in rows.schema.names and instance is None:
                instance = int(rows.column(INSTANCE)[0].as_py())
            assert instance is not None, "every row names the instance where its task does not"
            present, queries = _by_side(rows)
            if self._may_bring_subscriptions:
                waiting += [present] if present.num_rows else []
                asking += [queries] if queries.num_rows else []
                continue
            holding = self._held(instance) if holding is None else holding
            points = self._intake.points(present)
            yield from self._match(points, holding)
            self._dropped.flush(instance)
        assert instance is not None, "an empty instance is told which one it is"
        yield from self._all(instance, waiting, asking)
        yield from self._chunks.flush()
        self._merge(instance)
        counts = {"begun": self._begun, "gone": self._gone}
        self._ledger.corners = {n: c.to_json() for n, c in counts.items() if c is not None}
        busy = np.flatnonzero(self._compared)
        self._ledger.count_matches(self._grid.hashes(busy), self._compared[busy])
        self._ledger.close(instance, self._intake.taken(), self._dropped)

    @property
    def _may_bring_subscriptions(self) -> bool:
        """A table is read in the first batch; a stream may bring some at any time."""
        return self._layout.changes or self._task.setting.names.batch == 0

    def _all(
        self, instance: int, waiting: list[pa.RecordBatch], asking: list[pa.RecordBatch]
    ) -> Iterator[pa.RecordBatch]:
        """Subscriptions first, because they hold from the batch in which they come."""
        changes = self._intake.changes(concatenate(asking)) if asking else None
        if not waiting and changes is None:
            return
        holding = self._held(instance)
        if changes is not None:
            holding = self._changed(instance, holding, changes)
        asked = None if changes is None else changes.asked
        for rows in waiting:
            points = self._intake.points(rows)
            yield from self._match(points, holding)
            yield from self._keep(instance, points, asked)
            self._dropped.flush(instance)
        if asked is not None:
            yield from self._recall(instance, asked)

    def _held(self, instance: int) -> list["_Held"]:
        """The stored subscriptions that may reach the cells of the instance."""
        route, segments = self._task.route, self._task.setting.segments
        reads = route.reads(instance)
        marks = self._marks(segments.meeting(MARKS, reads, route.partitions))
        return [
            self._opened(segment, marks)
            for segment in segments.meeting(QUERIES, reads, route.partitions)
        ]

    def _marks(self, segments: Iterable[Segment]) -> dict[str, IndexArray]:
        return read_marks(self._task.setting.storage, segments)

    def _opened(self, segment: Segment, marks: Mapping[str, IndexArray]) -> "_Held":
        held = open_subscriptions(self._task.setting.storage, self._grid, segment)
        return _Held(segment.name, held, alive(len(held), marks.get(segment.name)))

    def _changed(self, instance: int, holding: list["_Held"], changes: Changes) -> list["_Held"]:
        """What holds after the changes of this batch; stores them, too."""
        self._changes = changes
        changed = self._without_replaced(instance, holding, changes)
        begun = changes.rows.filter(pa.array(changes.begins))
        if not begun.num_rows:
            return changed
        version = self._task.setting.names.batch
        home = changes.home[changes.begins]
        stored = begun.filter(pa.array(home))
        if stored.num_rows:
            kept = Subscriptions.sorted(self._grid, stored, np.full(len(stored), version))
            self._ledger.store(instance, QUERIES, kept.run)
            self._begun = _counted(kept.ranges(np.arange(len(kept))), self._grid.side)
        current = Subscriptions.sorted(self._grid, begun, np.full(len(begun), version))
        return [*changed, _Held("", current, None)]

    def _without_replaced(
        self, instance: int, holding: list["_Held"], changes: Changes
    ) -> list["_Held"]:
        """The stored subscriptions without those that this batch replaces or ends.

        Several instances may read a segment: the owner of a subscription's first cell counts it,
        and marks it for the batches to come.
        """
        if not self._layout.changes or not changes.rows.num_rows:
            return holding
        left, marks, reached = [], {}, []
        for held in holding:
            gone = self._replaced(held.rows, changes)
            if held.alive is not None:
                gone = gone[held.alive[gone]]
            left.append(held.without(gone))
            owners = self._task.route.table.owners
            mine = gone[owners[held.rows.ranges(gone).first_cells(self._grid)] == instance]
            if len(mine):
                marks[held.name] = mine
                reached.append(held.rows.ranges(mine))
        if marks:
            ranges = CellRanges.joined(reached)
            self._gone = _counted(ranges, self._grid.side)
            batch = self._task.setting.names.batch
            self._ledger.store(instance, MARKS, marked(marks, ranges.covered(self._grid), batch))
        return left

    def _replaced(self, held: Subscriptions, changes: Changes) -> IndexArray:
        """The rows whose ids this batch says something of."""
        ids = changes.rows.column(self._layout.id)
        identities = changes.rows.column(IDENTITY).to_numpy()
        return held.known_as(identities, ids, self._layout.id)

    def _match(self, points: Points, holding: Sequence["_Held"]) -> Iterator[pa.RecordBatch]:
        """The subscriptions around each of the points."""
        if not len(points):
            return
        self._ledger.count_rows(POINTS, np.sort(self._grid.hashes(points.cells)))
        shape = self._layout.shape
        needles = Needles(Extent(*self._grid.bounds), points.x, points.y)
        for held in holding:
            search = held.rows.index.around(needles, held.alive)
            for found in search.portions(self._task.limits.chunk_rows):
                point, row = found.points, found.boxes
                if not shape.is_rectangle:
                    x, y = points.x[point], points.y[point]
                    inside = shape.holds(held.rows.rows, row, x, y, held.rows.shapes)
                    point, row = point[inside], row[inside]
                yield from self._give(points.rows, point, held.rows.rows, row)
            self._ledger.comparisons += int(search.compared.sum())
            self._compared += np.bincount(
                points.cells, search.compared, len(self._compared)
            ).astype(np.int64)

    def _keep(self, instance: int, points: Points, asked: Asked | None) -> Iterator[pa.RecordBatch]:
        """Stores points for those who will ask for past ones, and gives them to those who do."""
        window = self._task.window
        if window is None or not len(points):
            return
        past = self._past(points)
        if asked is not None:
            yield from self._inside(asked, past, np.ones(self._grid.count, np.bool_))
        keep_from = window.keep_from_us(self._task.watermark_us)
        self._ledger.store(instance, POINTS, live(past, keep_from))

    def _past(self, points: Points) -> SortedRun:
        """Points as they are kept, in the order of the map."""
        assert points.times is not None, "past points are asked for"
        hashes = self._parts.hashes(points.x, points.y)
        rows = points.rows.select(list(self._layout.stored_points))
        return sort_run(hashes, points.times, rows, (), hash_is_key=True)

    def _recall(self, instance: int, asked: Asked) -> Iterator[pa.RecordBatch]:
        """What stored points give. A cell has one owner, so each point is found once."""
        route = self._task.route
        owned = route.table.owners == instance
        mine = frozenset(np.flatnonzero(owned).tolist())
        first, last = int(asked.from_us.min()), int(asked.until_us.max())
        for segment in self._task.setting.segments.meeting(POINTS, mine, route.partitions):
            if segment.max_time_us >= first and segment.min_time_us <= last:
                run = open_segment(self._task.setting.storage, segment, TIME)
                yield from self._inside(asked, run, owned)

    def _inside(self, asked: Asked, run: SortedRun, owned: Mask) -> Iterator[pa.RecordBatch]:
        """The points of a run that are asked for, in slices: a query may cover every cell."""
        for begin in range(0, len(asked), _ASKED_AT_ONCE):
            part = asked.among(np.arange(begin, min(begin + _ASKED_AT_ONCE, len(asked))))
            yield from self._inside_some(part, run, owned)

    def _inside_some(self, asked: Asked, run: SortedRun, owned: Mask) -> Iterator[pa.RecordBatch]:
        boxes, shape = asked.boxes, self._layout.shape
        edges = (boxes.x_min, boxes.y_min, boxes.x_max, boxes.y_max)
        near = stretches(run.hashes, self._parts, edges, owned)
        x, y = run.rows.column(X).to_numpy(), run.rows.column(Y).to_numpy()
        pairs = Pairs(near.start, near.count, near.total)
        while pairs.remaining:
            stretch, point = pairs.take(self._task.limits.chunk_rows)
            query = near.rectangle[stretch]
            self._ledger.comparisons += len(query)
            at_x, at_y, at = x[point], y[point], run.times[point]
            inside = (at >= asked.from_us[query]) & (at <= asked.until_us[query])
            inside &= (at_x >= boxes.x_min[query]) & (at_x <= boxes.x_max[query])
            inside &= (at_y >= boxes.y_min[query]) & (at_y <= boxes.y_max[query])
            point, query = point[inside], query[inside]
            if not shape.is_rectangle and len(query):
                exact = shape.holds(asked.rows, query, x[point], y[point])
                point, query = point[exact], query[exact]
            yield from self._give(run.rows, point, asked.rows, query)

    def _give(
        self, points: pa.RecordBatch, point: IndexArray, queries: pa.RecordBatch, query: IndexArray
    ) -> Iterator[pa.RecordBatch]:
        """Pairs as rows of the result, in pieces that are not too large."""
        if not len(point):
            return
        self._ledger.matches += len(point)
        sides = {POINTS: points, QUERIES: queries}
        given = {side: self._given(side, rows) for side, rows in sides.items()}
        limit = self._task.limits.chunk_bytes
        upto = np.cumsum(bytes_at(given[POINTS], point) + bytes_at(given[QUERIES], query))
        for begin, end in cuts(upto, limit):
            index = {POINTS: pa.array(point[begin:end]), QUERIES: pa.array(query[begin:end])}
            batch = pa.RecordBatch.from_arrays(
                [sides[c.side].column(c.column).take(index[c.side]) for c in self._layout.output],
                names=[c.name for c in self._layout.output],
            )
            yield from self._chunks.add(batch)

    def _given(self, side: str, rows: pa.RecordBatch) -> list[pa.Array]:
        """The columns of a side that the result has."""
        return [rows.column(c.column) for c in self._layout.output if c.side == side]

    def _merge(self, instance: int) -> None:
        """Rewrites small segments, without the rows that nobody needs any more."""
        task = self._task
        mine = task.setting.segments.written_by(instance, task.route.instances)
        lasting = [s for s in mine if s.side != POINTS]
        merges = choose_merges(lasting, {QUERIES: None, MARKS: None}, None)
        if task.window is not None:
            keep = task.window.keep_from_us(task.watermark_us)
            points = [s for s in mine if s.side == POINTS]
            merges += choose_merges(points, {POINTS: keep}, task.window.size_us)
        self._ledger.merge(instance, merges, self._combined)

    def _combined(self, merge: Merge, runs: list[SortedRun]) -> SortedRun | None:
        if merge.side == POINTS:
            assert self._task.window is not None, "points are kept for a window"
            keep = self._task.window.keep_from_us(self._task.watermark_us)
            kept = [run for run in (live(run, keep) for run in runs) if len(run)]
            return merged_runs(kept, (), hash_is_key=True) if kept else None
        segments = list(self._task.setting.segments)
        if merge.side == MARKS:
            there = {segment.name for segment in segments if segment.side == QUERIES}
            return merged_marks(runs, merge.segments, there)
        marks = self._marks(segment for segment in segments if segment.side == MARKS)
        parts = []
        for segment in merge.segments:
            held = self._opened(segment, marks)
            if self._changes is not None and self._layout.changes:
                # Marks of this batch name the old segment: its rows must not come back in the new.
                held = held.without(self._replaced(held.rows, self._changes))
            parts.append(held.rows if held.alive is None else held.rows.kept(held.alive))
        result = merged(self._grid, parts)
        return None if result is None else result.run


@dataclass(frozen=True)
class _Held:
    """Subscriptions of a segment, or of this batch, and which of them hold; None: all do."""

    name: str
    rows: Subscriptions
    alive: Mask | None

    def without(self, gone: IndexArray) -> "_Held":
        if not len(gone):
            return self
        left = np.ones(len(self.rows), np.bool_) if self.alive is None else self.alive.copy()
        left[gone] = False
        return _Held(self.name, self.rows, left)


def _by_side(rows: pa.RecordBatch) -> tuple[pa.RecordBatch, pa.RecordBatch]:
    """Points and subscriptions, without the control row."""
    if SIDE not in rows.schema.names:
        return rows, rows.slice(0, 0)
    codes = rows.column(SIDE).fill_null(LEFT_CODE).to_numpy()
    is_point = codes == LEFT_CODE
    if is_point.all():
        return rows, rows.slice(0, 0)
    is_query = ~is_point & (codes != CONTROL_CODE)
    return rows.filter(pa.array(is_point)), rows.filter(pa.array(is_query))


def _counted(ranges: CellRanges, side: int) -> CornerCounts:
    return CornerCounts.of(side, ranges.top, ranges.left, ranges.bottom, ranges.right)
