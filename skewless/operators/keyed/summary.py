"""Groups in parts: the rows of a batch become partials, partials become one, one becomes a row."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from skewless.kernels.aggregates import Aggregate
from skewless.kernels.groups import Groups, group_keys, group_rows, keyed_run, sorted_keyed_run
from skewless.kernels.lookup import lookup
from skewless.kernels.ordering import HashArray, IndexArray, TimeArray
from skewless.kernels.runs import SortedRun, concatenate
from skewless.kernels.sessions import chains
from skewless.kernels.windows import pane_us, windows_of
from skewless.operators.keyed.intake import Rows
from skewless.operators.keyed.layout import DUE, FOREVER, Layout, windows_column
from skewless.operators.keyed.process import Measure
from skewless.operators.keyed.windows import SessionWindow, Window, Windows, open_windows

# The start of a session; of other windows it follows from the end.
START = "b"


@dataclass(frozen=True)
class Summary:
    """The groups of (key, window) and what is aggregated of them.

    A partial is a row: when its group is due, the key, the aggregates' state columns. Partials of
    one group may stand in any number of runs; merged in any order they give the same.
    """

    layout: Layout
    measures: tuple[Measure, ...]
    window: Window

    @cached_property
    def aggregates(self) -> tuple[Aggregate, ...]:
        return tuple(m.aggregate(self.layout.schema) for m in self.measures)

    @cached_property
    def _state_names(self) -> tuple[tuple[str, ...], ...]:
        return tuple(
            tuple(f"a{i}_{j}" for j in range(len(a.state))) for i, a in enumerate(self.aggregates)
        )

    @property
    def _is_session(self) -> bool:
        return isinstance(self.window, SessionWindow)

    @cached_property
    def stored(self) -> pa.Schema:
        """The columns of a partial, but for the hash."""
        fields = [pa.field(DUE, pa.int64())]
        if self._is_session:
            fields.append(pa.field(START, pa.int64()))
        fields += self.layout.key_fields
        for names, aggregate in zip(self._state_names, self.aggregates, strict=True):
            fields += [pa.field(n, t) for n, t in zip(names, aggregate.state, strict=True)]
        return pa.schema(fields)

    @cached_property
    def output_schema(self) -> pa.Schema:
        """The window where there is one, the keys, the aggregates: as Spark's groupBy has them."""
        layout = self.layout
        fields = [] if self.window is None else [(self.window.column, layout.window_type)]
        fields += [(name, layout.schema.field(name).type) for name in layout.by]
        fields += [(m.name, m.result_type(layout.schema)) for m in self.measures]
        return pa.schema(fields)

    def partials(self, rows: Rows, closed_us: int | None) -> SortedRun:
        """The rows of a batch, added up by (key, window); windows that are closed are left out."""
        if self._is_session:
            return self._session_partials(rows)
        if not isinstance(self.window, Windows):
            return self._grouped(rows, np.full(len(rows), FOREVER))
        size, slide = self.window.size_us, self.window.slide_us
        if size == slide:
            return self._grouped(rows, windows_of(rows.times, size, slide)[1])
        # By panes first: a row is added up once, and only sums are repeated for every window.
        pane = pane_us(size, slide)
        panes = self._grouped(rows, rows.times - np.mod(rows.times, pane))
        at, ends = open_windows(panes.times, self.window, closed_us)
        return self._merged(panes.hashes[at], ends, panes.rows.take(pa.array(at)))

    def merged(self, runs: Sequence[SortedRun]) -> SortedRun:
        """Partials of several runs, one for each group (for sessions: one for each chain)."""
        hashes = np.concatenate([r.hashes for r in runs])
        dues = np.concatenate([r.times for r in runs])
        return self._merged(hashes, dues, concatenate([r.rows for r in runs]))

    def completed(self, needles: SortedRun, stored: Sequence[SortedRun]) -> SortedRun:
        """Partials together with what is stored of the same groups, and of no others."""
        found = [needles]
        for run in stored:
            _, at = lookup(needles, run, self.layout.keys, self.layout.hash_is_key)
            if len(at):
                found.append(taken(run, at))
        return needles if len(found) == 1 else self.merged(found)

    def output(self, run: SortedRun) -> pa.RecordBatch:
        """Whole groups as the user sees them."""
        columns: list[pa.Array] = []
        if isinstance(self.window, Windows):
            columns.append(windows_column(run.times - self.window.size_us, run.times, self.layout))
        elif self._is_session:
            columns.append(
                windows_column(run.rows.column(START).to_numpy(), run.times, self.layout)
            )
        columns += [run.rows.column(k) for k in self.layout.keys]
        for names, aggregate in zip(self._state_names, self.aggregates, strict=True):
            columns.append(aggregate.finish([run.rows.column(n) for n in names]))
        wanted = self.output_schema
        # Segments may have been written under another time zone of the session.
        columns = [
            c if c.type == f.type else c.cast(f.type) for c, f in zip(columns, wanted, strict=True)
        ]
        return pa.RecordBatch.from_arrays(columns, schema=wanted)

    def chains_of(self, run: SortedRun) -> tuple[Groups, TimeArray]:
        """Stored sessions by the chain that they make together, and the end of each chain."""
        starts = run.rows.column(START).to_numpy()
        keys = self._keys(run.rows)
        by_key = group_keys(run.hashes, starts, keys, self.layout.hash_is_key)
        found = chains(by_key, starts, run.times)
        return found, np.maximum.reduceat(run.times[found.order], found.begins)

    def _keys(self, columns: pa.RecordBatch) -> list[pa.Array]:
        return [columns.column(k) for k in self.layout.keys]

    def _grouped(self, rows: Rows, dues: TimeArray) -> SortedRun:
        keys = self._keys(rows.columns)
        groups = group_rows(rows.hashes, dues, keys, self.layout.hash_is_key)
        heads = groups.heads
        columns = {DUE: pa.array(dues[heads])}
        return self._run(
            rows.hashes[heads], dues[heads], columns, keys, groups, self._sums(rows, groups)
        )

    def _session_partials(self, rows: Rows) -> SortedRun:
        assert isinstance(self.window, SessionWindow), "asked of sessions only"
        keys = self._keys(rows.columns)
        by_key = group_keys(rows.hashes, rows.times, keys, self.layout.hash_is_key)
        groups = chains(by_key, rows.times, rows.times + self.window.gap_us)
        ends = np.maximum.reduceat(rows.times[groups.order], groups.begins) + self.window.gap_us
        columns = {DUE: pa.array(ends), START: pa.array(rows.times[groups.heads])}
        hashes = rows.hashes[groups.heads]
        return self._run(hashes, ends, columns, keys, groups, self._sums(rows, groups))

    def _sums(self, rows: Rows, groups: Groups) -> list[list[pa.Array]]:
        order = pa.array(groups.order)
        times = rows.times[groups.order]
        sources = self.layout.sources
        values = {
            m.column: None
            if m.column is None
            else rows.columns.column(sources[m.column]).take(order)
            for m in self.measures
        }
        return [
            aggregate.partial(values[m.column], times, groups)
            for m, aggregate in zip(self.measures, self.aggregates, strict=True)
        ]

    def _merged(self, hashes: HashArray, dues: TimeArray, partials: pa.RecordBatch) -> SortedRun:
        keys = self._keys(partials)
        if self._is_session:
            starts = partials.column(START).to_numpy()
            by_key = group_keys(hashes, starts, keys, self.layout.hash_is_key)
            groups = chains(by_key, starts, dues)
            ends = np.maximum.reduceat(dues[groups.order], groups.begins)
            columns = {DUE: pa.array(ends), START: pa.array(starts[groups.heads])}
        else:
            groups = group_rows(hashes, dues, keys, self.layout.hash_is_key)
            ends = dues[groups.heads]
            columns = {DUE: pa.array(ends)}
        order = pa.array(groups.order)
        sums = [
            aggregate.merge([partials.column(n).take(order) for n in names], groups)
            for names, aggregate in zip(self._state_names, self.aggregates, strict=True)
        ]
        return self._run(hashes[groups.heads], ends, columns, keys, groups, sums)

    def _run(
        self,
        hashes: HashArray,
        dues: TimeArray,
        columns: dict[str, pa.Array],
        keys: list[pa.Array],
        groups: Groups,
        sums: list[list[pa.Array]],
    ) -> SortedRun:
        heads = pa.array(groups.heads)
        columns.update(zip(self.layout.keys, (k.take(heads) for k in keys), strict=True))
        for names, arrays in zip(self._state_names, sums, strict=True):
            columns.update(zip(names, arrays, strict=True))
        rows = pa.RecordBatch.from_pydict(columns).select(self.stored.names)
        # Sessions stand by key and start; where keys share a hash that is not the order by end.
        build = sorted_keyed_run if self._is_session else keyed_run
        return build(hashes, dues, rows, self.layout.keys, self.layout.hash_is_key)


def taken(run: SortedRun, at: IndexArray) -> SortedRun:
    """Some rows of a run, in the order given."""
    return SortedRun(run.hashes[at], run.times[at], run.rows.take(pa.array(at)), run.mixed_keys)
