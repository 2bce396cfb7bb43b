"""What one instance does with its rows of one batch: probe, stream out pairs, store, report."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from skewless.engine.chunks import Chunks, Limits
from skewless.engine.dropped import Dropped
from skewless.engine.intake import gather, without_control
from skewless.engine.ledger import Ledger, live
from skewless.engine.setting import Setting
from skewless.kernels.conditions import SetCondition
from skewless.kernels.equijoin import Probe, probe
from skewless.kernels.narrowing import narrowed
from skewless.kernels.near import NearCondition
from skewless.kernels.predicate import Predicate
from skewless.kernels.runs import SortedRun, merged
from skewless.kernels.warmup import compile_near, compile_sets, compile_shedding
from skewless.load.heavy import STANDING_OUT, Detail
from skewless.operators.join.bounds import LEFT, SIDES, Bounds, merged_max
from skewless.operators.join.cells import CellPostings
from skewless.operators.join.intake import Intake
from skewless.operators.join.layout import Layout
from skewless.operators.join.pairing import OTHER, paired
from skewless.operators.join.postings import Postings, SetPostings
from skewless.operators.join.probing import Meeting, Part, Shedder
from skewless.operators.join.reading import opened
from skewless.routing.route import Route
from skewless.shedding.plan import ProbePlan
from skewless.state.compaction import Merge, choose_merges
from skewless.state.segment import Segment
from skewless.state.watermark import Delays

Matching = SetCondition | NearCondition


@dataclass(frozen=True)
class JoinTask:
    """Everything a task needs; the same for all instances of a batch, and picklable."""

    setting: Setting
    layout: Layout
    bounds: Bounds
    delays: Delays
    route: Route
    watermark_us: int | None
    max_time_us: dict[str, int | None]
    condition: Matching | None = None  # None: equal keys are all
    where: Predicate | None = None  # what pairs have to fulfil, too
    detail: Detail = STANDING_OUT
    probing: ProbePlan | None = None  # None: every pair is found
    waits: bool = False  # pairs are given by the emission, which reads what is stored
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
        if isinstance(task.condition, SetCondition):
            compile_sets()
        elif task.condition is not None:
            compile_near()
        if task.probing is not None:
            compile_shedding()
        self._ledger = Ledger(
            task.setting.storage, task.setting.names, task.route.partitions, task.detail
        )
        self._dropped = Dropped(
            task.setting.storage, task.setting.names, keep=task.setting.keep_dropped
        )
        self._intake = Intake(
            task.layout,
            task.delays,
            task.watermark_us,
            self._dropped,
            drop_bad_rows=task.setting.drop_bad_rows,
            postings=_postings(task),
        )
        self._stored: dict[str, list[Segment]] = {}
        self._earlier_replicas: dict[str, list[SortedRun]] = {side: [] for side in SIDES}
        self._chunks = Chunks(task.limits)
        self._shedder: Shedder | None = None
        if task.probing is not None:
            fulfilled = narrowed(task.condition, task.where)
            self._shedder = Shedder(task.probing, task.layout.values, fulfilled)

    def run(
        self, instance: int | None, batches: Iterator[pa.RecordBatch]
    ) -> Iterator[pa.RecordBatch]:
        task = self._task
        for rows, last in gather(batches, task.limits.run_bytes):
            task.setting.faults.reach("in_task", task.setting.names.batch)
            rows, named = without_control(rows)
            instance = named if instance is None else instance
            assert instance is not None, "every row names the instance where its task does not"
            shedder = self._shedder
            if shedder is not None:
                shedder.arrive(instance, rows.num_rows, is_last=last)
            sorted_runs = {side: self._intake.sort(rows, side, instance, shedder) for side in SIDES}
            del rows
            self._dropped.flush(instance)
            arrived = _Arrived(
                {side: runs[0] for side, runs in sorted_runs.items()},
                {side: runs[1] for side, runs in sorted_runs.items()},
            )
            if not task.waits:
                yield from self._join(instance, arrived)
            for side in SIDES:
                self._ledger.count_rows(side, arrived.home[side].hashes)
                # Rows of a later piece of this batch may still meet every row of this one.
                home = arrived.home[side]
                kept = self._still_needed(home, side) if last else home
                self._ledger.store(instance, side, kept)
                self._earlier_replicas[side].append(arrived.replicas[side])
        assert instance is not None, "an empty instance is told which one it is"
        yield from self._chunks.flush()
        mine = task.setting.segments.written_by(instance, task.route.instances)
        merges = choose_merges(mine, self._keep_from_us, task.bounds.window_us(task.delays))
        self._ledger.merge(instance, merges, self._combined)
        if self._shedder is not None:
            ledger = self._ledger
            done = self._shedder.account(ledger.comparisons, ledger.matches, ledger.wall_ms)
            ledger.probing = done.to_json()
        self._ledger.close(instance, self._intake.taken(), self._dropped)

    def _join(self, instance: int, arrived: _Arrived) -> Iterator[pa.RecordBatch]:
        """The pairs that are this instance's to find, or the part of them that time allows."""
        meetings = self._meetings(instance, arrived)
        if self._shedder is None:
            for meeting in meetings:
                yield from self._give(meeting.side, meeting.found)
            return
        # What there is to compare has to be known before some of it is chosen.
        for part in self._shedder.parts(list(meetings)):
            yield from self._give(part.side, part.found, part)

    def _meetings(self, instance: int, arrived: _Arrived) -> Iterator[Meeting]:
        """Every pair that is this instance's to find, once.

        A row at home meets the stored rows of the other side, and the rows of this batch that are
        here, at home or as replicas. A replica meets the rows at home here, which it may not find
        on its own instance; two replicas meet only where a router says that they meet nowhere else.
        """
        for side in SIDES:
            other = OTHER[side]
            run = arrived.home[side]
            if len(run):
                old = self._opened(other, run, self._readable(instance, other))
                new = self._opened(other, run, self._ledger.written)
                for stored in (*old, *new, *self._earlier_replicas[other]):
                    yield from self._met(side, run, stored)
                yield from self._met(side, run, arrived.replicas[other])
                if side == LEFT:
                    yield from self._met(side, run, arrived.home[other])
            replicas = arrived.replicas[side]
            if len(replicas):
                for stored in self._opened(other, replicas, self._ledger.written):
                    yield from self._met(side, replicas, stored)
                if self._task.route.replicas_meet:
                    if side == LEFT:
                        yield from self._met(side, replicas, arrived.replicas[other])
                    for stored in self._earlier_replicas[other]:
                        yield from self._met(side, replicas, stored)

    def _opened(
        self, side: str, needles: SortedRun, segments: Sequence[Segment]
    ) -> Iterator[SortedRun]:
        return opened(self._task.setting.storage, segments, side, needles, self._task.bounds)

    def _readable(self, instance: int, side: str) -> list[Segment]:
        """The stored segments of a side that may have rows of the instance's partitions."""
        if side not in self._stored:
            route = self._task.route
            partitions = route.reads(instance)
            self._stored[side] = self._task.setting.segments.meeting(
                side, partitions, route.partitions
            )
        return self._stored[side]

    def _met(self, side: str, needles: SortedRun, stored: SortedRun) -> Iterator[Meeting]:
        if not len(stored):
            return
        lower, upper = self._task.bounds.around(side)
        keys = self._task.layout.key_columns
        found = probe(needles, stored, lower, upper, keys, self._is_proven)
        if not found.total:
            return
        hit = np.flatnonzero(found.count)
        self._ledger.count_matches(found.needles.hashes[hit], found.count[hit])
        yield Meeting(side, found)

    @property
    def _is_proven(self) -> bool:
        """Whether rows of equal hash need no look at their keys.

        A condition compares the keys itself, and only of pairs that fulfil the rest of it.
        """
        return self._task.layout.hash_is_key or self._task.condition is not None

    def _give(self, side: str, found: Probe, part: Part | None = None) -> Iterator[pa.RecordBatch]:
        """The pairs of a probe, or of a part of it that watches what comes of it."""
        layout, condition = self._task.layout, self._task.condition
        if condition is not None:
            condition = condition.seen_from(side)
        measure = condition if isinstance(condition, NearCondition) else None
        fulfilled = narrowed(condition, self._task.where, side)
        self._ledger.comparisons += found.total
        clock = time.perf_counter
        started = clock()
        for needle, other in self._chunks.portions(found, layout.key_columns, fulfilled, part):
            self._ledger.matches += len(needle)
            compared = clock()
            pairs = paired(layout, side, found.needles, found.stored, needle, other, measure)
            yield from self._chunks.add(pairs)
            if part is not None:
                part.shedder.compare_ms += 1e3 * (compared - started)
                started = clock()
                part.shedder.match_ms += 1e3 * (started - compared)
        if part is not None:
            # Pairs that were compared after the last match, or without any.
            part.shedder.compare_ms += 1e3 * (clock() - started)

    def _still_needed(self, run: SortedRun, side: str) -> SortedRun:
        """Leaves out rows that this task already knows no later batch can match.

        The watermark after this batch is at least what this task alone has seen, so dropping by
        it is safe; with long batches and short bounds it drops nearly everything. Rows that wait
        are needed at the end of this batch.
        """
        task = self._task
        if task.waits:
            return run
        seen = merged_max(task.max_time_us, self._intake.max_time_us)
        watermark = task.delays.watermark(seen, task.watermark_us)
        return live(run, task.bounds.keep_from_us(watermark, task.delays)[side])

    @property
    def _keep_from_us(self) -> dict[str, int | None]:
        task = self._task
        return task.bounds.keep_from_us(task.watermark_us, task.delays, waits=task.waits)

    def _combined(self, merge: Merge, runs: list[SortedRun]) -> SortedRun | None:
        """Merging state: the rows that a later one may still match."""
        keep_from_us = self._keep_from_us[merge.side]
        runs = [run for run in (live(run, keep_from_us) for run in runs) if len(run)]
        if not runs:
            return None
        return merged(runs, self._task.layout.key_columns, self._is_proven)


def _postings(task: JoinTask) -> Postings | None:
    if task.condition is None:
        return None
    if isinstance(task.condition, SetCondition):
        return SetPostings(task.condition, task.route)
    return CellPostings(task.condition, task.route, keeps_row_hash=task.waits)
