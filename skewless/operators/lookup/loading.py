"""Stores a copy of the table, before the rows of a batch are looked up in it."""

import uuid
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from skewless.engine.badrows import bad_row
from skewless.engine.intake import gather
from skewless.engine.loading import told
from skewless.engine.setting import Setting
from skewless.kernels.warmup import compile_kernels, compile_near, compile_sets
from skewless.operators.lookup.intake import Mask, examined, stored_run
from skewless.operators.lookup.terms import Terms
from skewless.state.segment import write_segment


@dataclass(frozen=True)
class LoadTask:
    """Writes its part of the table as segments, and gives a description of each.

    The descriptions come back as rows of the job, so only those of tasks that Spark has accepted
    count. A task that runs twice leaves a file that nobody names.
    """

    terms: Terms
    setting: Setting
    partitions: int  # in which stored rows are counted

    def run(
        self, instance: int | None, batches: Iterator[pa.RecordBatch]
    ) -> Iterator[pa.RecordBatch]:
        """Yields (segment, bad rows) of every piece that it has stored."""
        compile_kernels()
        if self.terms.by_sets:
            compile_sets()
        elif self.terms.condition is not None:
            compile_near()
        names, side = self.setting.names, self.terms.table
        nonce = uuid.uuid4().hex[:8]
        for number, (rows, _) in enumerate(gather(batches, self.terms.limits.run_bytes)):
            self.setting.faults.reach("in_task", names.batch)
            of = examined(self.terms, side, rows)
            bad = 0 if of.flawed is None else self._refused(of.rows, of.flawed)
            run = stored_run(self.terms, of)
            segment = None
            if len(run):
                segment = write_segment(
                    self.setting.storage,
                    names.segment(instance or 0, side, f"{nonce}-{number:04d}"),
                    run,
                    side=side,
                    instance=instance or 0,
                    level=0,
                    batches=(names.batch, names.batch),
                    partitions=self.partitions,
                )
            yield told(segment, bad)

    def _refused(self, rows: pa.RecordBatch, bad: Mask) -> int:
        assert self.terms.postings is not None, "only what it is compared by can be flawed"
        if bad.any() and not self.setting.drop_bad_rows:
            shown = self.terms.layout.as_input(self.terms.table, rows)
            raise bad_row(f"the {self.terms.table} input", self.terms.postings.flaw, shown, bad)
        return int(bad.sum())
