"""What one instance does with its rows of one batch: look up, stream out matches, store, report."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
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
from skewless.kernels.runs import SortedRun, concatenate, sort_run
from skewless.kernels.runs import merged as merged_runs
from skewless.kernels.warmup import compile_rectangles
from skewless.kernels.widths import bytes_at
from skewless.load.corners import CornerCounts
from skewless.operators.subscribe.arrivals import Asked, Changes, Intake, Points
from skewless.operators.subscribe.layout import POINTS, QUERIES, Layout
from skewless.operators.subscribe.liveness import Liveness
from skewless.operators.subscribe.subscriptions import (
    CellRanges,
    Mask,
    Subscriptions,
    ended_rows,
    merged,
)
from skewless.operators.subscribe.window import PastWindow
from skewless.routing.tiles import TileRoute
from skewless.state.compaction import Merge, choose_merges
from skewless.state.segment import open_segment


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
        others = [s for s in setting.segments if s.side == QUERIES] if task.layout.changes else []
        self._liveness = Liveness(setting.storage, self._grid, task.layout.id, others)
        self._chunks = Chunks(task.limits)
        self._parts = Parts(self._grid.side, self._grid.bounds, self._grid.shift)
        self._compared = np.zeros(task.route.partitions, np.int64)
        self._begun = CornerCounts.empty(self._grid.side)
        self._gone = CornerCounts.empty(self._grid.side)

    def run(
        self, instance: int | None, batches: Iterator[pa.RecordBatch]
    ) -> Iterator[pa.RecordBatch]:
        task = self._task
        waiting: list[pa.RecordBatch] = []  # points that wait for all subscriptions of the batch
        asking: list[pa.RecordBatch] = []
        holding: list[tuple[Subscriptions, Mask | None]] | None = None
        for rows, _ in gather(batches, task.limits.run_bytes):
            task.setting.faults.reach("in_task", task.setting.names.batch)
            if INSTANCE in rows.schema.names and instance is None:
                instance = int(rows.column(INSTANCE)[0].as_py())
            assert instance is not None, "every row names the instance where its task does not"
            if SIDE not in rows.schema.names:
                holding = self._held(instance) if holding is None else holding
                points = self._intake.points(rows)
                yield from self._match(points, holding)
                yield from self._keep(instance, points, None)
                self._dropped.flush(instance)
                continue
            present, queries = _by_side(rows)
            waiting += [present] if present.num_rows else []
            asking += [queries] if queries.num_rows else []
        assert instance is not None, "an empty instance is told which one it is"
        yield from self._all(instance, waiting, asking)
        yield from self._chunks.flush()
        self._merge(instance)
        self._ledger.corners = {"begun": self._begun.to_json(), "gone": self._gone.to_json()}
        busy = np.flatnonzero(self._compared)
        self._ledger.count_matches(self._grid.hashes(busy), self._compared[busy])
        self._ledger.close(instance, self._intake.taken(), self._dropped)

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

    def _held(self, instance: int) -> list[tuple[Subscriptions, Mask | None]]:
        """The stored subscriptions that may reach the cells of the instance."""
        route = self._task.route
        reads = route.reads(instance)
        found = self._task.setting.segments.meeting(QUERIES, reads, route.partitions)
        return [self._liveness.opened(segment) for segment in found]

    def _changed(
        self, instance: int, holding: list[tuple[Subscriptions, Mask | None]], changes: Changes
    ) -> list[tuple[Subscriptions, Mask | None]]:
        """What holds after the changes of this batch, which are stored by the way."""
        changed = holding
        if self._layout.changes and changes.rows.num_rows:
            changed = [
                (held, self._without(instance, held, alive, changes)) for held, alive in holding
            ]
        version = self._task.setting.names.batch
        new = np.full(changes.rows.num_rows, version, np.int64)
        stored = changes.rows.filter(pa.array(changes.home))
        if stored.num_rows:
            kept = Subscriptions.sorted(self._grid, stored, new[changes.home])
            self._ledger.store(instance, QUERIES, kept.run)
        begun = changes.rows.filter(pa.array(changes.begins))
        if not begun.num_rows:
            return changed
        current = Subscriptions.sorted(self._grid, begun, new[changes.begins])
        mine = changes.rows.filter(pa.array(changes.begins & changes.home))
        self._begun = _corners(Subscriptions.sorted(self._grid, mine, new[: mine.num_rows]))
        return [*changed, (current, None)]

    def _without(
        self, instance: int, held: Subscriptions, alive: Mask | None, changes: Changes
    ) -> Mask | None:
        """Which stored subscriptions hold beside those that this batch replaces or ends."""
        ids = changes.rows.column(self._layout.id)
        identities = changes.rows.column(IDENTITY).to_numpy()
        gone, _ = held.known_as(identities, ids, self._layout.id)
        if alive is not None:
            gone = gone[alive[gone]]
        if not len(gone):
            return alive
        # Several instances may read this segment: the owner of the first cell counts.
        ranges = held.ranges(gone)
        owners = self._task.route.table.owners[ranges.first_cells(self._grid)]
        self._gone += _counted(ranges, owners == instance, self._grid.side)
        left = np.ones(len(held), np.bool_) if alive is None else alive.copy()
        left[gone] = False
        return left

    def _match(
        self, points: Points, holding: Sequence[tuple[Subscriptions, Mask | None]]
    ) -> Iterator[pa.RecordBatch]:
        """The subscriptions around each of the points."""
        if not len(points):
            return
        self._ledger.count_rows(POINTS, np.sort(self._grid.hashes(points.cells)))
        shape = self._layout.shape
        for held, alive in holding:
            search = held.index.around(points.x, points.y, alive)
            for found in search.portions(self._task.limits.chunk_rows):
                point, row = found.points, found.boxes
                if not shape.is_rectangle:
                    inside = shape.holds(held.rows, row, points.x[point], points.y[point])
                    point, row = point[inside], row[inside]
                yield from self._give(points.rows, point, held.rows, row)
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
        """The points of a run that are asked for."""
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
        queries = [s for s in mine if s.side == QUERIES]
        merges = choose_merges(queries, {QUERIES: None}, None)
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
        names = [segment.name for segment in merge.segments]
        oldest = self._task.setting.segments.oldest_batch(QUERIES, names)
        parts = []
        for segment in merge.segments:
            held, alive = self._liveness.opened(segment)
            if alive is not None:
                # What ends a subscription is needed as long as an older segment may have it.
                needed = ended_rows(held.rows)
                needed &= oldest is not None and held.run.times > oldest
                held = held.kept(alive | needed)
            parts.append(held)
        result = merged(self._grid, parts)
        return None if result is None else result.run


def _by_side(rows: pa.RecordBatch) -> tuple[pa.RecordBatch, pa.RecordBatch]:
    """Points and subscriptions, without the control row."""
    codes = rows.column(SIDE).fill_null(LEFT_CODE).to_numpy()
    is_point = codes == LEFT_CODE
    is_query = ~is_point & (codes != CONTROL_CODE)
    return rows.filter(pa.array(is_point)), rows.filter(pa.array(is_query))


def _corners(subscriptions: Subscriptions) -> CornerCounts:
    ranges = subscriptions.ranges(np.ones(len(subscriptions), np.bool_))
    everything = np.ones(len(subscriptions), np.bool_)
    return _counted(ranges, everything, subscriptions.grid.side)


def _counted(ranges: CellRanges, chosen: npt.NDArray[np.bool_], side: int) -> CornerCounts:
    return CornerCounts.of(
        side,
        ranges.top[chosen],
        ranges.left[chosen],
        ranges.bottom[chosen],
        ranges.right[chosen],
    )
