"""What one instance does with its rows of one batch: probe, stream out pairs, store, report."""

import resource
import sys
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from skewless.errors import SkewlessError
from skewless.kernels.equijoin import Probe, probe
from skewless.kernels.intervals import MAX_TIME
from skewless.kernels.runs import SortedRun, concatenate, sort_run
from skewless.load.report import PartitionLoads, Report, write_report
from skewless.operators.join.bounds import LEFT, RIGHT, SIDES, Bounds, is_late, merged_max
from skewless.operators.join.layout import CONTROL_CODE, HASH, LEFT_CODE, SIDE, TIME, Layout
from skewless.routing.partitions import PartitionTable, partition_of
from skewless.state.compaction import Merge
from skewless.state.faults import Faults
from skewless.state.naming import BatchNames
from skewless.state.segment import Segment, open_segment, times_us, write_segment
from skewless.state.storage import Storage
from skewless.state.watermark import Delays

OTHER = {LEFT: RIGHT, RIGHT: LEFT}


class BadRowError(SkewlessError):
    """A row that cannot be joined, while the option badRows says "fail"."""


@dataclass(frozen=True)
class Limits:
    """How much a task holds at once."""

    run_bytes: int = 256 * 2**20  # input sorted at a time; more input becomes several runs
    chunk_bytes: int = 4 * 2**20  # joined pairs handed over at a time
    chunk_rows: int = 65_536


@dataclass(frozen=True)
class JoinTask:
    """Everything a task needs; the same for all instances of a batch, and picklable."""

    storage: Storage
    names: BatchNames
    layout: Layout
    bounds: Bounds
    delays: Delays
    table: PartitionTable
    watermark_us: int | None
    max_time_us: dict[str, int | None]
    segments: tuple[Segment, ...]
    merges: tuple[Merge, ...]
    drop_bad_rows: bool
    faults: Faults = field(default_factory=Faults)
    limits: Limits = field(default_factory=Limits)

    def run(
        self, instance: int | None, batches: Iterator[pa.RecordBatch]
    ) -> Iterator[pa.RecordBatch]:
        """Yields the pairs of one instance, then writes its segments and its report.

        `instance` is None where only the rows can tell: then a control row carries it.
        """
        yield from _Execution(self).run(instance, batches)


