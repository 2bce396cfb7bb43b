"""User functions on one instance's batch: their rows, the state of their keys, what they keep."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from skewless.engine.chunks import Limits, bounded
from skewless.engine.columns import TIME
from skewless.engine.ledger import Ledger, kept, live
from skewless.errors import SkewlessError
from skewless.failures import FunctionError, account, counted
from skewless.kernels.groups import (
    Groups,
    group_rows,
    key_codes,
    keyed_run,
    sorted_keyed_run,
    without_negative_zero,
)
from skewless.kernels.lookup import lookup
from skewless.kernels.pieces import as_table, gathered, one_array, pieces, schema_for, widened
from skewless.kernels.runs import SortedRun, concatenate
from skewless.kernels.windows import last_ends
from skewless.operators.keyed.intake import Intake, Rows
from skewless.operators.keyed.layout import (
    DUE,
    EVENT,
    FOREVER,
    INPUT,
    STATE,
    Layout,
    windows_column,
)
from skewless.operators.keyed.process import Function
from skewless.operators.keyed.windows import Window, Windows, open_windows
from skewless.operators.strict import OutputError, fitted
from skewless.state.compaction import Merge
from skewless.state.segment import times_us

if TYPE_CHECKING:
    from skewless.operators.keyed.task import KeyedTask

# Columns of stored state: the batch that wrote it, and whether it says that there is none.
VERSION, GONE = "v", "x"


def batch_schema(layout: Layout, window: Window) -> pa.Schema:
    """What a function gets: the input's columns, then `window` where there is one."""
    fields = [pa.field(f.name, f.type) for f in layout.schema]
    if isinstance(window, Windows):
        fields.append(pa.field(window.column, layout.window_type))
    return pa.schema(fields)


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


@dataclass(frozen=True)
class Arranged:
    """Rows as a function gets them, and the groups of (key, window) that they make."""

    table: pa.Table
    groups: SortedRun
    by: tuple[str, ...]  # the keys as the user names them

    def described(self) -> str:
        """What an error says of the rows; their key, where all are of one."""
        keys = self.groups.rows
        if len(self.groups) != 1:
            return f"{counted(self.table.num_rows, 'row')} of {len(self.groups)} keys"
        key = dict(zip(self.by, keys.to_pylist()[0].values(), strict=True))
        return f"{counted(self.table.num_rows, 'row')} of the key {key}"


def arranged(
    rows: Rows, layout: Layout, window: Window, closed_us: int | None, limits: Limits
) -> Arranged:
    """Rows of a key (and open window) together, in the order of their event times."""
    if isinstance(window, Windows):
        at, dues = open_windows(rows.times, window, closed_us)
    else:
        at = np.arange(len(rows), dtype=np.int64)
        dues = np.full(len(rows), FOREVER)
    return arrange_due(rows, at, dues, layout, window, limits)


def arrange_due(
    rows: Rows,
    at: npt.NDArray[np.int64],
    dues: npt.NDArray[np.int64],
    layout: Layout,
    window: Window,
    limits: Limits,
) -> Arranged:
    """The rows at these places, each in the window that ends when it is due."""
    hashes, times = rows.hashes[at], rows.times[at]
    repeats = window.most if isinstance(window, Windows) else 1
    columns = gathered(rows.columns, at, repeats, limits.array_bytes)
    keys = [columns.column(k) for k in layout.keys]
    groups = group_rows(hashes, dues, keys, layout.hash_is_key)
    by_time = np.lexsort((times[groups.order], groups.ids))
    groups = Groups(groups.order[by_time], groups.begins)
    shown = columns.take(pa.array(groups.order))
    table = {name: shown.column(layout.sources[name]) for name in layout.schema.names}
    if isinstance(window, Windows):
        ends = dues[groups.order]
        table[window.column] = windows_column(ends - window.size_us, ends, layout)
    heads = groups.heads
    key_rows = columns.select(list(layout.keys)).take(pa.array(heads))
    run = keyed_run(hashes[heads], dues[heads], key_rows, layout.keys, layout.hash_is_key)
    batch = pa.RecordBatch.from_pydict(table)
    shown_as = as_table(batch, batch_schema(layout, window), limits.array_bytes)
    return Arranged(shown_as, run, layout.by)


