"""The self-join of one instance's batch: pairs of two rows of a key, the earlier on the left."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from skewless.engine.chunks import Chunks
from skewless.engine.columns import TIME
from skewless.engine.ledger import Ledger, live
from skewless.errors import bad_argument
from skewless.kernels.equijoin import Probe, probe
from skewless.kernels.runs import SortedRun, concatenate, sort_run
from skewless.operators.keyed.intake import Intake, Rows
from skewless.operators.keyed.layout import INPUT, Layout
from skewless.operators.keyed.process import SelfJoin
from skewless.state.compaction import Merge
from skewless.state.segment import Segment, open_segment

if TYPE_CHECKING:
    from skewless.operators.keyed.task import KeyedTask


def pair_schema(layout: Layout, suffix: str) -> pa.Schema:
    """The key columns, the earlier row's other columns, the later row's with the suffix."""
    others = [f for f in layout.schema if f.name not in layout.by]
    fields = [layout.schema.field(name) for name in layout.by]
    fields += others + [f.with_name(f.name + suffix) for f in others]
    names = [f.name for f in fields]
    taken = sorted({n for n in names if names.count(n) > 1})
    if taken:
        raise bad_argument("suffix", suffix, f"a suffix that makes {taken} unique")
    return pa.schema([(f.name, f.type) for f in fields])


class Pairing:
    """One pass over one instance's rows."""

    def __init__(
        self, task: "KeyedTask", process: SelfJoin, intake: Intake, ledger: Ledger
    ) -> None:
        self._task = task
        self._within = process.within_us
        self._intake = intake
        self._ledger = ledger
        self._chunks = Chunks(task.limits)
        layout = task.layout
        self._schema = pair_schema(layout, process.suffix)
        self._others = [layout.sources[n] for n in layout.schema.names if n not in layout.by]
        self.run_bytes = task.limits.run_bytes

    def take(self, instance: int, rows: Rows, last: bool) -> Iterator[pa.RecordBatch]:
        """The pairs of a piece of the batch with the state, the pieces before it, and itself."""
        layout = self._task.layout
        run = sort_run(
            rows.hashes, rows.times, rows.columns, layout.keys, hash_is_key=layout.hash_is_key
        )
        if not len(run):
            return
        task = self._task
        partitions = task.route.reads(instance)
        old = task.setting.segments.meeting(INPUT, partitions, task.route.partitions)
        for segments in (old, list(self._ledger.written)):
            for stored in self._opened(run, segments):
                yield from self._pairs(run, stored, -self._within, 0, stored_first=True)
                yield from self._pairs(run, stored, 1, self._within, stored_first=False)
        yield from self._own_pairs(run)
        # Rows of a later piece of this batch may still meet every row of this one.
        self._ledger.store(instance, INPUT, self._still_needed(run) if last else run)

    def finish(self, instance: int) -> Iterator[pa.RecordBatch]:
        yield from self._chunks.flush()

    def combine(self, merge: Merge, runs: list[SortedRun]) -> SortedRun | None:
        """Merging state: the rows that a later one may still meet."""
        keep = self._task.lifetimes.keep_from_us(self._task.watermark_us)[merge.side]
        runs = [run for run in (live(run, keep) for run in runs) if len(run)]
        if not runs:
            return None
        layout = self._task.layout
        return sort_run(
            np.concatenate([r.hashes for r in runs]),
            np.concatenate([r.times for r in runs]),
            concatenate([r.rows for r in runs]),
            layout.keys,
            hash_is_key=layout.hash_is_key,
        )

    def _opened(self, needles: SortedRun, segments: Sequence[Segment]) -> Iterator[SortedRun]:
        earliest = int(needles.times.min()) - self._within
        latest = int(needles.times.max()) + self._within
        for segment in segments:
            if segment.max_time_us >= earliest and segment.min_time_us <= latest:
                yield open_segment(self._task.setting.storage, segment, TIME)

    def _pairs(
        self, needles: SortedRun, stored: SortedRun, lower: int, upper: int, *, stored_first: bool
    ) -> Iterator[pa.RecordBatch]:
        if lower > upper:
            return
        layout = self._task.layout
        found = probe(needles, stored, lower, upper, layout.keys, layout.hash_is_key)
        yield from self._emit(found, stored_first=stored_first)

    def _own_pairs(self, run: SortedRun) -> Iterator[pa.RecordBatch]:
        """A row meets those that stand after it: each pair once, and no row itself."""
        layout = self._task.layout
        found = probe(run, run, 0, self._within, layout.keys, layout.hash_is_key)
        after = np.maximum(found.start, np.arange(1, len(run) + 1))
        count = np.maximum(found.start + found.count - after, 0)
        start = np.where(count > 0, after, 0)
        total = int(count.sum())
        yield from self._emit(replace(found, start=start, count=count, total=total))

    def _emit(self, found: Probe, *, stored_first: bool = False) -> Iterator[pa.RecordBatch]:
        if not found.total:
            return
        hit = np.flatnonzero(found.count)
        self._ledger.count_matches(found.needles.hashes[hit], found.count[hit])
        for needle, other in self._chunks.portions(found, self._task.layout.keys):
            self._ledger.matches += len(needle)
            sides = [(found.needles, needle), (found.stored, other)]
            yield from self._chunks.add(self._joined(*(sides[::-1] if stored_first else sides)))

    def _joined(
        self,
        earlier: tuple[SortedRun, npt.NDArray[np.int64]],
        later: tuple[SortedRun, npt.NDArray[np.int64]],
    ) -> pa.RecordBatch:
        left, right = (pa.array(at) for _, at in (earlier, later))
        columns = [earlier[0].rows.column(k).take(left) for k in self._task.layout.keys]
        columns += [earlier[0].rows.column(c).take(left) for c in self._others]
        columns += [later[0].rows.column(c).take(right) for c in self._others]
        wanted = self._schema
        columns = [
            c if c.type == f.type else c.cast(f.type) for c, f in zip(columns, wanted, strict=True)
        ]
        return pa.RecordBatch.from_arrays(columns, schema=wanted)

    def _still_needed(self, run: SortedRun) -> SortedRun:
        """Leaves out rows that this task already knows no later batch can meet."""
        task = self._task
        seen = [t for t in (task.max_time_us, self._intake.max_time_us) if t is not None]
        newest = {INPUT: max(seen, default=None)}
        watermark = task.delays.watermark(newest, task.watermark_us)
        return live(run, task.lifetimes.keep_from_us(watermark)[INPUT])
