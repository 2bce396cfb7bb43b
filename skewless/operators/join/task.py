"""What one instance does with its rows of one batch: probe, stream out pairs, store, report."""

import time
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from skewless.engine.chunks import Chunks, Limits
from skewless.engine.columns import TIME
from skewless.engine.dropped import Dropped
from skewless.engine.intake import gather, without_control
from skewless.kernels.equijoin import Probe, probe
from skewless.kernels.runs import SortedRun, concatenate, sort_run
from skewless.kernels.warmup import compile_kernels
from skewless.load.counts import TaskCounts
from skewless.load.heavy import STANDING_OUT, Detail
from skewless.load.memory import peak_memory_bytes
from skewless.load.report import Report, write_report
from skewless.operators.join.bounds import LEFT, SIDES, Bounds, merged_max
from skewless.operators.join.intake import OTHER, Intake
from skewless.operators.join.layout import Layout
from skewless.routing.route import Route
from skewless.state.compaction import choose_merges
from skewless.state.faults import Faults
from skewless.state.manifest import Segments
from skewless.state.naming import BatchNames
from skewless.state.segment import Segment, open_segment, write_segment
from skewless.state.storage import Storage
from skewless.state.watermark import Delays


@dataclass(frozen=True)
class JoinTask:
    """Everything a task needs; the same for all instances of a batch, and picklable."""

    storage: Storage
    names: BatchNames
    layout: Layout
    bounds: Bounds
    delays: Delays
    route: Route
    watermark_us: int | None
    max_time_us: dict[str, int | None]
    segments: Segments
    drop_bad_rows: bool
    keep_dropped: bool = False
    detail: Detail = STANDING_OUT
    faults: Faults = field(default_factory=Faults)
    limits: Limits = field(default_factory=Limits)

    def run(
        self, instance: int | None, batches: Iterator[pa.RecordBatch]
    ) -> Iterator[pa.RecordBatch]:
        """Yields the pairs of one instance, then writes its segments and its report.

        `instance` is None where only the rows can tell: then every row carries it.
        """
        yield from _Execution(self).run(instance, batches)


@dataclass(frozen=True)
class _Arrived:
    """The sorted rows of one piece of the batch."""

    home: dict[str, SortedRun]
    replicas: dict[str, SortedRun]