def waiting_rows(rows: Rows, layout: Layout, window: Windows) -> SortedRun:
    """Rows that wait for their last window to close, stored once however many windows they have."""
    dues = last_ends(rows.times, window.size_us, window.slide_us)
    columns = {DUE: pa.array(dues), EVENT: rows.columns.column(TIME)}
    columns.update({n: rows.columns.column(n) for n in rows.columns.schema.names if n != TIME})
    batch = pa.RecordBatch.from_pydict(columns)
    return sorted_keyed_run(rows.hashes, dues, batch, layout.keys, layout.hash_is_key)


def woken_rows(runs: list[SortedRun], layout: Layout, limits: Limits) -> Rows:
    """Waiting rows as they came in."""
    stored = concatenate([run.rows for run in runs], limits.array_bytes)
    columns = pa.RecordBatch.from_arrays(
        [stored.column(EVENT if n == TIME else n) for n in layout.travelling.names],
        names=layout.travelling.names,
    ).cast(schema_for(stored.nbytes, layout.travelling, limits.array_bytes))
    hashes = np.concatenate([run.hashes for run in runs])
    return Rows(hashes, times_us(columns.column(TIME)), columns)


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


class StoredState:
    """What a function keeps, as versioned rows: of a group, the newest batch's rows are true."""

    def __init__(self, layout: Layout, window: Window, process: Function, limits: Limits) -> None:
        self._limits = limits
        self._layout = layout
        self._window = window
        self._process = process
        schema = process.state_schema
        windowed = isinstance(window, Windows)
        taken_names = {*layout.by, *([Windows.column] if windowed else [])}
        # The user's own columns under short names, which cannot clash with ours.
        own = [] if schema is None else [f for f in schema if f.name not in taken_names]
        self._own = {f.name: f"u{i}" for i, f in enumerate(own)}
        self._stored = pa.schema(
            [
                pa.field(DUE, pa.int64()),
                pa.field(VERSION, pa.int64()),
                pa.field(GONE, pa.bool_()),
                *layout.key_fields,
                *(pa.field(self._own[f.name], f.type) for f in own),
            ]
        )

    def of(
        self, groups: SortedRun, runs: list[SortedRun]
    ) -> tuple[pa.Table, npt.NDArray[np.bool_]]:
        """The state of these groups as the user sees it, and which of them have any."""
        layout, schema = self._layout, self._process.state_schema
        assert schema is not None, "asked of functions with state only"
        has_state = np.zeros(len(groups), np.bool_)
        parts, owners = [], []
        for run in runs:
            needle, at = lookup(groups, run, layout.keys, layout.hash_is_key)
            if len(at):
                parts.append(run.rows.take(pa.array(at)))
                owners.append(needle)
        if not parts:
            return schema.empty_table(), has_state
        rows, owner = concatenate(parts, self._limits.array_bytes), np.concatenate(owners)
        version = rows.column(VERSION).to_numpy()
        newest = np.full(len(groups), -1)
        np.maximum.at(newest, owner, version)
        true = (version == newest[owner]) & ~_flags(rows.column(GONE))
        at = np.flatnonzero(true)
        at = at[np.argsort(owner[at], kind="stable")]
        has_state[owner[at]] = True
        return self._shown(rows.take(pa.array(at)), groups, owner[at]), has_state

    def replacing(
        self,
        groups: SortedRun,
        had_state: npt.NDArray[np.bool_],
        state: pa.Table | None,
        batch: int,
        where: str,
    ) -> Iterator[SortedRun]:
        """The rows to store: what the function kept, and a mark for what it forgot.

        Much state becomes several runs. Rows of a group may stand in any of them: what tells the
        true ones is their version.
        """
        schema = self._process.state_schema
        assert schema is not None, "asked of functions with state only"
        kept_state = schema.empty_table() if state is None else state
        owner = self._owners(groups, kept_state, where)
        forgotten = had_state.copy()
        forgotten[owner] = False
        gone = np.flatnonzero(forgotten)
        places = np.concatenate([owner, gone])
        keys = self._keys_at(groups, places)
        columns = {
            DUE: pa.array(groups.times[places]),
            VERSION: pa.array(np.full(len(places), batch)),
            GONE: pa.array(np.arange(len(places)) >= len(owner)),
            **{k: keys.column(k) for k in self._layout.keys},
        }
        for name, short in self._own.items():
            column = kept_state.column(name)
            whole = pa.chunked_array([*column.chunks, pa.nulls(len(gone), column.type)])
            columns[short] = one_array(whole, self._limits.array_bytes)
        begin = 0
        for piece in pieces(pa.RecordBatch.from_pydict(columns), self._limits.run_bytes):
            mine = places[begin : begin + piece.num_rows]
            begin += piece.num_rows
            yield sorted_keyed_run(
                groups.hashes[mine],
                groups.times[mine],
                piece.cast(self._stored),
                self._layout.keys,
                self._layout.hash_is_key,
            )

    def _keys_at(self, groups: SortedRun, places: npt.NDArray[np.int64]) -> pa.RecordBatch:
        """The keys of these groups; one that has many rows of state comes as often."""
        most = int(np.bincount(places).max(initial=1))
        return gathered(groups.rows, places, most, self._limits.array_bytes)

    def newest(self, run: SortedRun, oldest_elsewhere: int | None) -> SortedRun:
        """The newest version of every group; a mark of what is gone stays as long as an older
        version may stand in another segment."""
        keys = [run.rows.column(k) for k in self._layout.keys]
        groups = group_rows(run.hashes, run.times, keys, self._layout.hash_is_key)
        version = run.rows.column(VERSION).to_numpy()
        latest = np.maximum.reduceat(version[groups.order], groups.begins)
        newest_of = np.empty(len(run), np.int64)
        newest_of[groups.order] = latest[groups.ids]
        keep = version == newest_of
        gone = _flags(run.rows.column(GONE))
        keep &= ~gone if oldest_elsewhere is None else ~gone | (version >= oldest_elsewhere)
        return kept(run, keep)

    def _owners(self, groups: SortedRun, state: pa.Table, where: str) -> npt.NDArray[np.int64]:
        """The group of every row of the state that a function returned."""
        layout = self._layout
        columns = []
        for key, name in zip(layout.keys, layout.by, strict=True):
            ours = groups.rows.column(key)
            theirs = state.column(name)
            if ours.nbytes + theirs.nbytes > self._limits.array_bytes:
                ours = ours.cast(widened(ours.type))
            theirs = one_array(theirs.cast(ours.type))
            if pa.types.is_floating(ours.type):
                theirs = without_negative_zero(theirs)
            columns.append(pa.concat_arrays([ours, theirs]))
        if isinstance(self._window, Windows):
            ends = one_array(state.column(Windows.column)).field("end").cast(pa.int64())
            columns.append(pa.concat_arrays([pa.array(groups.times), ends]))
        codes = key_codes(columns)
        place = np.full(int(codes.max(initial=0)) + 1, -1)
        place[codes[: len(groups)]] = np.arange(len(groups))
        owner: npt.NDArray[np.int64] = place[codes[len(groups) :]]
        if (owner < 0).any():
            stranger = state.slice(int(np.flatnonzero(owner < 0)[0]), 1).to_pylist()[0]
            raise SkewlessError(
                f"process: {self._process.name} returned state of a key that is not in its batch "
                f"({where}): {stranger}"
            )
        return owner

    def _shown(
        self, rows: pa.RecordBatch, groups: SortedRun, owner: npt.NDArray[np.int64]
    ) -> pa.Table:
        schema = self._process.state_schema
        assert schema is not None, "asked of functions with state only"
        columns = {
            name: rows.column(key)
            for key, name in zip(self._layout.keys, self._layout.by, strict=True)
        }
        columns.update({name: rows.column(short) for name, short in self._own.items()})
        if isinstance(self._window, Windows):
            ends = groups.times[owner]
            size = self._window.size_us
            columns[Windows.column] = windows_column(ends - size, ends, self._layout)
        batch = pa.RecordBatch.from_pydict({n: columns[n] for n in schema.names})
        return as_table(batch, schema, self._limits.array_bytes)


def _flags(column: pa.Array) -> npt.NDArray[np.bool_]:
    flags: npt.NDArray[np.bool_] = column.to_numpy(zero_copy_only=False)
    return flags