class _Execution:
    """One pass over one instance's rows."""

    def __init__(self, task: JoinTask) -> None:
        self._task = task
        self._wall = time.perf_counter()
        self._cpu = time.process_time()
        self._rows = dict.fromkeys(SIDES, 0)
        self._late = dict.fromkeys(SIDES, 0)
        self._null_keys = dict.fromkeys(SIDES, 0)
        self._bad_rows = dict.fromkeys(SIDES, 0)
        self._max_time: dict[str, int | None] = dict.fromkeys(SIDES)
        self._nonce = uuid.uuid4().hex[:8]
        self._matches = 0
        self._partition_rows = np.zeros(task.table.partitions, np.int64)
        self._partition_matches = np.zeros(task.table.partitions, np.int64)
        self._written: list[Segment] = []
        self._chunks = _Chunks(task.limits)

    def run(
        self, instance: int | None, batches: Iterator[pa.RecordBatch]
    ) -> Iterator[pa.RecordBatch]:
        task = self._task
        for part, (rows, last) in enumerate(_gather(batches, task.limits.run_bytes)):
            task.faults.reach("in_task", task.names.batch)
            rows, instance = _without_control(rows, instance, task.table)
            runs = {side: self._sorted(rows, side) for side in SIDES}
            del rows
            yield from self._join(instance, runs)
            for side in SIDES:
                # Rows of a later run of this batch may still meet every row of this one.
                kept = self._still_needed(runs[side], side) if last else runs[side]
                # How a large input falls into parts depends on its order of arrival: two attempts
                # at one task must not mix theirs.
                name = "all" if last and part == 0 else f"{self._nonce}-{part:04d}"
                self._store(instance, side, kept, name)
        assert instance is not None, "an empty instance is told which one it is"
        yield from self._chunks.flush()
        replaced = self._merge(instance)
        write_report(task.storage, task.names.report(instance), self._report(instance, replaced))

    def _sorted(self, rows: pa.RecordBatch, side: str) -> SortedRun:
        """The rows of one side that can match, sorted; all others are counted."""
        task = self._task
        mine = rows.column(SIDE).to_numpy() == (LEFT_CODE if side == LEFT else 1 - LEFT_CODE)
        self._rows[side] += int(mine.sum())
        times, bad = _times_and_bad(rows.column(TIME))
        if bad is not None:
            self._refuse(rows, side, mine & bad)
            mine &= ~bad
        if mine.any():
            newest = int(times[mine].max())
            self._max_time = merged_max(self._max_time, {side: newest, OTHER[side]: None})
        late_until = is_late(side, task.watermark_us, task.delays)
        if late_until is not None:
            late = mine & (times <= late_until)
            self._late[side] += int(late.sum())
            mine &= ~late
        for key in task.layout.key_columns:
            if rows.column(key).null_count:
                null = mine & _nulls(rows.column(key))
                self._null_keys[side] += int(null.sum())
                mine &= ~null
        return sort_run(
            rows.column(HASH).to_numpy().view(np.uint64),
            times,
            rows.select(list(task.layout.stored_columns(side))),
            task.layout.key_columns,
            np.flatnonzero(mine),
            task.layout.hash_is_key,
        )

    def _refuse(self, rows: pa.RecordBatch, side: str, bad: npt.NDArray[np.bool_]) -> None:
        count = int(bad.sum())
        self._bad_rows[side] += count
        if not count or self._task.drop_bad_rows:
            return
        at = int(np.flatnonzero(bad)[0])
        shown = {
            column.name: rows.column(column.column)[at].as_py()
            for column in self._task.layout.output
            if column.side == side
        }
        raise BadRowError(
            f"bad row: the {side} input has a row whose event time is null, or too far from 1970: "
            f"{shown} ({count} such rows in this task). Mend the input, or start with "
            '.option("badRows", "drop")'
        )

    def _join(self, instance: int, runs: dict[str, SortedRun]) -> Iterator[pa.RecordBatch]:
        for side in SIDES:
            run = runs[side]
            if not len(run):
                continue
            partitions = partition_of(run.hashes, self._task.table.partitions)
            np.add.at(self._partition_rows, partitions, 1)
            for stored in self._stored(instance, OTHER[side], run):
                yield from self._emit(side, run, stored, partitions)
            if side == LEFT and len(runs[RIGHT]):
                yield from self._emit(side, run, runs[RIGHT], partitions)

    def _stored(self, instance: int, side: str, needles: SortedRun) -> Iterator[SortedRun]:
        """The stored runs of a side that these needles may meet."""
        task = self._task
        lower, upper = task.bounds.around(OTHER[side])
        earliest = int(needles.times.min()) + lower
        latest = int(needles.times.max()) + upper
        owned = task.table.partitions_of(instance)
        for segment in (*task.segments, *self._written):
            if segment.side != side or segment.max_time_us < earliest:
                continue
            if segment.min_time_us > latest or not segment.meets(owned):
                continue
            yield open_segment(task.storage, segment, TIME)

    def _emit(
        self,
        side: str,
        needles: SortedRun,
        stored: SortedRun,
        partitions: npt.NDArray[np.int64],
    ) -> Iterator[pa.RecordBatch]:
        layout = self._task.layout
        lower, upper = self._task.bounds.around(side)
        found = probe(needles, stored, lower, upper, layout.key_columns, layout.hash_is_key)
        if not found.total:
            return
        np.add.at(self._partition_matches, partitions, found.count)
        for needle, other in found.pairs(layout.key_columns, self._chunks.rows_at_once(found)):
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
        seen = merged_max(task.max_time_us, self._max_time)
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
                partitions=task.table.partitions,
            )
        )

    def _merge(self, instance: int) -> list[str]:
        """Does this instance's merges; gives the names of the segments merged away."""
        task = self._task
        keep = task.bounds.keep_from_us(task.watermark_us, task.delays)
        replaced: list[str] = []
        mine = [m for m in task.merges if m.instance % task.table.instances == instance]
        for number, merge in enumerate(mine):
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
                    task.names.segment(instance, merge.side, f"m{number:03d}"),
                    merged,
                    side=merge.side,
                    instance=merge.instance,
                    level=1 + max(s.level for s in merge.segments),
                    batches=(
                        min(s.first_batch for s in merge.segments),
                        max(s.last_batch for s in merge.segments),
                    ),
                    partitions=task.table.partitions,
                )
            )
        return replaced

    def _report(self, instance: int, replaced: list[str]) -> Report:
        busy = np.flatnonzero(self._partition_rows)
        return Report(
            instance=instance,
            rows=self._rows,
            late=self._late,
            null_keys=self._null_keys,
            bad_rows=self._bad_rows,
            max_time_us=self._max_time,
            matches=self._matches,
            cpu_ms=1e3 * (time.process_time() - self._cpu),
            wall_ms=1e3 * (time.perf_counter() - self._wall),
            peak_memory_bytes=_peak_memory_bytes(),
            segments=self._written,
            replaced=replaced,
            partitions=PartitionLoads(
                busy.tolist(),
                self._partition_rows[busy].tolist(),
                self._partition_matches[busy].tolist(),
            ),
        )


