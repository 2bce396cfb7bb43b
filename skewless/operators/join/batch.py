"""The join of two inputs that do not stream, as one instance sees it: one batch with all rows."""

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain

import pyarrow as pa

from skewless.engine.columns import INSTANCE
from skewless.engine.setting import Setting
from skewless.load.report import read_reports
from skewless.operators.join.operator import JoinOperator
from skewless.routing.route import Route
from skewless.state.commit import CommitLog
from skewless.state.manifest import StoredSegments
from skewless.state.naming import MANIFESTS, REPORTS, SEGMENTS, BatchNames
from skewless.state.storage import Storage

# A watermark that has passed every row, whatever the bounds: all is due.
_END_US = 2**62 + 2**61
_NAMES = BatchNames(0, 0, "batch")


@dataclass(frozen=True)
class BatchTask:
    """The first batch of a join, and the last: what waits for the watermark is due at its end.

    State lives in a directory of the task alone, and goes with it. Every key has one instance, so
    no task asks for what another one stores.
    """

    operator: JoinOperator
    route: Route

    def run(
        self, instance: int | None, batches: Iterator[pa.RecordBatch]
    ) -> Iterator[pa.RecordBatch]:
        """Yields the pairs of the instance that its rows name."""
        first = next((batch for batch in batches if batch.num_rows), None)
        if first is None:
            return
        instance = int(first.column(INSTANCE)[0].as_py())
        with tempfile.TemporaryDirectory(prefix="skewless-") as directory:
            yield from self._joined(Storage(directory), instance, chain([first], batches))

    def _joined(
        self, storage: Storage, instance: int, batches: Iterator[pa.RecordBatch]
    ) -> Iterator[pa.RecordBatch]:
        for folder in (f"{SEGMENTS}/{_NAMES.folder}", f"{REPORTS}/{_NAMES.folder}", MANIFESTS):
            storage.make_directory(folder)
        before = replace(self.operator.initial_state(1), route=self.route)
        task = self.operator.task(before, Setting(storage, _NAMES, StoredSegments(storage)))
        yield from task.run(instance, batches)
        if not self.operator.emits:
            return
        (report,) = read_reports(storage, [_NAMES.report(instance)])
        after = replace(before, segments=tuple(report.segments), watermark_us=_END_US)

        def stored() -> StoredSegments:
            return CommitLog(storage).stored(after.segments, _NAMES.batch, _NAMES.operator)

        emission = self.operator.emission(before, after, storage, stored, _NAMES.batch)
        if emission is not None:
            yield from emission.run(instance, iter(()))
