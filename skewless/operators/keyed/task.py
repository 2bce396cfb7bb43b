"""What one instance does with its rows of one batch: add up, pair or call, store, report."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from skewless.engine.chunks import Limits
from skewless.engine.dropped import Dropped
from skewless.engine.ledger import Ledger
from skewless.engine.setting import Setting
from skewless.kernels.runs import SortedRun
from skewless.load.heavy import STANDING_OUT, Detail
from skewless.operators.keyed.aggregating import Aggregating
from skewless.operators.keyed.calling import Calling
from skewless.operators.keyed.intake import Intake
from skewless.operators.keyed.layout import INPUT, Layout
from skewless.operators.keyed.lifetimes import Lifetimes
from skewless.operators.keyed.pairing import Pairing
from skewless.operators.keyed.process import Function, Process, SelfJoin
from skewless.operators.keyed.reading import opened
from skewless.operators.keyed.windows import Window
from skewless.routing.table import TableRoute
from skewless.state.compaction import Merge, choose_merges, expired
from skewless.state.watermark import Delays


@dataclass(frozen=True)
class KeyedTask:
    """Everything a task needs; the same for all instances of a batch, and picklable."""

    setting: Setting
    layout: Layout
    process: Process
    window: Window
    mode: str
    delays: Delays
    route: TableRoute
    watermark_us: int | None  # what is due up to here has been given out
    previous_us: int | None  # the watermark a batch earlier
    max_time_us: int | None
    detail: Detail = STANDING_OUT
    limits: Limits = field(default_factory=Limits)

    @property
    def lifetimes(self) -> Lifetimes:
        return Lifetimes(self.process, self.window, self.delays.by_side[INPUT])

    @property
    def closed_us(self) -> int | None:
        """No row may be added to a window that ends at this time or before; None: to any."""
        return None if self.delays.by_side[INPUT] is None else self.watermark_us

    def opened(self, side: str, partitions: frozenset[int]) -> list[SortedRun]:
        """The stored rows of a side that may be of these partitions."""
        return opened(
            self.setting.storage, self.setting.segments, side, partitions, self.route.partitions
        )

    def merges(self, instance: int) -> list[Merge]:
        """What an instance has to merge. Only what lives: sessions are carried on before."""
        keep = self.lifetimes.keep_from_us(self.watermark_us)
        mine = self.setting.segments.written_by(instance, self.route.instances)
        live = [s for s in mine if not expired(s, keep)]
        return choose_merges(live, keep, self.lifetimes.kept_us())

    def run(
        self, instance: int | None, batches: Iterator[pa.RecordBatch]
    ) -> Iterator[pa.RecordBatch]:
        """Yields what one instance has to give at once, then writes its segments and its report.

        `instance` is None where only the rows can tell: then every row carries it.
        """
        dropped = Dropped(self.setting.storage, self.setting.names, keep=self.setting.keep_dropped)
        intake = Intake(
            self.layout,
            self.lifetimes,
            self.closed_us,
            dropped,
            drop_bad_rows=self.setting.drop_bad_rows,
            drop_null_keys=isinstance(self.process, SelfJoin),
            reads_time=INPUT not in self.delays.given,
            limits=self.limits,
        )
        ledger = Ledger(
            self.setting.storage, self.setting.names, self.route.partitions, self.detail
        )
        work: Aggregating | Pairing | Calling
        if isinstance(self.process, SelfJoin):
            work = Pairing(self, self.process, intake, ledger)
        elif isinstance(self.process, Function):
            work = Calling(self, self.process, intake, ledger)
        else:
            work = Aggregating(self, self.process.measures, intake, ledger)
        for rows, named, last in intake.pieces(batches, work.run_bytes):
            self.setting.faults.reach("in_task", self.setting.names.batch)
            instance = named if instance is None else instance
            assert instance is not None, "every row names the instance where its task does not"
            dropped.flush(instance)
            ledger.count_rows(INPUT, np.sort(rows.hashes))
            yield from work.take(instance, rows, last)
        assert instance is not None, "an empty instance is told which one it is"
        yield from work.finish(instance)
        ledger.merge(instance, self.merges(instance), work.combine)
        ledger.close(instance, intake.taken(), dropped)
