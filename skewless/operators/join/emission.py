"""The second half of a batch: gives what is certain only now that its watermark is known."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from skewless.engine.chunks import Chunks, Limits
from skewless.engine.columns import TIME
from skewless.engine.intake import named_instance
from skewless.kernels.conditions import SetCondition
from skewless.kernels.equijoin import Probe, probe
from skewless.kernels.narrowing import narrowed
from skewless.kernels.ordering import IndexArray
from skewless.kernels.predicate import Predicate
from skewless.kernels.runs import SortedRun
from skewless.kernels.warmup import compile_kernels, compile_near, compile_sets
from skewless.operators.join.bounds import LEFT, RIGHT, Bounds
from skewless.operators.join.choosing import Choice, Chooser
from skewless.operators.join.due import Due, StoredRows, taken
from skewless.operators.join.how import How
from skewless.operators.join.layout import Layout
from skewless.operators.join.matched import Mask, mark
from skewless.operators.join.pairing import OTHER, given_alone, paired
from skewless.operators.join.reading import opened
from skewless.operators.join.task import Matching
from skewless.routing.route import Route
from skewless.state.manifest import Segments
from skewless.state.segment import Segment, open_segment
from skewless.state.storage import Storage

# So many rows that are due are looked at in one go; a row takes a few numbers.
_ROW_BYTES = 64


@dataclass(frozen=True)
class EmitTask:
    """Reads the state and writes nothing, so that it may run any number of times."""

    storage: Storage
    layout: Layout
    bounds: Bounds
    route: Route
    segments: Segments
    condition: Matching | None  # None: equal keys are all
    how: How
    chooser: Chooser | None  # None: pairs were given by the tasks
    due: Mapping[str, Due]  # per side whose rows are given when they leave
    batch: int
    where: Predicate | None = None  # what pairs have to fulfil, too
    limits: Limits = field(default_factory=Limits)

    @property
    def instances(self) -> int:
        return self.route.instances

    def run(
        self, instance: int | None, batches: Iterator[pa.RecordBatch]
    ) -> Iterator[pa.RecordBatch]:
        """Yields what the instance has to give, in bounded pieces."""
        instance = named_instance(batches) if instance is None else instance
        assert instance is not None, "every row names the instance where its task does not"
        compile_kernels()
        if isinstance(self.condition, SetCondition):
            compile_sets()
        elif self.condition is not None:
            compile_near()
        yield from _Emission(self, instance).run()


class _Emission:
    """One instance's share of it."""

    def __init__(self, task: EmitTask, instance: int) -> None:
        self._task = task
        self._instance = instance
        sets = task.condition if isinstance(task.condition, SetCondition) else None
        self._state = StoredRows(task.storage, task.route, task.segments, sets)
        self._chunks = Chunks(task.limits)

    def run(self) -> Iterator[pa.RecordBatch]:
        task = self._task
        if task.how.is_semi:
            yield from self._first_matches()
        for side, due in task.due.items():
            if task.chooser is None:
                yield from self._unmatched(side, due)
            else:
                yield from self._chosen(task.chooser, due)
            if side in task.how.padded:
                for rows in self._state.lone(self._instance, side, due):
                    yield from self._give(side, rows, np.arange(rows.num_rows))
        yield from self._chunks.flush()

    def _unmatched(self, side: str, due: Due) -> Iterator[pa.RecordBatch]:
        """The rows of a side that are due and have no match."""
        at_once = max(1, self._task.limits.run_bytes // _ROW_BYTES)
        others = self._state.meeting(self._instance, OTHER[side])
        for needles in self._state.due(self._instance, side, due, at_once):
            matched = self._matched(side, needles, others)
            rows = np.unique(needles.rows_of(np.arange(len(needles))))
            yield from self._give(side, needles.rows, rows[~matched[rows]])

    def _chosen(self, chooser: Chooser, due: Due) -> Iterator[pa.RecordBatch]:
        """The left rows that are due, each with the right rows that are chosen for it."""
        task = self._task
        assert not isinstance(task.condition, SetCondition), "no choice is made of sets"
        at_once = max(1, task.limits.run_bytes // chooser.row_bytes)
        others = self._state.meeting(self._instance, RIGHT)
        for needles in self._state.due(self._instance, LEFT, due, at_once):
            stored = list(opened(task.storage, others, RIGHT, needles, task.bounds))
            choice = chooser.begin(needles, task.condition, task.where)
            for number, run in enumerate(stored):
                self._offer(choice, needles, number, run)
            matched = np.zeros(len(needles), np.bool_)
            for number, mine, theirs in choice.chosen():
                run = stored[number]
                matched[mine] = True
                for left, right in self._chunks.cut(needles, run, mine, theirs):
                    pairs = paired(task.layout, LEFT, needles, run, left, right, task.condition)
                    yield from self._chunks.add(pairs)
            if LEFT in task.how.padded:
                yield from self._give(LEFT, needles.rows, np.flatnonzero(~matched))

    def _first_matches(self) -> Iterator[pa.RecordBatch]:
        """Left rows whose first match came with this batch, as far as no task could know it.

        A task knows all that comes of a key, unless the key is shared by several of them.
        """
        task, state = self._task, self._state
        rights = state.meeting(self._instance, RIGHT)
        new = [(s, self._shared(s)) for s in rights if s.first_batch == task.batch]
        new = [(segment, run) for segment, run in new if len(run)]
        old = [s for s in rights if s.first_batch != task.batch]
        for segment in state.meeting(self._instance, LEFT):
            if segment.first_batch == task.batch:
                rows = self._ours(self._shared(segment))
                found = self._matched(LEFT, rows, rights)
            else:
                rows, found = self._touched(segment, new)
                found &= ~self._matched(LEFT, rows, old)
            yield from self._give(LEFT, rows.rows, np.flatnonzero(found))

    def _touched(
        self, segment: Segment, new: Sequence[tuple[Segment, SortedRun]]
    ) -> tuple[SortedRun, Mask]:
        """The left rows of a segment that new rows match, as far as they are ours to give."""
        run = self._opened(segment)
        touched = np.zeros(run.rows.num_rows, np.bool_)
        for other, needles in new:
            if _may_meet(self._task.bounds, segment, other):
                self._mark(RIGHT, self._probe(RIGHT, needles, run), None, touched)
        rows = self._ours(taken(run, np.flatnonzero(touched)))
        return rows, np.ones(len(rows), np.bool_)

    def _shared(self, segment: Segment) -> SortedRun:
        """The rows of a segment whose keys several instances share."""
        run = self._opened(segment)
        return run.kept(self._task.route.shares(run.hashes))

    def _ours(self, run: SortedRun) -> SortedRun:
        """Those of some left rows that this instance has to give."""
        every = np.arange(len(run))
        at = self._state.at_home(self._instance, LEFT, run.hashes, run.times, every)
        return run if len(at) == len(run) else taken(run, at)

    def _opened(self, segment: Segment) -> SortedRun:
        return open_segment(self._task.storage, segment, TIME)

    def _matched(self, side: str, needles: SortedRun, others: Sequence[Segment]) -> Mask:
        """Which rows of some needles have a match in the segments of the other side."""
        task = self._task
        matched = np.zeros(needles.rows.num_rows, np.bool_)
        if not len(needles):
            return matched
        for stored in opened(task.storage, others, OTHER[side], needles, task.bounds):
            self._mark(side, self._probe(side, needles, stored), matched, None)
        return matched

    def _mark(self, side: str, found: Probe, needles: Mask | None, stored: Mask | None) -> None:
        if found.total:
            fulfilled = narrowed(self._task.condition, self._task.where, side)
            mark(found, self._task.layout.key_columns, fulfilled, self._chunks, needles, stored)

    def _probe(self, side: str, needles: SortedRun, stored: SortedRun) -> Probe:
        task = self._task
        # A condition compares the keys itself.
        proven = task.layout.hash_is_key or task.condition is not None
        keys = task.layout.key_columns
        return probe(needles, stored, *task.bounds.around(side), keys, proven)

    def _offer(self, choice: Choice, needles: SortedRun, number: int, stored: SortedRun) -> None:
        """The right rows of a run that match, as candidates of the left rows."""
        found = self._probe(LEFT, needles, stored)
        if found.total:
            choice.meet(number, found, self._task.layout.key_columns, self._task.limits.chunk_rows)

    def _give(self, side: str, rows: pa.RecordBatch, at: IndexArray) -> Iterator[pa.RecordBatch]:
        """Rows without a match, in pieces."""
        for some in given_alone(self._task.layout, side, rows, at, self._task.limits):
            yield from self._chunks.add(some)


def _may_meet(bounds: Bounds, left: Segment, right: Segment) -> bool:
    """Whether any rows of two segments may be within the bounds."""
    lower, upper = bounds.around(LEFT)
    return (
        left.min_time_us + lower <= right.max_time_us
        and right.min_time_us <= left.max_time_us + upper
    )
