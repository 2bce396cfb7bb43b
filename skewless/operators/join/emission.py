"""The second half of a batch: gives the left rows that no right row can reach any more."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from skewless.engine.chunks import Chunks, Limits
from skewless.engine.columns import TIME
from skewless.engine.intake import named_instance
from skewless.kernels.equijoin import probe
from skewless.kernels.hashing import xxhash64
from skewless.kernels.near import NearCondition
from skewless.kernels.ordering import IndexArray
from skewless.kernels.predicate import Predicate
from skewless.kernels.runs import SortedRun
from skewless.kernels.warmup import compile_kernels, compile_near
from skewless.operators.join.bounds import LEFT, RIGHT, Bounds
from skewless.operators.join.choosing import Choice, Chooser
from skewless.operators.join.layout import Layout
from skewless.operators.join.pairing import paired
from skewless.operators.join.reading import opened
from skewless.routing.route import Route
from skewless.state.manifest import Segments
from skewless.state.segment import Segment, open_segment
from skewless.state.storage import Storage


@dataclass(frozen=True)
class Due:
    """Which left rows a batch gives: those that the watermark has passed for the first time.

    A left row is due when `time < W − upper`. It is given in the batch in which that comes true, or
    in the one that it comes with, if it is true then.
    """

    batch: int
    before_us: int | None  # `W − upper` before the batch
    after_us: int  # and after it

    def may_be_in(self, segment: Segment) -> bool:
        """Whether a segment of left rows may have any."""
        if segment.min_time_us >= self.after_us:
            return False
        if self.before_us is None or self._is_new(segment):
            return True
        return segment.max_time_us >= self.before_us

    def rows(self, segment: Segment, run: SortedRun) -> IndexArray:
        """The rows of a segment that are due."""
        due = run.times < self.after_us
        if self.before_us is not None and not self._is_new(segment):
            due &= run.times >= self.before_us
        return np.flatnonzero(due)

    def _is_new(self, segment: Segment) -> bool:
        """Whether its rows have come with this batch: none of them was given before."""
        return segment.first_batch == self.batch


@dataclass(frozen=True)
class EmitTask:
    """Reads the state and writes nothing, so that it may run any number of times.

    A left row has one posting, and so it is stored once and given by one instance: the home of its
    posting, which it shares with others if its cell is split.
    """

    storage: Storage
    layout: Layout
    bounds: Bounds
    route: Route
    segments: Segments
    condition: NearCondition | None  # None: equal keys are all
    chooser: Chooser
    due: Due
    where: Predicate | None = None  # what pairs have to fulfil, too, before any is chosen
    limits: Limits = field(default_factory=Limits)

    @property
    def instances(self) -> int:
        return self.route.instances

    def run(
        self, instance: int | None, batches: Iterator[pa.RecordBatch]
    ) -> Iterator[pa.RecordBatch]:
        """Yields the pairs of the left rows that are due on the instance, in bounded pieces."""
        instance = named_instance(batches) if instance is None else instance
        assert instance is not None, "every row names the instance where its task does not"
        compile_kernels()
        if self.condition is not None:
            compile_near()
        chunks = Chunks(self.limits)
        segments = self._meeting(instance, RIGHT)
        for needles in self._due_rows(instance):
            stored = list(opened(self.storage, segments, RIGHT, needles, self.bounds))
            choice = self.chooser.begin(needles, self.condition, self.where)
            for number, run in enumerate(stored):
                self._offer(choice, needles, number, run)
            for number, mine, theirs in choice.chosen():
                run = stored[number]
                for left, right in chunks.cut(needles, run, mine, theirs):
                    pairs = paired(self.layout, LEFT, needles, run, left, right, self.condition)
                    yield from chunks.add(pairs)
        yield from chunks.flush()

    def _due_rows(self, instance: int) -> Iterator[SortedRun]:
        """The left rows that are this instance's to give, in portions."""
        at_once = max(1, self.limits.run_bytes // self.chooser.row_bytes)
        for segment in self._meeting(instance, LEFT):
            if not self.due.may_be_in(segment):
                continue
            run = open_segment(self.storage, segment, TIME)
            at = self.due.rows(segment, run)
            hashes, times = run.hashes[at], run.times[at]
            spread = xxhash64(hashes.view(np.int64) ^ times)
            at = at[self.route.homes("left", hashes, spread) == instance]
            for begin in range(0, len(at), at_once):
                yield _taken(run, at[begin : begin + at_once])

    def _meeting(self, instance: int, side: str) -> Sequence[Segment]:
        route = self.route
        return self.segments.meeting(side, route.reads(instance), route.partitions)

    def _offer(self, choice: Choice, needles: SortedRun, number: int, stored: SortedRun) -> None:
        """The right rows of a run that match, as candidates of the left rows."""
        keys = self.layout.key_columns
        # A condition compares the keys itself.
        proven = self.layout.hash_is_key or self.condition is not None
        found = probe(needles, stored, *self.bounds.around(LEFT), keys, proven)
        if found.total:
            choice.meet(number, found, keys, self.limits.chunk_rows)


def _taken(run: SortedRun, at: IndexArray) -> SortedRun:
    rows = run.rows.take(pa.array(at))
    return SortedRun(run.hashes[at], run.times[at], rows, run.mixed_keys)
