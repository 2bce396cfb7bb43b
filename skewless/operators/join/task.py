"""What one instance does with its rows of one batch: probe, stream out pairs, store, report."""

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
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
from skewless.kernels.ordering import IndexArray
from skewless.kernels.predicate import Predicate
from skewless.kernels.runs import SortedRun, merged
from skewless.kernels.warmup import compile_near, compile_sets, compile_shedding
from skewless.load.heavy import STANDING_OUT, Detail
from skewless.operators.join.bounds import LEFT, LONE, RIGHT, SIDES, Bounds, merged_max
from skewless.operators.join.cells import CellPostings
from skewless.operators.join.deciding import Decision
from skewless.operators.join.due import taken
from skewless.operators.join.how import INNER, How
from skewless.operators.join.intake import Intake, Sorted
from skewless.operators.join.layout import Layout
from skewless.operators.join.matched import Mask, mark
from skewless.operators.join.pairing import OTHER, given_alone, paired
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
    how: How = INNER
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
    lone: dict[str, SortedRun | None]
    # Of the rows at home, by row: which have a match. Only of sides where that is asked for.
    matched: dict[str, Mask]

    @staticmethod
    def of(sides: Mapping[str, Sorted], awaited: Collection[str]) -> "_Arrived":
        return _Arrived(
            {side: rows.home for side, rows in sides.items()},
            {side: rows.replicas for side, rows in sides.items()},
            {side: rows.lone for side, rows in sides.items()},
            {side: np.zeros(sides[side].home.rows.num_rows, np.bool_) for side in awaited},
        )

    def flags(self, side: str, run: SortedRun) -> Mask | None:
        """Where to mark the matched rows of a run; None: nobody asks, or not here."""
        return self.matched[side] if side in self.matched and run is self.home[side] else None


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
            lone=task.how.padded,
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
        is_whole = True
        for rows, last in gather(batches, task.limits.run_bytes):
            task.setting.faults.reach("in_task", task.setting.names.batch)
            rows, named = without_control(rows)
            instance = named if instance is None else instance
            assert instance is not None, "every row names the instance where its task does not"
            shedder = self._shedder
            if shedder is not None:
                shedder.arrive(instance, rows.num_rows, is_last=last)
            # Two runs of a task must decide alike: the output may be that of one, and the report
            # that of the other. So a decision may not depend on how the input falls into pieces.
            is_whole = is_whole and last and 2 * rows.nbytes <= task.limits.run_bytes
            sides = {side: self._intake.sort(rows, side, instance, shedder) for side in SIDES}
            del rows
            self._dropped.flush(instance)
            arrived = _Arrived.of(sides, () if task.waits else task.how.awaited)
            if not task.waits:
                yield from self._join(instance, arrived)
            yield from self._store(instance, arrived, is_whole if task.how.awaited else last)
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
        if not self._task.how.gives_pairs:
            for meeting in meetings:
                yield from self._meet(instance, meeting, arrived)
            if self._task.how.is_semi:
                run = arrived.home[LEFT]
                given = arrived.matched[LEFT] & ~self._decision(is_whole=False).shared(run)
                yield from self._give_alone(LEFT, run.rows, np.flatnonzero(given))
            return
        if self._shedder is None:
            for meeting in meetings:
                yield from self._give(meeting.side, meeting.found, arrived)
            return
        # What there is to compare has to be known before some of it is chosen.
        for part in self._shedder.parts(list(meetings)):
            yield from self._give(part.side, part.found, arrived, part)

    def _meet(self, instance: int, meeting: Meeting, arrived: _Arrived) -> Iterator[pa.RecordBatch]:
        """Notes who has a match, where pairs are not given; in a semi join, gives stored rows."""
        task, side, found = self._task, meeting.side, meeting.found
        condition = narrowed(task.condition, task.where, side)
        keys = task.layout.key_columns
        is_range = condition is None and not found.compare_pairs
        self._ledger.comparisons += int((found.count > 0).sum()) if is_range else found.total
        flags = arrived.flags(side, found.needles)
        if flags is not None:
            mark(found, keys, condition, self._chunks, flags)
        if not task.how.is_semi or found.needles is not arrived.home[RIGHT]:
            return
        # Left rows of before: each has its first match now, unless it had one then.
        run = found.stored
        touched = np.zeros(run.rows.num_rows, np.bool_)
        mark(found, keys, condition, self._chunks, stored=touched)
        at = np.flatnonzero(touched & ~self._decision(is_whole=False).shared(run))
        if not len(at):
            return
        candidates = taken(run, at)
        had = np.zeros(len(at), np.bool_)
        before = [*self._readable(instance, side), *self._ledger.written]
        for earlier in self._opened(side, candidates, before):
            probed = self._probed(LEFT, candidates, earlier)
            if probed.total:
                mark(probed, keys, narrowed(task.condition, task.where), self._chunks, had)
        yield from self._give_alone(LEFT, candidates.rows, np.flatnonzero(~had))

    def _store(self, instance: int, arrived: _Arrived, is_whole: bool) -> Iterator[pa.RecordBatch]:
        """Writes what is needed of the rows, and gives those that are known to have no match."""
        decision = self._decision(is_whole)
        earlier = {
            side: [
                *self._readable(instance, side),
                *(s for s in self._ledger.written if s.side == side),
            ]
            for side in arrived.matched
        }
        for side in SIDES:
            home = arrived.home[side]
            self._ledger.count_rows(side, home.hashes)
            lone = arrived.lone[side]
            if self._task.waits:  # all rows are needed at the end of this batch
                self._ledger.store(instance, side, home)
            else:
                matched, others = arrived.matched.get(side), earlier.get(OTHER[side], [])
                verdict = decision.verdict(side, home, matched, others)
                yield from self._give_alone(side, home.rows, verdict.alone)
                self._ledger.store(instance, side, verdict.stored)
                if lone is not None:
                    verdict = decision.lone(side, lone)
                    yield from self._give_alone(side, lone.rows, verdict.alone)
                    lone = verdict.stored
            if lone is not None:
                self._ledger.store(instance, LONE[side], lone)
            self._earlier_replicas[side].append(arrived.replicas[side])

    def _decision(self, is_whole: bool) -> Decision:
        """What may be decided by what this task has seen.

        The watermark after this batch is at least what this task alone has seen, so deciding by it
        is safe; with long batches and short bounds it decides on nearly every row. Rows of a later
        piece of this batch may still meet every row of an earlier one.
        """
        task = self._task
        seen = merged_max(task.max_time_us, self._intake.max_time_us)
        watermark = task.delays.watermark(seen, task.watermark_us)
        return Decision(
            task.how, task.bounds, task.delays, task.route, task.condition, watermark, is_whole
        )

    def _give_alone(
        self, side: str, rows: pa.RecordBatch, at: IndexArray
    ) -> Iterator[pa.RecordBatch]:
        """Rows of a side without those that they match."""
        if self._task.how.is_semi:
            self._ledger.matches += len(at)
        for some in given_alone(self._task.layout, side, rows, at, self._task.limits):
            yield from self._chunks.add(some)

    def _meetings(self, instance: int, arrived: _Arrived) -> Iterator[Meeting]:
        """Every pair that is this instance's to find, once.

        A row at home meets the stored rows of the other side, and the rows of this batch that are
        here, at home or as replicas. A replica meets the rows at home here, which it may not find
        on its own instance; two replicas meet only where a router says that they meet nowhere else.
        """
        # What right rows find is of no use to an anti join: left rows ask for it when they are due.
        for side in (LEFT,) if self._task.how.is_anti else SIDES:
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
        found = self._probed(side, needles, stored)
        if not found.total:
            return
        hit = np.flatnonzero(found.count)
        self._ledger.count_matches(found.needles.hashes[hit], found.count[hit])
        yield Meeting(side, found)

    def _probed(self, side: str, needles: SortedRun, stored: SortedRun) -> Probe:
        lower, upper = self._task.bounds.around(side)
        keys = self._task.layout.key_columns
        return probe(needles, stored, lower, upper, keys, self._is_proven)

    @property
    def _is_proven(self) -> bool:
        """Whether rows of equal hash need no look at their keys.

        A condition compares the keys itself, and only of pairs that fulfil the rest of it.
        """
        return self._task.layout.hash_is_key or self._task.condition is not None

    def _give(
        self, side: str, found: Probe, arrived: _Arrived, part: Part | None = None
    ) -> Iterator[pa.RecordBatch]:
        """The pairs of a probe, or of a part of it that watches what comes of it."""
        layout, condition = self._task.layout, self._task.condition
        if condition is not None:
            condition = condition.seen_from(side)
        measure = condition if isinstance(condition, NearCondition) else None
        fulfilled = narrowed(condition, self._task.where, side)
        self._ledger.comparisons += found.total
        mine, theirs = arrived.flags(side, found.needles), arrived.flags(OTHER[side], found.stored)
        clock = time.perf_counter
        started = clock()
        for needle, other in self._chunks.portions(found, layout.key_columns, fulfilled, part):
            self._ledger.matches += len(needle)
            if mine is not None:
                mine[needle] = True
            if theirs is not None:
                theirs[other] = True
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

    @property
    def _keep_from_us(self) -> dict[str, int | None]:
        task = self._task
        awaited = (LEFT,) if task.waits else task.how.awaited
        return task.bounds.stored_from_us(task.watermark_us, task.delays, awaited)

    def _combined(self, merge: Merge, runs: list[SortedRun]) -> SortedRun | None:
        """Merging state: the rows that a later one may still match."""
        keep_from_us = self._keep_from_us[merge.side]
        runs = [run for run in (live(run, keep_from_us) for run in runs) if len(run)]
        if not runs:
            return None
        keys = self._task.layout.key_columns
        is_proven = self._is_proven or merge.side not in SIDES
        return merged(runs, keys, is_proven)


def _postings(task: JoinTask) -> Postings | None:
    if task.condition is None:
        return None
    if isinstance(task.condition, SetCondition):
        return SetPostings(task.condition, task.route)
    return CellPostings(task.condition, task.route, keeps_row_hash=task.waits)
