"""The rows of a batch as a user function gets them, and rows that wait for their window."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from skewless.engine.chunks import Limits
from skewless.engine.columns import TIME
from skewless.failures import counted
from skewless.kernels.groups import Groups, group_rows, keyed_run, sorted_keyed_run
from skewless.kernels.pieces import as_table, gathered, schema_for
from skewless.kernels.runs import SortedRun, concatenate
from skewless.kernels.windows import last_ends
from skewless.operators.keyed.intake import Rows
from skewless.operators.keyed.layout import DUE, EVENT, FOREVER, Layout, windows_column
from skewless.operators.keyed.windows import Window, Windows, open_windows
from skewless.state.segment import times_us


def batch_schema(layout: Layout, window: Window) -> pa.Schema:
    """What a function gets: the input's columns, then `window` where there is one."""
    fields = [pa.field(f.name, f.type) for f in layout.schema]
    if isinstance(window, Windows):
        fields.append(pa.field(window.column, layout.window_type))
    return pa.schema(fields)


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
