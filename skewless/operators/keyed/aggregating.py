"""Aggregates of one instance's batch: partials in, and in update mode the changed groups out."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from skewless.engine.chunks import bounded
from skewless.engine.ledger import Ledger, live
from skewless.kernels.runs import SortedRun
from skewless.operators.keyed.intake import Intake, Rows
from skewless.operators.keyed.layout import INPUT
from skewless.operators.keyed.process import Measure
from skewless.operators.keyed.sessions import Due, carried
from skewless.operators.keyed.summary import Summary
from skewless.operators.keyed.windows import SessionWindow
from skewless.state.compaction import Merge

if TYPE_CHECKING:
    from skewless.operators.keyed.task import KeyedTask


class Aggregating:
    """One pass over one instance's rows; one segment of partials, however many rows."""

    def __init__(
        self, task: "KeyedTask", measures: tuple[Measure, ...], intake: Intake, ledger: Ledger
    ) -> None:
        self._task = task
        self._ledger = ledger
        self._summary = Summary(task.layout, measures, task.window)
        self._parts: list[SortedRun] = []
        self.run_bytes = task.limits.run_bytes

    def take(self, instance: int, rows: Rows, last: bool) -> Iterator[pa.RecordBatch]:
        """Adds up a piece of the batch; nothing can be given out before the last."""
        if len(rows):
            self._parts.append(self._summary.partials(rows, self._task.closed_us))
        yield from ()

    def finish(self, instance: int) -> Iterator[pa.RecordBatch]:
        """Gives out the changed groups where they are wanted, and stores the partials."""
        if self._task.mode == "update" and self._parts:
            yield from self._changed(instance, self._merged())
        carry = self._carry(instance)
        if carry is not None:
            self._parts.append(carry)
        if self._parts:
            self._ledger.store(instance, INPUT, self._merged())

    def combine(self, merge: Merge, runs: list[SortedRun]) -> SortedRun | None:
        """Merging state: one partial for each group that is still open."""
        keep = self._task.lifetimes.keep_from_us(self._task.watermark_us)[merge.side]
        runs = [run for run in (live(run, keep) for run in runs) if len(run)]
        return self._summary.merged(runs) if runs else None

    def _merged(self) -> SortedRun:
        if len(self._parts) > 1:
            self._parts = [self._summary.merged(self._parts)]
        return self._parts[0]

    def _changed(self, instance: int, new: SortedRun) -> Iterator[pa.RecordBatch]:
        """The groups of this batch with all that is stored of them."""
        task = self._task
        stored = task.opened(INPUT, task.route.reads(instance))
        groups = self._summary.completed(new, stored)
        self._ledger.count_matches(groups.hashes, np.ones(len(groups), np.int64))
        self._ledger.matches += len(groups)
        yield from bounded(self._summary.output(groups), task.limits)

    def _carry(self, instance: int) -> SortedRun | None:
        task = self._task
        if not isinstance(task.window, SessionWindow) or task.watermark_us is None:
            return None
        partitions = task.route.table.partitions_of(instance)
        due = Due(task.route.table, instance, task.previous_us, task.watermark_us)
        return carried(self._summary, task.opened(INPUT, partitions), due)