class _Execution:
    """One pass over one instance's rows."""

    def __init__(self, task: JoinTask) -> None:
        self._task = task
        compile_kernels()
        self._wall = time.perf_counter()
        self._cpu = time.process_time()
        # The order of arrival decides how rows of equal time lie, and how a large input falls into
        # pieces: a report must name only files that its own run has written.
        self._nonce = uuid.uuid4().hex[:8]
        self._dropped = Dropped(task.storage, task.names, keep=task.keep_dropped)
        self._intake = Intake(
            task.layout,
            task.delays,
            task.watermark_us,
            self._dropped,
            drop_bad_rows=task.drop_bad_rows,
        )
        self._matches = 0
        self._counts = TaskCounts(task.route.partitions, task.detail)
        self._written: list[Segment] = []
        self._stored: dict[str, list[Segment]] = {}
        self._earlier_replicas: dict[str, list[SortedRun]] = {side: [] for side in SIDES}
        self._chunks = Chunks(task.limits)

    def run(
        self, instance: int | None, batches: Iterator[pa.RecordBatch]
    ) -> Iterator[pa.RecordBatch]:
        task = self._task
        for part, (rows, last) in enumerate(gather(batches, task.limits.run_bytes)):
            task.faults.reach("in_task", task.names.batch)
            rows, named = without_control(rows)
            instance = named if instance is None else instance
            assert instance is not None, "every row names the instance where its task does not"
            sorted_runs = {side: self._intake.sort(rows, side) for side in SIDES}
            del rows
            self._dropped.flush(instance)
            arrived = _Arrived(
                {side: runs[0] for side, runs in sorted_runs.items()},
                {side: runs[1] for side, runs in sorted_runs.items()},
            )
            yield from self._join(instance, arrived)
            for side in SIDES:
                # Rows of a later piece of this batch may still meet every row of this one.
                home = arrived.home[side]
                kept = self._still_needed(home, side) if last else home
                self._store(instance, side, kept, f"{self._nonce}-{part:04d}")
                self._earlier_replicas[side].append(arrived.replicas[side])
        assert instance is not None, "an empty instance is told which one it is"
        yield from self._chunks.flush()
        self._dropped.close(instance)
        replaced = self._merge(instance)
        write_report(task.storage, task.names.report(instance), self._report(instance, replaced))

    def _join(self, instance: int, arrived: _Arrived) -> Iterator[pa.RecordBatch]:
        """Every pair that is this instance's to find, once.

        A row at home meets the stored rows of the other side, and the rows of this batch that are
        here, at home or as replicas. A replica meets the rows at home here, which it may not find
        on its own instance; two replicas meet only where a router says that they meet nowhere else.
        """
        for side in SIDES:
            other = OTHER[side]
            run = arrived.home[side]
            if len(run):
                self._counts.add_rows(side, run.hashes)
                old = self._opened(instance, other, run, self._readable(instance, other))
                new = self._opened(instance, other, run, self._written)
                for stored in (*old, *new, *self._earlier_replicas[other]):
                    yield from self._emit(side, run, stored)
                yield from self._emit(side, run, arrived.replicas[other])
                if side == LEFT:
                    yield from self._emit(side, run, arrived.home[other])
            replicas = arrived.replicas[side]
            if len(replicas):
                for stored in self._opened(instance, other, replicas, self._written):
                    yield from self._emit(side, replicas, stored)
                if self._task.route.replicas_meet:
                    if side == LEFT:
                        yield from self._emit(side, replicas, arrived.replicas[other])
                    for stored in self._earlier_replicas[other]:
                        yield from self._emit(side, replicas, stored)

    def _opened(
        self, instance: int, side: str, needles: SortedRun, segments: Sequence[Segment]
    ) -> Iterator[SortedRun]:
        """Those of the segments of a side that these needles may meet."""
        task = self._task
        lower, upper = task.bounds.around(OTHER[side])
        earliest = int(needles.times.min()) + lower
        latest = int(needles.times.max()) + upper
        for segment in tuple(segments):
            if segment.side != side or segment.max_time_us < earliest:
                continue
            if segment.min_time_us <= latest:
                yield open_segment(task.storage, segment, TIME)

    def _readable(self, instance: int, side: str) -> list[Segment]:
        """The stored segments of a side that may have rows of the instance's partitions."""
        if side not in self._stored:
            route = self._task.route
            partitions = route.reads(instance)
            self._stored[side] = self._task.segments.meeting(side, partitions, route.partitions)
        return self._stored[side]

    def _emit(self, side: str, needles: SortedRun, stored: SortedRun) -> Iterator[pa.RecordBatch]:
        if not len(stored):
            return
        layout = self._task.layout
        lower, upper = self._task.bounds.around(side)
        found = probe(needles, stored, lower, upper, layout.key_columns, layout.hash_is_key)
        if not found.total:
            return
        hit = np.flatnonzero(found.count)
        self._counts.add_matches(found.needles.hashes[hit], found.count[hit])
        for needle, other in self._chunks.portions(found, layout.key_columns):
            self._matches += len(needle)
            yield from self._chunks.add(self._pair(side, found, needle, other))

    def _pair(
        self,
        side: str,
        found: Probe,
        needle: npt.NDArray[np.int64],
        other: npt.NDArray[np.int64],
    ) -> pa.RecordBatch:
        index = {side: pa.array(needle), OTHER[side]: pa.array(other)}
        rows = {side: found.needles.rows, OTHER[side]: found.stored.rows}
        return pa.RecordBatch.from_arrays(
            [rows[c.side].column(c.column).take(index[c.side]) for c in self._task.layout.output],
            names=[c.name for c in self._task.layout.output],
        )

    def _still_needed(self, run: SortedRun, side: str) -> SortedRun:
        """Leaves out rows that this task already knows no later batch can match.

        The watermark after this batch is at least what this task alone has seen, so dropping by
        it is safe; with long batches and short bounds it drops nearly everything.
        """
        task = self._task
        seen = merged_max(task.max_time_us, self._intake.max_time_us)
        watermark = task.delays.watermark(seen, task.watermark_us)
        return _newer(run, task.bounds.keep_from_us(watermark, task.delays)[side])

    def _store(self, instance: int, side: str, run: SortedRun, part: str) -> None:
        if not len(run):
            return
        task = self._task
        self._written.append(
            write_segment(
                task.storage,
                task.names.segment(instance, side, part),
                run,
                side=side,
                instance=instance,
                level=0,
                batches=(task.names.batch, task.names.batch),
                partitions=task.route.partitions,
            )
        )

    def _merge(self, instance: int) -> list[str]:
        """Does this instance's merges; gives the names of the segments merged away."""
        task = self._task
        keep = task.bounds.keep_from_us(task.watermark_us, task.delays)
        replaced: list[str] = []
        mine = task.segments.written_by(instance, task.route.instances)
        merges = choose_merges(mine, keep, task.bounds.window_us(task.delays))
        for number, merge in enumerate(merges):
            opened = [open_segment(task.storage, s, TIME) for s in merge.segments]
            runs = [_newer(run, keep[merge.side]) for run in opened]
            runs = [run for run in runs if len(run)]
            replaced += [s.name for s in merge.segments]
            if not runs:
                continue
            merged = sort_run(
                np.concatenate([run.hashes for run in runs]),
                np.concatenate([run.times for run in runs]),
                concatenate([run.rows for run in runs]),
                task.layout.key_columns,
                hash_is_key=task.layout.hash_is_key,
            )
            self._written.append(
                write_segment(
                    task.storage,
                    task.names.segment(instance, merge.side, f"{self._nonce}-m{number:03d}"),
                    merged,
                    side=merge.side,
                    instance=merge.instance,
                    level=1 + max(s.level for s in merge.segments),
                    batches=(
                        min(s.first_batch for s in merge.segments),
                        max(s.last_batch for s in merge.segments),
                    ),
                    partitions=task.route.partitions,
                )
            )
        return replaced

    def _report(self, instance: int, replaced: list[str]) -> Report:
        intake = self._intake
        return Report(
            instance=instance,
            rows=intake.rows,
            replicas=intake.replicas,
            late=intake.late,
            null_keys=intake.null_keys,
            bad_rows=intake.bad_rows,
            max_time_us=intake.max_time_us,
            matches=self._matches,
            cpu_ms=1e3 * (time.process_time() - self._cpu),
            wall_ms=1e3 * (time.perf_counter() - self._wall),
            peak_memory_bytes=peak_memory_bytes(),
            segments=self._written,
            replaced=replaced,
            partitions=self._counts.partitions(),
            hot_keys=self._counts.hot_keys(),
            dropped=self._dropped.samples,
            dropped_files=self._dropped.files,
        )


def _newer(run: SortedRun, keep_from_us: int | None) -> SortedRun:
    if keep_from_us is None or not len(run):
        return run
    keep = run.times >= keep_from_us
    if keep.all():
        return run
    return SortedRun(
        run.hashes[keep], run.times[keep], run.rows.filter(pa.array(keep)), run.mixed_keys
    )
