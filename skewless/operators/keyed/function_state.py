"""What a user function keeps of its keys, as versioned rows in segments."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from skewless.engine.chunks import Limits
from skewless.errors import SkewlessError
from skewless.kernels.groups import group_rows, key_codes, sorted_keyed_run, without_negative_zero
from skewless.kernels.lookup import lookup
from skewless.kernels.pieces import as_table, gathered, one_array, pieces, widened
from skewless.kernels.runs import SortedRun, concatenate
from skewless.operators.keyed.layout import DUE, Layout, windows_column
from skewless.operators.keyed.process import Function
from skewless.operators.keyed.windows import Window, Windows

# Columns of stored state: the batch that wrote it, and the tombstone flag.
VERSION, GONE = "v", "x"


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
        return run.kept(keep)

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
