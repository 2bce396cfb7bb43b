"""What one instance does with its rows of the stream: look them up, give the result, report.

The table is stored as a whole before the first row is looked up. So a task decides by itself what
becomes of a row without a match, no row of the stream is ever stored or sent to two instances, and
any instance may work on any row of a hot key.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from skewless.engine.chunks import Chunks
from skewless.engine.columns import SIDE
from skewless.engine.dropped import Dropped
from skewless.engine.intake import gather, without_control
from skewless.engine.ledger import Ledger
from skewless.engine.setting import Setting
from skewless.kernels.equijoin import Probe, probe
from skewless.kernels.narrowing import narrowed
from skewless.kernels.near import NearCondition
from skewless.kernels.runs import SortedRun
from skewless.kernels.warmup import compile_near, compile_sets
from skewless.load.heavy import STANDING_OUT, Detail
from skewless.operators.join.matched import Mask, mark
from skewless.operators.join.pairing import given_alone, paired
from skewless.operators.join.reading import opened
from skewless.operators.lookup.intake import StreamIntake
from skewless.operators.lookup.terms import Terms
from skewless.routing.route import Route
from skewless.state.segment import Segment


@dataclass(frozen=True)
class LookupTask:
    """Everything a task needs; the same for all instances of a batch, and picklable."""

    terms: Terms
    setting: Setting
    route: Route
    detail: Detail = STANDING_OUT

    def run(
        self, instance: int | None, batches: Iterator[pa.RecordBatch]
    ) -> Iterator[pa.RecordBatch]:
        """Yields what the rows of one instance give, then writes its report.

        `instance` is None where only the rows can tell: then every row carries it.
        """
        yield from _Execution(self).run(instance, batches)


class _Execution:
    """One pass over one instance's rows."""

    def __init__(self, task: LookupTask) -> None:
        self._task = task
        self._terms = task.terms
        if self._terms.by_sets:
            compile_sets()
        elif self._terms.condition is not None:
            compile_near()
        setting = task.setting
        self._ledger = Ledger(setting.storage, setting.names, task.route.partitions, task.detail)
        self._dropped = Dropped(setting.storage, setting.names, keep=setting.keep_dropped)
        self._intake = StreamIntake(self._terms, self._dropped, drop_bad_rows=setting.drop_bad_rows)
        self._chunks = Chunks(self._terms.limits)
        self._readable: list[Segment] | None = None

    def run(
        self, instance: int | None, batches: Iterator[pa.RecordBatch]
    ) -> Iterator[pa.RecordBatch]:
        setting = self._task.setting
        for rows, _ in gather(batches, self._terms.limits.run_bytes):
            setting.faults.reach("in_task", setting.names.batch)
            if SIDE in rows.schema.names:
                rows, named = without_control(rows)
                instance = named if instance is None else instance
            assert instance is not None, "every row names the instance where its task does not"
            needles, rest, hashes = self._intake.needles(rows)
            del rows
            self._dropped.flush(instance)
            self._ledger.count_rows(self._terms.stream, hashes)
            yield from self._looked_up(instance, needles)
            if self._gives_unmatched:
                yield from self._alone(rest, np.arange(rest.num_rows))
        assert instance is not None, "an empty instance is told which one it is"
        yield from self._chunks.flush()
        self._ledger.close(instance, self._intake.taken(), self._dropped)

    @property
    def _gives_unmatched(self) -> bool:
        """Whether a row of the stream that matches nothing is given."""
        return self._terms.stream in self._terms.how.padded

    def _looked_up(self, instance: int, needles: SortedRun) -> Iterator[pa.RecordBatch]:
        how = self._terms.how
        matched = np.zeros(needles.rows.num_rows, np.bool_)
        if len(needles):
            stored = list(self._stored(instance, needles))
            if self._terms.chooser is not None:
                yield from self._chosen(needles, stored, matched)
            else:
                for run in stored:
                    found = self._found(needles, run)
                    if found is not None:
                        yield from self._pairs(found, matched)
        if how.is_semi:
            yield from self._alone(needles.rows, np.flatnonzero(matched))
        elif self._gives_unmatched:
            yield from self._alone(needles.rows, np.flatnonzero(~matched))

    def _stored(self, instance: int, needles: SortedRun) -> Iterator[SortedRun]:
        """The stored rows of the table that the needles may meet."""
        terms, setting, route = self._terms, self._task.setting, self._task.route
        if self._readable is None:
            if terms.by_sets:
                # A row is where its own hash says, and may meet rows of all partitions.
                self._readable = list(setting.segments)
            else:
                self._readable = setting.segments.meeting(
                    terms.table, route.reads(instance), route.partitions
                )
        return opened(setting.storage, self._readable, terms.table, needles, terms.bounds)

    def _found(self, needles: SortedRun, stored: SortedRun) -> Probe | None:
        terms = self._terms
        lower, upper = terms.bounds.around(terms.stream)
        keys = terms.layout.key_columns
        found = probe(needles, stored, lower, upper, keys, terms.is_proven)
        if not found.total:
            return None
        self._ledger.comparisons += found.total
        if not terms.by_sets:
            hit = np.flatnonzero(found.count)
            self._ledger.count_matches(needles.hashes[hit], found.count[hit])
        return found

    def _pairs(self, found: Probe, matched: Mask) -> Iterator[pa.RecordBatch]:
        """The pairs of a probe; marks the rows of the stream that have any."""
        terms = self._terms
        condition = narrowed(terms.condition, terms.where, terms.stream)
        if not terms.how.gives_pairs:
            mark(found, terms.layout.key_columns, condition, self._chunks, matched)
            return
        for mine, theirs in self._chunks.portions(found, terms.layout.key_columns, condition):
            matched[mine] = True
            yield from self._given(found.needles, found.stored, mine, theirs)

    def _chosen(
        self, needles: SortedRun, stored: list[SortedRun], matched: Mask
    ) -> Iterator[pa.RecordBatch]:
        """Of all rows of the table that match, those that are given; in portions of needles."""
        terms = self._terms
        assert terms.chooser is not None, "asked where rows are chosen"
        condition = terms.condition if isinstance(terms.condition, NearCondition) else None
        at_once = max(1, terms.limits.run_bytes // terms.chooser.row_bytes)
        for begin in range(0, len(needles), at_once):
            some = _portion(needles, begin, at_once)
            choice = terms.chooser.begin(some, condition, terms.where)
            for number, run in enumerate(stored):
                found = self._found(some, run)
                if found is not None:
                    choice.meet(number, found, terms.layout.key_columns, terms.limits.chunk_rows)
            for number, mine, theirs in choice.chosen():
                matched[begin + mine] = True
                if not terms.how.gives_pairs:
                    continue
                for one, other in self._chunks.cut(some, stored[number], mine, theirs):
                    yield from self._given(some, stored[number], one, other)

    def _given(
        self,
        needles: SortedRun,
        stored: SortedRun,
        mine: npt.NDArray[np.int64],
        theirs: npt.NDArray[np.int64],
    ) -> Iterator[pa.RecordBatch]:
        terms = self._terms
        measure = terms.condition if isinstance(terms.condition, NearCondition) else None
        self._ledger.matches += len(mine)
        yield from self._chunks.add(
            paired(terms.layout, terms.stream, needles, stored, mine, theirs, measure)
        )

    def _alone(self, rows: pa.RecordBatch, at: npt.NDArray[np.int64]) -> Iterator[pa.RecordBatch]:
        """Rows of the stream without a row of the table."""
        terms = self._terms
        if terms.how.is_semi:
            self._ledger.matches += len(at)
        for some in given_alone(terms.layout, terms.stream, rows, at, terms.limits):
            yield from self._chunks.add(some)


def _portion(run: SortedRun, begin: int, count: int) -> SortedRun:
    """Some neighbouring rows of a run."""
    if begin == 0 and count >= len(run):
        return run
    here = slice(begin, begin + count)
    rows = run.rows.slice(begin, count)
    return SortedRun(run.hashes[here], run.times[here], rows, run.mixed_keys)
