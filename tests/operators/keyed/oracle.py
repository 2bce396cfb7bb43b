"""What a keyed operator must give, computed the slow and obvious way by DuckDB."""

from collections.abc import Iterator, Sequence
from functools import cache

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from skewless.operators.keyed.windows import SessionWindow, Window, Windows

# Lists have no order of their own where event times are equal: they are compared sorted.
MEASURES = {
    "rows": ("count", "*"),
    "ints": ("count", "i"),
    "total": ("sum", "i"),
    "least": ("min", "i"),
    "most": ("max", "f"),
    "mean": ("mean", "i"),
    "money": ("sum", "d"),
    "price": ("mean", "d"),
    "first": ("min", "s"),
    "last": ("max", "t"),
    "about": ("approx_count_distinct", "s"),
    "bag": ("collect_list", "i"),
    "kinds": ("collect_set", "s"),
}
SELECT = """
    count(*) AS rows, count(i) AS ints, sum(i)::BIGINT AS total, min(i) AS least, max(f) AS most,
    avg(i) AS mean, sum(d)::DECIMAL(20, 2) AS money,
    -- Half up, from whole cents: DuckDB's own mean of decimals is a double.
    CASE WHEN count(d) > 0 THEN
      (sign(sum(d)) * ((2 * abs(sum(d) * 100)::HUGEINT * 10000 + count(d)) // (2 * count(d))))
      ::DECIMAL(30, 0) END AS price,
    min(s) AS first, max(t) AS last, count(DISTINCT s) AS about,
    coalesce(list_sort(list(i) FILTER (i IS NOT NULL)), []) AS bag,
    coalesce(list_sort(list(DISTINCT s) FILTER (s IS NOT NULL)), []) AS kinds
"""


# The watermark that was in force when a row came: windows that end there or before were closed.
MARK = "mark"
NEVER_LATE = "never"


def on_time(
    batches: Sequence[pa.Table], delay_us: int | None, window: Window | str = None
) -> Iterator[tuple[pa.Table, int | None]]:
    """The rows of every batch that are not late, and the watermark after it.

    Without a window a row is late by its own time, unless the window is NEVER_LATE.
    """
    mark: int | None = None
    newest: int | None = None
    for batch in batches:
        micros = batch.column("t").cast(pa.int64())
        batch = batch.append_column(MARK, pa.array([mark] * batch.num_rows, pa.int64()))
        if mark is not None and window != NEVER_LATE:
            closing = [_closing(moment, window) for moment in micros.to_pylist()]
            batch = batch.filter(pa.array([c > mark for c in closing], pa.bool_()))
        seen = [x for x in (newest, pc.max(micros).as_py()) if x is not None]
        newest = max(seen, default=None)
        if delay_us is not None and newest is not None:
            mark = max(newest - delay_us, mark if mark is not None else newest - delay_us)
        yield batch, mark


def _closing(moment: int, window: Window | str) -> int:
    """The end of the last window that holds a moment."""
    if isinstance(window, Windows):
        return moment // window.slide_us * window.slide_us + window.size_us
    return moment + (window.gap_us if isinstance(window, SessionWindow) else 0)


def closed_groups(batches: Sequence[pa.Table], delay_us: int, window: Window) -> pa.Table:
    """All groups that append mode must have given at the end."""
    kept = list(on_time(batches, delay_us, window))
    if isinstance(window, Windows):
        return closed_by(grouped(pa.concat_tables(rows for rows, _ in kept), window), kept[-1][1])
    # A session that is closed takes no more rows: those that would have drawn it out begin another.
    waiting, given = kept[0][0].slice(0, 0), []
    for rows, mark in kept:
        waiting = pa.concat_tables([waiting, rows])
        assigned = _assigned(waiting, window)
        given.append(closed_by(_aggregated(assigned), mark))
        if mark is not None:
            left = assigned.filter(pc.greater(assigned.column("e").cast(pa.int64()), mark))
            waiting = left.select(rows.column_names).cast(rows.schema)
    return pa.concat_tables(given)


def grouped(rows: pa.Table, window: Window) -> pa.Table:
    """All groups of these rows: b and e are the window's start and end in microseconds."""
    return _aggregated(_assigned(rows, window))


def _aggregated(assigned: pa.Table) -> pa.Table:
    connection = _connection()
    connection.register("assigned", assigned)
    return connection.sql(
        f"SELECT b, e, k, g, {SELECT} FROM assigned GROUP BY b, e, k, g"
    ).to_arrow_table()


def _assigned(rows: pa.Table, window: Window) -> pa.Table:
    """Every row in every window that holds it and was open when it came."""
    connection = _connection()
    connection.register("input", rows)
    source = "SELECT *, epoch_us(t) AS u FROM input"
    if window is None:
        source = f"SELECT *, 0 AS b, 0 AS e FROM ({source})"
    elif isinstance(window, Windows):
        size, slide = window.size_us, window.slide_us
        count = -(-size // slide)
        # DuckDB's % takes the sign of the dividend.
        start = f"u - ((u % {slide}) + {slide}) % {slide} - n * {slide}"
        source = f"""
            SELECT *, b + {size} AS e FROM
              (SELECT *, {start} AS b FROM ({source}), range({count}) AS r(n))
            WHERE u < b + {size} AND (mark IS NULL OR b + {size} > mark)"""
    else:
        gap = window.gap_us
        source = f"""
            SELECT *, min(u) OVER part AS b, max(u) OVER part + {gap} AS e FROM (
              SELECT *, sum(CASE WHEN u - before <= {gap} THEN 0 ELSE 1 END)
                OVER (PARTITION BY k, g ORDER BY u ROWS UNBOUNDED PRECEDING) AS session FROM (
                SELECT *, lag(u) OVER (PARTITION BY k, g ORDER BY u) AS before FROM ({source})))
            WINDOW part AS (PARTITION BY k, g, session)"""
    return connection.sql(source).to_arrow_table()


def closed_by(groups: pa.Table, mark: int | None) -> pa.Table:
    """The groups that a watermark has closed."""
    ends = groups.column("e").cast(pa.int64())
    return groups.slice(0, 0) if mark is None else groups.filter(pc.less_equal(ends, mark))


@cache
def _connection() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    connection.execute("SET threads = 1")
    return connection


def shown(table: pa.Table, window: Window) -> list[tuple[object, ...]]:
    """The operator's output in the form of the oracle's, in any order but a fixed one."""
    rows = []
    column = None if window is None else window.column
    name = "session_window" if isinstance(window, SessionWindow) else "window"
    assert column in (None, name)
    for row in table.to_pylist():
        ends = (
            (0, 0) if column is None else tuple(_micros(row[column][x]) for x in ("start", "end"))
        )
        values = [row[m] for m in MEASURES]
        rows.append((*ends, row["k"], row["g"], *map(_plain, values)))
    return sorted(rows, key=repr)


def expected(table: pa.Table) -> list[tuple[object, ...]]:
    rows = []
    for row in table.to_pylist():
        price = row["price"]
        row["price"] = None if price is None else price.scaleb(-6)
        values = [row[m] for m in MEASURES]
        rows.append((row["b"], row["e"], row["k"], row["g"], *map(_plain, values)))
    return sorted(rows, key=repr)


def _micros(moment: object) -> int:
    return int(pa.scalar(moment, pa.timestamp("us", "UTC")).cast(pa.int64()).as_py())


def _plain(value: object) -> object:
    if isinstance(value, list):
        return sorted(value)
    if isinstance(value, float):
        return "NaN" if value != value else value
    return _micros(value) if hasattr(value, "timestamp") else value
