"""The second half of a batch: gives out the groups that the new watermark has closed."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from skewless.engine.chunks import Limits, bounded
from skewless.engine.intake import named_instance
from skewless.engine.moments import shown_time
from skewless.kernels.ordering import IndexArray
from skewless.kernels.runs import SortedRun
from skewless.kernels.windows import windows_of
from skewless.operators.keyed.arranging import arrange_due, woken_rows
from skewless.operators.keyed.calling import call
from skewless.operators.keyed.layout import INPUT, Layout
from skewless.operators.keyed.process import Function, Process, SelfJoin
from skewless.operators.keyed.reading import opened, portions, within
from skewless.operators.keyed.sessions import Due, closed
from skewless.operators.keyed.summary import Summary, taken
from skewless.operators.keyed.windows import SessionWindow, Window, Windows
from skewless.routing.table import TableRoute
from skewless.state.manifest import Segments
from skewless.state.storage import Storage

# About what a stored partial takes while it is merged.
_PARTIAL_BYTES = 256


@dataclass(frozen=True)
class EmitTask:
    """Reads the state and writes nothing, so that it may run any number of times.

    Gives the groups due in (after, until]. A partition has one owner, so a group comes from one
    instance, also where its key was split.
    """

    storage: Storage
    layout: Layout
    process: Process
    window: Window
    route: TableRoute
    segments: Segments
    after_us: int | None
    until_us: int
    batch: int
    limits: Limits = field(default_factory=Limits)

    @property
    def instances(self) -> int:
        return self.route.instances

    @property
    def _portion_rows(self) -> int:
        """Stored rows that are merged at a time; whole keys, so a hot key may make it more."""
        return max(1, self.limits.run_bytes // _PARTIAL_BYTES)

    def run(
        self, instance: int | None, batches: Iterator[pa.RecordBatch]
    ) -> Iterator[pa.RecordBatch]:
        """Yields the groups of the partitions that the instance owns, in bounded pieces."""
        instance = named_instance(batches) if instance is None else instance
        assert instance is not None, "every row names the instance where its task does not"
        partitions = self.route.table.partitions_of(instance)
        for batch in self._batches(instance, partitions):
            yield from bounded(batch, self.limits)

    def _batches(self, instance: int, partitions: frozenset[int]) -> Iterator[pa.RecordBatch]:
        assert not isinstance(self.process, SelfJoin), "a self-join gives its pairs at once"
        runs = opened(self.storage, self.segments, INPUT, partitions, self.route.partitions)
        if isinstance(self.process, Function):
            yield from self._called(instance, runs, self.process)
            return
        summary = Summary(self.layout, self.process.measures, self.window)
        due = self._due(instance)
        for low, high in portions([r.hashes[due.chosen(r)] for r in runs], self._portion_rows):
            groups = self._closed(summary, [within(r, low, high) for r in runs], due)
            if groups is not None and len(groups):
                yield summary.output(groups)

    def _due(self, instance: int) -> Due:
        return Due(self.route.table, instance, self.after_us, self.until_us)

    def _closed(self, summary: Summary, runs: list[SortedRun], due: Due) -> SortedRun | None:
        if isinstance(self.window, SessionWindow):
            return closed(summary, runs, due)
        parts = [taken(run, due.chosen(run)) for run in runs]
        parts = [part for part in parts if len(part)]
        return summary.merged(parts) if parts else None

    def _called(
        self, instance: int, runs: list[SortedRun], process: Function
    ) -> Iterator[pa.RecordBatch]:
        """Calls the function with all the rows of the windows that have closed."""
        due = self._due(instance)
        assert isinstance(self.window, Windows), "rows wait for windows that close"
        size, slide = self.window.size_us, self.window.slide_us
        waiting = [taken(run, self._waiting(run, due, self.window.spread_us)) for run in runs]
        waiting = [run for run in waiting if len(run)]
        if not waiting:
            return
        rows = woken_rows(waiting, self.layout, self.limits)
        at, dues = windows_of(rows.times, size, slide)
        ending = dues <= due.until_us
        if due.after_us is not None:
            ending &= dues > due.after_us
        if not ending.any():
            return
        called = arrange_due(rows, at[ending], dues[ending], self.layout, self.window, self.limits)
        until = shown_time(self.until_us)
        where = f"instance {instance}, batch {self.batch}, windows up to {until}"
        # A window that has closed keeps no state: what the function returns of it is dropped.
        out, _ = call(process, called, None, where, self.limits)
        if out is not None:
            yield from out.to_batches()

    def _waiting(self, run: SortedRun, due: Due, spread_us: int) -> IndexArray:
        """Rows of which some window may end in (after, until]."""
        alive = run.times - spread_us <= due.until_us
        if due.after_us is not None:
            alive &= run.times > due.after_us
        at = np.flatnonzero(alive)
        return at[due.table.route(run.hashes[at]) == due.instance]