class _Chunks:
    """Joins small batches of pairs into larger ones and keeps large ones bounded."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._pending: list[pa.RecordBatch] = []
        self._pending_rows = 0

    def rows_at_once(self, found: Probe) -> int:
        width = found.needles.row_bytes + found.stored.row_bytes
        return int(max(1, min(self._limits.chunk_rows, self._limits.chunk_bytes / width)))

    def add(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        if not batch.num_rows:
            return
        large = batch.num_rows * 2 > self._limits.chunk_rows
        large = large or batch.get_total_buffer_size() * 2 > self._limits.chunk_bytes
        if large:
            yield batch
            return
        self._pending.append(batch)
        self._pending_rows += batch.num_rows
        if self._pending_rows * 2 > self._limits.chunk_rows:
            yield from self.flush()

    def flush(self) -> Iterator[pa.RecordBatch]:
        if self._pending:
            batch = concatenate(self._pending)
            self._pending, self._pending_rows = [], 0
            yield batch


def _gather(
    batches: Iterator[pa.RecordBatch], run_bytes: int
) -> Iterator[tuple[pa.RecordBatch, bool]]:
    """The input in pieces of about `run_bytes`, each with whether it is the last."""
    pending: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        if size >= run_bytes:
            yield _whole(pending), False
            pending, size = [], 0
        if batch.num_rows:
            pending.append(batch)
            size += batch.nbytes
    if pending:
        yield _whole(pending), True


def _whole(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    return batches[0] if len(batches) == 1 else concatenate(batches)


def _without_control(
    rows: pa.RecordBatch, instance: int | None, table: PartitionTable
) -> tuple[pa.RecordBatch, int]:
    """Takes the control row out, which names the instance in the place of the hash."""
    sides = rows.column(SIDE).to_numpy()
    control = np.flatnonzero(sides == CONTROL_CODE)
    hashes = rows.column(HASH).to_numpy().view(np.uint64)
    if not len(control):
        # A large input comes in pieces, and the control row may be in a later one.
        return rows, int(table.route(hashes[:1])[0]) if instance is None else instance
    return rows.filter(pa.array(sides != CONTROL_CODE)), int(hashes[control[0]])


def _newer(run: SortedRun, keep_from_us: int | None) -> SortedRun:
    if keep_from_us is None or not len(run):
        return run
    keep = run.times >= keep_from_us
    if keep.all():
        return run
    return SortedRun(
        run.hashes[keep], run.times[keep], run.rows.filter(pa.array(keep)), run.mixed_keys
    )


def _times_and_bad(column: pa.Array) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_] | None]:
    """Event times in microseconds, and which of them cannot be used; None where all can."""
    nulls = None
    if column.null_count:
        nulls = _nulls(column)
        column = column.fill_null(pa.scalar(0, column.type))
    times = times_us(column)
    if not len(times) or (int(times.min()) > -MAX_TIME and int(times.max()) < MAX_TIME):
        return times, nulls
    far = (times <= -MAX_TIME) | (times >= MAX_TIME)
    return times, far if nulls is None else far | nulls


def _peak_memory_bytes() -> int:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak


def _nulls(column: pa.Array) -> npt.NDArray[np.bool_]:
    mask: npt.NDArray[np.bool_] = column.is_null().to_numpy(zero_copy_only=False)
    return mask
