"""The rows that the watermark of a batch has passed: nothing that comes later can match them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from skewless.engine.columns import DECIDED, TIME
from skewless.kernels.conditions import SetCondition
from skewless.kernels.hashing import xxhash64
from skewless.kernels.ordering import HashArray, IndexArray, TimeArray
from skewless.kernels.runs import SortedRun, index_rows
from skewless.operators.join.bounds import LEFT, LONE
from skewless.operators.join.postings import SETS
from skewless.routing.route import Route
from skewless.state.manifest import Segments
from skewless.state.segment import Segment, open_segment
from skewless.state.storage import Storage


@dataclass(frozen=True)
class Due:
    """Which rows of a side a batch gives: those that the watermark has passed for the first time.

    A left row is due when `time < W − upper`, a right row when `time < W + lower`. It is given in
    the batch in which that comes true, or in the one that it comes with, if it is true then.
    """

    batch: int
    before_us: int | None  # `W − upper` or `W + lower` before the batch
    after_us: int  # and after it

    def may_be_in(self, segment: Segment) -> bool:
        """Whether a segment of the side may have any."""
        if segment.min_time_us >= self.after_us:
            return False
        if self.before_us is None or self._is_new(segment):
            return True
        return segment.max_time_us >= self.before_us

    def rows(self, segment: Segment, times: TimeArray) -> IndexArray:
        """The rows of a segment that are due, by their times."""
        due = times < self.after_us
        if self.before_us is not None and not self._is_new(segment):
            due &= times >= self.before_us
        return np.flatnonzero(due)

    def _is_new(self, segment: Segment) -> bool:
        """Whether its rows have come with this batch: none of them was given before."""
        return segment.first_batch == self.batch


@dataclass(frozen=True)
class StoredRows:
    """The state after a batch, as one of its instances looks at it."""

    storage: Storage
    route: Route
    segments: Segments
    sets: SetCondition | None = None  # where rows are found by the items of their sets

    def meeting(self, instance: int, side: str) -> Sequence[Segment]:
        """The segments of a side that may have rows for those at home on an instance."""
        route = self.route
        # A set has items of any partition.
        some = route.reads(instance) if self.sets is None else frozenset(range(route.partitions))
        return self.segments.meeting(side, some, route.partitions)

    def due(self, instance: int, side: str, due: Due, at_once: int) -> Iterator[SortedRun]:
        """The rows of a side that are due and this instance's to give, in portions.

        Every row is given by one instance: the home of its key, which it shares with others if the
        key is split; with sets, the home of its least item.
        """
        for segment in self.meeting(instance, side):
            if not due.may_be_in(segment):
                continue
            run = open_segment(self.storage, segment, TIME)
            if self.sets is not None:
                yield from self._due_sets(instance, side, due, segment, run, at_once)
                continue
            at = undecided(run.rows, due.rows(segment, run.times))
            at = self.at_home(instance, side, run.hashes, run.times, at)
            for begin in range(0, len(at), at_once):
                yield taken(run, at[begin : begin + at_once])

    def at_home(
        self, instance: int, side: str, hashes: HashArray, times: TimeArray, at: IndexArray
    ) -> IndexArray:
        """Those of some postings that are the instance's to give."""
        spread = xxhash64(hashes[at].view(np.int64) ^ times[at])
        homes = self.route.homes("left" if side == LEFT else "right", hashes[at], spread)
        return at[homes == instance]

    def _due_sets(
        self, instance: int, side: str, due: Due, segment: Segment, run: SortedRun, at_once: int
    ) -> Iterator[SortedRun]:
        assert self.sets is not None
        postings = due.rows(segment, run.times)
        rows = run.rows_of(postings)
        every = SETS.sets(run.rows)
        owner, hashes = every.postings(self.sets.indexed_for)
        least = np.full(run.rows.num_rows, 2**64 - 1, np.uint64)
        np.minimum.at(least, owner, hashes)
        # Only where a segment has a row's least item: others may have the same row.
        postings = postings[run.hashes[postings] == least[rows]]
        postings = self.at_home(instance, side, run.hashes, run.times, postings)
        times = np.zeros(run.rows.num_rows, np.int64)
        times[run.rows_of(postings)] = run.times[postings]
        chosen = np.unique(run.rows_of(postings))
        for begin in range(0, len(chosen), at_once):
            some = np.zeros(run.rows.num_rows, np.bool_)
            some[chosen[begin : begin + at_once]] = True
            mine = some[owner]
            yield index_rows(hashes[mine], times[owner[mine]], run.rows, owner[mine])

    def lone(self, instance: int, side: str, due: Due) -> Iterator[pa.RecordBatch]:
        """The rows of a side that are due and can match nothing: they have no key."""
        for segment in self.segments.written_by(instance, self.route.instances):
            if segment.side == LONE[side] and due.may_be_in(segment):
                run = open_segment(self.storage, segment, TIME)
                at = due.rows(segment, run.times)
                if len(at):
                    yield run.rows.take(pa.array(at))


def undecided(rows: pa.RecordBatch, at: IndexArray) -> IndexArray:
    """Those of some rows of which it is not known yet whether they match."""
    if DECIDED not in rows.schema.names or not len(at):
        return at
    decided = rows.column(DECIDED).to_numpy(zero_copy_only=False)
    return at[~decided[at]]


def taken(run: SortedRun, at: IndexArray) -> SortedRun:
    """Some of the rows of a run whose rows are their own postings."""
    rows = run.rows.take(pa.array(at))
    return SortedRun(run.hashes[at], run.times[at], rows, run.mixed_keys)
