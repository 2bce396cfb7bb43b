"""User functions on one instance's batch: they are called once, and what they return is checked."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from skewless.engine.chunks import Limits, bounded
from skewless.engine.ledger import Ledger, live
from skewless.errors import SkewlessError
from skewless.failures import FunctionError, account
from skewless.kernels.groups import sorted_keyed_run
from skewless.kernels.pieces import pieces
from skewless.kernels.runs import SortedRun, concatenate
from skewless.operators.keyed.arranging import Arranged, arranged, waiting_rows
from skewless.operators.keyed.function_state import StoredState
from skewless.operators.keyed.intake import Intake, Rows
from skewless.operators.keyed.layout import INPUT, STATE
from skewless.operators.keyed.process import Function
from skewless.operators.keyed.windows import Windows
from skewless.operators.strict import OutputError, fitted
from skewless.state.compaction import Merge

if TYPE_CHECKING:
    from skewless.operators.keyed.task import KeyedTask


class Calling:
    """One pass over one instance's rows; the function is called once."""

    def __init__(
        self, task: "KeyedTask", process: Function, intake: Intake, ledger: Ledger
    ) -> None:
        self._task = task
        self._process = process
        self._ledger = ledger
        self._state = StoredState(task.layout, task.window, process, task.limits)

    @property
    def _waits(self) -> bool:
        """Whether rows are kept until their window closes."""
        return self._task.mode == "append" and isinstance(self._task.window, Windows)

    @property
    def run_bytes(self) -> int:
        """Rows that wait are stored as they come. For a call no key's rows fall into two pieces,
        because the function sees them once."""
        return self._task.limits.run_bytes if self._waits else 2**62

    def take(self, instance: int, rows: Rows, last: bool) -> Iterator[pa.RecordBatch]:
        """Calls the function on the new rows, or keeps them until their window closes."""
        if not len(rows):
            return
        task = self._task
        if self._waits:
            assert isinstance(task.window, Windows), "rows wait for windows that close"
            self._ledger.store(instance, INPUT, waiting_rows(rows, task.layout, task.window))
            return
        called = arranged(rows, task.layout, task.window, task.closed_us, task.limits)
        state, found = self._stored(instance, called.groups)
        where = f"instance {instance}, batch {task.setting.names.batch}"
        out, after = call(self._process, called, state, where, task.limits)
        if self._process.state_schema is not None:
            for run in self._state.replacing(
                called.groups, found, after, task.setting.names.batch, where
            ):
                self._ledger.store(instance, STATE, run)
        if out is not None:
            for batch in out.to_batches():
                yield from bounded(batch, task.limits)

    def finish(self, instance: int) -> Iterator[pa.RecordBatch]:
        yield from ()

    def combine(self, merge: Merge, runs: list[SortedRun]) -> SortedRun | None:
        """Merging state: waiting rows as they are, of kept state the newest version."""
        task = self._task
        keep = task.lifetimes.keep_from_us(task.watermark_us)[merge.side]
        runs = [run for run in (live(run, keep) for run in runs) if len(run)]
        if not runs:
            return None
        everything = sorted_keyed_run(
            np.concatenate([r.hashes for r in runs]),
            np.concatenate([r.times for r in runs]),
            concatenate([r.rows for r in runs]),
            task.layout.keys,
            task.layout.hash_is_key,
        )
        if merge.side == INPUT:
            return everything
        names = {s.name for s in merge.segments}
        oldest = task.setting.segments.oldest_batch(STATE, names)
        return self._state.newest(everything, oldest)

    def _stored(
        self, instance: int, groups: SortedRun
    ) -> tuple[pa.Table | None, npt.NDArray[np.bool_]]:
        """The state of these groups, and which of them have any."""
        task = self._task
        if self._process.state_schema is None:
            return None, np.zeros(len(groups), np.bool_)
        runs = task.opened(STATE, task.route.reads(instance))
        return self._state.of(groups, runs)


def call(
    process: Function, called: Arranged, state: pa.Table | None, where: str, limits: Limits
) -> tuple[pa.Table | None, pa.Table | None]:
    """Calls the function; what it raises or gives wrongly is told with its name and the place."""
    try:
        given = process.call(called.table, state)
    except Exception as failure:
        raise FunctionError(
            account(failure, f"process: {process.name} failed on {called.described()} ({where})")
        ) from failure
    if not isinstance(given, tuple) or len(given) != 2:
        raise SkewlessError(
            f"process: {process.name} returned {type(given).__name__} ({where}); "
            "it must return (out, state)"
        )
    out, after = given
    return (
        _as_declared(process, "out", out, process.schema, where, limits),
        _as_declared(process, "state", after, process.state_schema, where, limits),
    )


def _as_declared(
    process: Function,
    what: str,
    table: pa.Table | None,
    schema: pa.Schema | None,
    where: str,
    limits: Limits,
) -> pa.Table | None:
    """What the function returned in the declared schema, in as few chunks as can be."""
    if table is None:
        return None
    if schema is None:
        raise SkewlessError(
            f"process: {process.name} returned a {what} ({where}), but none was declared; "
            f"give {what}_schema=, or return None"
        )
    if not isinstance(table, pa.Table):
        raise SkewlessError(
            f"process: {process.name} returned {what} of type {type(table).__name__} ({where}); "
            f"takes a table of {schema.names}"
        )
    batches = table.combine_chunks().to_batches()
    empty = pa.RecordBatch.from_pylist([], table.schema)
    try:
        # Before they are cast: text with large offsets may be more than small ones can count.
        parts = [part for batch in batches for part in pieces(batch, limits.array_bytes)]
        return pa.Table.from_batches([fitted(part, schema) for part in parts or [empty]], schema)
    except OutputError as misfit:
        raise SkewlessError(
            f"process: {process.name} returned {what} that does not fit its schema ({where}): "
            f"{misfit}"
        ) from misfit
