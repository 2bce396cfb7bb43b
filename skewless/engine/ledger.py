"""What every task with state keeps account of: segments written, merges, the report."""

import time
import uuid
from collections.abc import Callable, Sequence
from typing import Any

from skewless.engine.columns import TIME
from skewless.engine.dropped import Dropped
from skewless.engine.intake import Taken
from skewless.kernels.ordering import HashArray, IndexArray
from skewless.kernels.runs import SortedRun
from skewless.kernels.warmup import compile_kernels
from skewless.load.counts import TaskCounts
from skewless.load.heavy import STANDING_OUT, Detail
from skewless.load.memory import peak_memory_bytes
from skewless.load.report import Report, write_report
from skewless.state.compaction import Merge
from skewless.state.naming import BatchNames
from skewless.state.segment import Segment, open_segment, write_segment
from skewless.state.storage import Storage

Combine = Callable[[Merge, list[SortedRun]], SortedRun | None]


class Ledger:
    """The account of one instance's pass over its rows of one batch."""

    def __init__(
        self, storage: Storage, names: BatchNames, partitions: int, detail: Detail = STANDING_OUT
    ) -> None:
        self._storage = storage
        self._names = names
        self._partitions = partitions
        compile_kernels()
        self._wall = time.perf_counter()
        self._cpu = time.process_time()
        # The order of arrival decides how rows of equal time lie, and how a large input falls into
        # pieces: a report must name only files that its own run has written.
        self._nonce = uuid.uuid4().hex[:8]
        self._counts = TaskCounts(partitions, detail)
        self.matches = 0  # what was given
        self.comparisons = 0  # what was looked at to find it, where that is more
        self.probing: dict[str, Any] | None = None
        self.corners: dict[str, Any] | None = None
        self.written: list[Segment] = []
        self._replaced: list[str] = []

    @property
    def wall_ms(self) -> float:
        """How long the task has taken so far."""
        return 1e3 * (time.perf_counter() - self._wall)

    def count_rows(self, side: str, sorted_hashes: HashArray) -> None:
        """The rows of a side that are at home here."""
        if len(sorted_hashes):
            self._counts.add_rows(side, sorted_hashes)

    def count_matches(self, sorted_hashes: HashArray, counts: IndexArray) -> None:
        """How much the rows of these hashes gave, as far as their hashes tell."""
        if len(sorted_hashes):
            self._counts.add_matches(sorted_hashes, counts)

    def store(self, instance: int, side: str, run: SortedRun) -> None:
        """Writes the rows of this batch; a run without rows leaves no file."""
        if len(run):
            batch = self._names.batch
            part = f"{self._nonce}-{len(self.written):04d}"
            self._write(instance, side, run, part, instance, 0, (batch, batch))

    def merge(self, instance: int, merges: Sequence[Merge], combine: Combine) -> None:
        """Does this instance's merges; `combine` gives the rows that live on, or None."""
        for number, merge in enumerate(merges):
            combined = combine(
                merge, [open_segment(self._storage, s, TIME) for s in merge.segments]
            )
            self._replaced += [s.name for s in merge.segments]
            if combined is None or not len(combined):
                continue
            self._write(
                instance,
                merge.side,
                combined,
                f"{self._nonce}-m{number:03d}",
                merge.instance,
                1 + max(s.level for s in merge.segments),
                (
                    min(s.first_batch for s in merge.segments),
                    max(s.last_batch for s in merge.segments),
                ),
            )

    def close(self, instance: int, taken: Taken, dropped: Dropped) -> None:
        """Leaves the report behind: the batch is done."""
        dropped.close(instance)
        report = Report(
            instance=instance,
            rows=taken.rows,
            replicas=taken.replicas,
            late=taken.late,
            null_keys=taken.null_keys,
            bad_rows=taken.bad_rows,
            max_time_us=taken.max_time_us,
            matches=self.matches,
            comparisons=max(self.comparisons, self.matches),
            probing=self.probing,
            corners=self.corners,
            cpu_ms=1e3 * (time.process_time() - self._cpu),
            wall_ms=self.wall_ms,
            peak_memory_bytes=peak_memory_bytes(),
            segments=self.written,
            replaced=self._replaced,
            partitions=self._counts.partitions(),
            hot_keys=self._counts.hot_keys(),
            dropped=dropped.samples,
            dropped_files=dropped.files,
        )
        write_report(self._storage, self._names.report(instance), report)

    def _write(
        self,
        instance: int,
        side: str,
        run: SortedRun,
        part: str,
        owner: int,
        level: int,
        batches: tuple[int, int],
    ) -> None:
        self.written.append(
            write_segment(
                self._storage,
                self._names.segment(instance, side, part),
                run,
                side=side,
                instance=owner,
                level=level,
                batches=batches,
                partitions=self._partitions,
            )
        )


def live(run: SortedRun, keep_from_us: int | None) -> SortedRun:
    """The rows of a run that are not dead."""
    if keep_from_us is None or not len(run):
        return run
    return run.kept(run.times >= keep_from_us)
