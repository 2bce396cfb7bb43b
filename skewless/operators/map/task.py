"""What one instance does with its rows of one batch: call the function, time it, report."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from skewless.engine.chunks import Limits
from skewless.engine.dropped import Dropped
from skewless.engine.setting import Setting
from skewless.errors import SkewlessError
from skewless.failures import FunctionError, account, counted, shortened
from skewless.load.memory import peak_memory_bytes
from skewless.load.report import Report, write_report
from skewless.load.sketches import CostSketch, Hashes
from skewless.operators.map.assign import AssignTask
from skewless.operators.map.function import MapFunction
from skewless.operators.map.layout import MapLayout
from skewless.operators.map.outcome import Outcome, Row, RowTimeoutError
from skewless.operators.map.output import batches_of, batches_of_rows, rows_of
from skewless.operators.map.probes import CallTimes, probes
from skewless.operators.map.rows import call_rows
from skewless.operators.map.sizes import Sizes
from skewless.operators.strict import OutputError

INPUT = "input"
# Results of single rows are passed on, and their times learned, in groups of this size.
_ROWS_AT_ONCE = 1024
_CALLS_AT_ONCE = 512


class MapRowError(SkewlessError):
    """The function of a map failed on a row, while the option badRows says "fail"."""


@dataclass(frozen=True)
class MapTask:
    """Everything a task needs; the same for all instances of a batch, and picklable."""

    setting: Setting
    layout: MapLayout
    schema: pa.Schema  # of the output
    function: MapFunction
    assign: AssignTask  # sends rows to instances by their estimated costs
    blank: CostSketch | None  # None: nothing is learned
    clock: Callable[[], float] = time.perf_counter
    limits: Limits = field(default_factory=Limits)

    def run(
        self, instance: int | None, batches: Iterator[pa.RecordBatch]
    ) -> Iterator[pa.RecordBatch]:
        """Yields the results of one instance, then writes its report.

        `instance` is None where only the rows can tell: then every row carries it.
        """
        yield from _Execution(self, instance).run(batches)


class _Done(NamedTuple):
    """A row, and the rows that its call gave."""

    row: Row
    results: Sequence[Mapping[str, Any]]
    size: int


class _Execution:
    """One pass over one instance's rows."""

    def __init__(self, task: MapTask, instance: int | None) -> None:
        self._task = task
        self._instance = instance
        self._wall = task.clock()
        self._cpu = time.process_time()
        self._sketch = task.blank
        self._dropped = Dropped(
            task.setting.storage, task.setting.names, keep=task.setting.keep_dropped
        )
        self._input: pa.Schema | None = None
        self._sizes = Sizes(task.schema)
        self._rows = self._bad_rows = self._output_rows = 0
        self._busy_ms = self._estimated_ms = 0.0

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        task = self._task
        unpacked = self._unpacked(batches)
        results = self._by_row(unpacked) if task.function.per_row else self._by_batch(unpacked)
        for result in results:
            self._output_rows += result.num_rows
            if result.num_rows:
                yield result
        assert self._instance is not None, "an empty instance is told which one it is"
        self._dropped.close(self._instance)
        write_report(
            task.setting.storage,
            task.setting.names.report(self._instance),
            self._report(self._instance),
        )

    def _unpacked(
        self, batches: Iterator[pa.RecordBatch]
    ) -> Iterator[tuple[pa.RecordBatch, Hashes]]:
        task = self._task
        for batch in batches:
            task.setting.faults.reach("in_task", task.setting.names.batch)
            rows, hashes, named = task.layout.unpack(batch)
            self._instance = named if self._instance is None else self._instance
            self._input = rows.schema
            self._rows += rows.num_rows
            if rows.num_rows:
                yield rows, hashes

    def _by_batch(
        self, unpacked: Iterator[tuple[pa.RecordBatch, Hashes]]
    ) -> Iterator[pa.RecordBatch]:
        task = self._task
        learns = self._sketch is not None
        calls = CallTimes()
        for number, (rows, hashes) in enumerate(unpacked):
            pieces = iter([(rows, hashes)])
            if learns:
                # Another mixture of keys for every batch, instance and Arrow batch.
                salt = (task.setting.names.batch << 32) + ((self._instance or 0) << 16) + number
                pieces = probes(rows, hashes, salt)
            for piece, keys in pieces:
                began = task.clock()
                found = self._called(piece)
                took_ms = 1e3 * (task.clock() - began)
                self._busy_ms += took_ms
                if learns:
                    calls.add(keys, took_ms)
                    if len(calls) >= _CALLS_AT_ONCE:
                        self._learn_calls(calls)
                        calls = CallTimes()
                yield from found
        self._learn_calls(calls)

    def _called(self, piece: pa.RecordBatch) -> list[pa.RecordBatch]:
        """What the function gives for a batch.

        A lazy result works while it is consumed, and that belongs to the call.
        """
        task = self._task
        at = f"fn of sk.map failed on {counted(piece.num_rows, 'row')} ({self._place})"
        try:
            return list(batches_of(task.function.fn(piece), task.schema, task.limits))
        except OutputError as misfit:
            raise OutputError(f"fn gave {misfit} ({self._place})") from misfit
        except Exception as failure:
            raise FunctionError(account(failure, at)) from failure

    @property
    def _place(self) -> str:
        return f"instance {self._instance}, batch {self._task.setting.names.batch}"

    def _learn_calls(self, calls: CallTimes) -> None:
        if self._sketch is None or not len(calls):
            return
        keys = calls.keys()
        estimates = self._task.assign.dealing.mean_costs(keys)
        rows, times = calls.explain(estimates)
        self._estimated_ms += float(rows @ estimates)
        self._sketch = self._sketch.update_items(keys, rows, times)

    def _by_row(
        self, unpacked: Iterator[tuple[pa.RecordBatch, Hashes]]
    ) -> Iterator[pa.RecordBatch]:
        task = self._task
        rows = (
            Row(key, values)
            for batch, hashes in unpacked
            for key, values in zip(hashes.tolist(), batch.to_pylist(), strict=True)
        )
        outcomes = call_rows(task.function, rows, task.clock)
        done: list[_Done] = []
        keys: list[int] = []
        took_ms: list[float] = []
        results = size = 0
        try:
            for outcome in outcomes:
                keys.append(outcome.row.hash)
                took_ms.append(1e3 * outcome.took_s)
                done.append(self._accepted(outcome))
                results += len(done[-1].results)
                size += done[-1].size
                full = results >= _ROWS_AT_ONCE or size >= task.limits.chunk_bytes
                if full or len(keys) >= _ROWS_AT_ONCE:
                    self._learn_rows(keys, took_ms)
                    yield from self._converted(done)
                    done, keys, took_ms, results, size = [], [], [], 0, 0
        finally:
            # Also when the consumer stops early: no call may outlive the task.
            outcomes.close()
        self._learn_rows(keys, took_ms)
        yield from self._converted(done)

    def _accepted(self, outcome: Outcome) -> _Done:
        """The rows that a call gave; none where it failed and that is allowed."""
        row, failure = outcome.row, outcome.failure
        if failure is not None:
            self._bad(row, failure)
            return _Done(row, (), 0)
        try:
            results = rows_of(outcome.result)
        except OutputError as misfit:
            self._bad(row, misfit)
            return _Done(row, (), 0)
        return _Done(row, results, sum(map(self._sizes.of, results)))

    def _converted(self, done: Sequence[_Done]) -> list[pa.RecordBatch]:
        """Results as batches; those that do not fit are looked for one by one."""
        try:
            return self._batches(done)
        except OutputError:
            good: list[_Done] = []
            for each in done:
                try:
                    self._batches([each])
                    good.append(each)
                except OutputError as misfit:
                    self._bad(each.row, misfit)
            return self._batches(good)

    def _batches(self, done: Sequence[_Done]) -> list[pa.RecordBatch]:
        task = self._task
        rows = [row for each in done for row in each.results]
        return batches_of_rows(rows, task.schema, self._sizes, task.limits)

    def _bad(self, row: Row, failure: BaseException) -> None:
        """Drops the row, or stops the batch."""
        self._bad_rows += 1
        if self._task.setting.drop_bad_rows:
            assert self._input is not None, "a row came in with others of its kind"
            self._dropped.take_row(INPUT, row.values, self._input, f"bad row: {_reason(failure)}")
            if self._instance is not None:
                self._dropped.flush(self._instance)
            return
        tries = self._task.function.retries + 1
        often = ""
        told = _reason(failure)
        if not isinstance(failure, OutputError):
            often = f", tried {tries} times" if tries > 1 else ""
            told = told if isinstance(failure, RowTimeoutError) else account(failure)
        raise MapRowError(
            f"{told}\n"
            f"bad row: fn of sk.map failed on a row ({self._place}{often})\n"
            f"the row: {shortened(repr(row.values))}\n"
            'Fix the function or the input, or start with .option("badRows", "drop")'
        ) from failure

    def _learn_rows(self, keys: list[int], took_ms: list[float]) -> None:
        times = np.array(took_ms, np.float64)
        self._busy_ms += float(times.sum())
        if self._sketch is None or not keys:
            return
        hashes = np.array(keys, np.uint64)
        self._estimated_ms += float(self._task.assign.dealing.mean_costs(hashes).sum())
        self._sketch = self._sketch.update(hashes, times)

    def _report(self, instance: int) -> Report:
        return Report(
            instance=instance,
            rows={INPUT: self._rows},
            replicas={},
            late={},
            null_keys={},
            bad_rows={INPUT: self._bad_rows},
            max_time_us={},
            matches=0,
            cpu_ms=1e3 * (time.process_time() - self._cpu),
            wall_ms=1e3 * (self._task.clock() - self._wall),
            peak_memory_bytes=peak_memory_bytes(),
            segments=[],
            replaced=[],
            output_rows=self._output_rows,
            costs={
                "busyMs": self._busy_ms,
                "estimatedMs": self._estimated_ms,
                "sketch": None if self._sketch is None else self._sketch.to_json(),
            },
            dropped=self._dropped.samples,
            dropped_files=self._dropped.files,
        )


def _reason(failure: BaseException) -> str:
    """Why a row was dropped, in a line."""
    if isinstance(failure, OutputError):
        return f"fn gave {failure}"
    if isinstance(failure, RowTimeoutError):
        return str(failure)
    return f"fn raised {type(failure).__name__}: {failure}"
