"""What a join must give, computed the slow and obvious way by DuckDB, the rest by Python."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from skewless.durations import parse_duration_us
from skewless.errors import SkewlessError
from skewless.operators.join.asof import AsOf
from skewless.operators.join.bounds import LEFT, RIGHT, SIDES, Bounds, merged_max
from skewless.operators.join.how import INNER, How
from skewless.operators.join.match import Match, Overlap, SetMatch, columns_of
from skewless.operators.join.near import Near, Nearest
from skewless.state.watermark import Delays
from skewless.testing.local import spread_hash

Batch = tuple[pa.Table, pa.Table]


def join_oracle(
    batches: Sequence[Batch],
    *,
    on: Sequence[tuple[str, str]],
    time: tuple[str, str],
    within: tuple[str | None, str | None],
    watermark: tuple[str | None, str | None] = ("0 seconds", "0 seconds"),
    columns: Mapping[str, str] | None = None,
    match: Match | None = None,
    how: str = "inner",
    where: str | None = None,
) -> pa.Table:
    """The rows that the join of these micro-batches must give.

    `columns` maps output names to "l.name" or "r.name"; by default the result has the columns of
    `sk.join` for inputs whose names do not clash. Late rows are found batch by batch, as the
    watermark moves; the rest is one SQL join over everything. With `match` the sets or points of
    every pair that SQL finds are compared in Python, but those of a plane by SQL. Of `sk.Nearest`
    it gives what is due after the last batch; of rows that are equally near and of one time it
    chooses as `LocalJoin` does. Rows without a match are given if the last watermark has passed
    them. `where` is a condition on the pair in DuckDB's SQL: "l.a < r.b".
    """
    try:
        import duckdb
    except ImportError as failure:
        raise SkewlessError("the oracle needs DuckDB: pip install duckdb") from failure
    left, right, mark = _on_time(batches, time, watermark)
    conditions = [f'l."{a}" = r."{b}"' for a, b in on]
    lower, upper = within
    gap = f'(epoch_us(r."{time[1]}") - epoch_us(l."{time[0]}"))'
    if lower is not None:
        conditions.append(f"{gap} >= {parse_duration_us('within', lower)}")
    if upper is not None:
        conditions.append(f"{gap} <= {parse_duration_us('within', upper)}")
    if isinstance(match, Near | Nearest) and match.radius is not None:
        conditions.append(_is_near(match, match.radius))
        match = match if isinstance(match, Nearest) else None
    if isinstance(match, Nearest | AsOf):
        ends = [None if end is None else parse_duration_us("within", end) for end in within]
        bounds = Bounds(*ends)
        if isinstance(match, AsOf):
            bounds = match.within(bounds)
            conditions += [f"{gap} >= {bounds.lower_us}"] if bounds.lower_us is not None else []
        assert bounds.upper_us is not None, "rows that are chosen are due some time"
        conditions.append(f"{gap} <= {bounds.upper_us}")
        due_us = None if mark is None else mark - bounds.upper_us
        conditions.append("false" if mark is None else f'epoch_us(l."{time[0]}") < {due_us}')
    conditions.append("true" if where is None else f"({where})")
    shown = columns or _columns(left, right, on)
    select = ", ".join(f'{_quoted(source)} AS "{name}"' for name, source in shown.items())
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    kind = How.of(how)
    if not kind.gives_pairs:
        shown = {name: source for name, source in shown.items() if source.startswith("l.")}
    by_rows = match is not None or kind != INNER
    if by_rows:
        left, right = (t.append_column(_ROW, pa.array(range(len(t)))) for t in (left, right))
    connection.register("l", left)
    connection.register("r", right)
    if by_rows:
        pairs = connection.sql(
            f"SELECT l.{_ROW}, r.{_ROW} FROM l JOIN r ON {' AND '.join(conditions)}"
        ).fetchall()
        if isinstance(match, Near | Nearest):
            pairs = _near_pairs(left, right, pairs, match, time[1])
        elif isinstance(match, AsOf):
            pairs = _closest_pairs(left, right, pairs, time)
        elif match is not None:
            pairs = _matching(left, right, pairs, match)
        rows = _rows_of(kind, pairs, _due(left, right, time, within, match, mark))
        return _taken(left, right, shown, [b for _, b in on], rows)
    query = f"SELECT {select} FROM l JOIN r ON {' AND '.join(conditions)}"
    return connection.sql(query).to_arrow_table()


def _closest_pairs(
    left: pa.Table, right: pa.Table, pairs: list[tuple[int, int]], time: tuple[str, str]
) -> list[tuple[int, int]]:
    """The pair of every left row that is closest in time, the earlier one of two."""
    sides = zip((left, right), time, strict=True)
    mine, theirs = (table.column(name).cast(pa.int64()).to_pylist() for table, name in sides)
    best: dict[int, tuple[int, int, int]] = {}
    for at, other in pairs:
        apart = (abs(theirs[other] - mine[at]), theirs[other], other)
        best[at] = min(apart, best.get(at, apart))
    return [(at, found[2]) for at, found in best.items()]


def _due(
    left: pa.Table,
    right: pa.Table,
    time: tuple[str, str],
    within: tuple[str | None, str | None],
    match: Match | None,
    mark: int | None,
) -> tuple[set[int], set[int]]:
    """The rows of both sides that the last watermark has passed."""
    ends = [None if end is None else parse_duration_us("within", end) for end in within]
    bounds = match.within(Bounds(*ends)) if isinstance(match, AsOf) else Bounds(*ends)
    passed = (
        None if mark is None or bounds.upper_us is None else mark - bounds.upper_us,
        None if mark is None or bounds.lower_us is None else mark + bounds.lower_us,
    )
    found = []
    for table, name, until in zip((left, right), time, passed, strict=True):
        times = table.column(name).cast(pa.int64()).to_pylist()
        found.append({at for at, t in enumerate(times) if until is not None and t < until})
    return found[0], found[1]


def _rows_of(
    how: How, pairs: Sequence[tuple[int, int]], due: tuple[set[int], set[int]]
) -> list[tuple[int | None, int | None]]:
    """The rows of the result as the numbers of a left and a right row."""
    rows: list[tuple[int | None, int | None]] = list(pairs) if how.gives_pairs else []
    left, right = {a for a, _ in pairs}, {b for _, b in pairs}
    if how.is_semi:
        rows += [(a, None) for a in left]
    if LEFT in how.padded:
        rows += [(a, None) for a in due[0] - left]
    if RIGHT in how.padded:
        rows += [(None, b) for b in due[1] - right]
    return rows


def _taken(
    left: pa.Table,
    right: pa.Table,
    shown: Mapping[str, str],
    keys: Sequence[str],
    rows: list[tuple[int | None, int | None]],
) -> pa.Table:
    """Rows by their numbers; a right row alone shows its own keys, in the order of `keys`."""
    at = [pa.array([row[side] for row in rows], pa.int64()) for side in (0, 1)]
    columns = {}
    for place, (name, source) in enumerate(shown.items()):
        table, numbers = (left, at[0]) if source.startswith("l.") else (right, at[1])
        column = table.column(source[2:]).take(numbers)
        if place < len(keys):
            column = pc.coalesce(column, right.column(keys[place]).take(at[1]))
        columns[name] = column
    return pa.table(columns)


# The number of a row, in a column that no user has.
_ROW = "skewless_row"


def _is_near(match: Near | Nearest, radius: float) -> str:
    """Two points in a plane are near, in SQL."""
    gaps = [
        f'(CAST(l."{a}" AS DOUBLE) - CAST(r."{b}" AS DOUBLE))'
        for a, b in zip(*match.points, strict=True)
    ]
    most = 1e12 * radius
    far = [
        f'abs(CAST({side}."{name}" AS DOUBLE)) <= {most!r}'
        for side, point in zip("lr", match.points, strict=True)
        for name in point
    ]
    squares = " + ".join(f"{gap} * {gap}" for gap in gaps)
    return f"{' AND '.join(far)} AND sqrt({squares}) <= {float(radius)!r}::DOUBLE"


def haversine_m(
    lon1: npt.ArrayLike, lat1: npt.ArrayLike, lon2: npt.ArrayLike, lat2: npt.ArrayLike
) -> npt.NDArray[np.float64]:
    """The distance of points on the globe, as every textbook has it.

    >>> round(float(haversine_m(0.0, 90.0, 17.0, 0.0)) / 1_000)
    10008
    """
    a, b, c, d = (np.radians(np.asarray(part, np.float64)) for part in (lon1, lat1, lon2, lat2))
    square = np.sin((d - b) / 2) ** 2 + np.cos(b) * np.cos(d) * np.sin((c - a) / 2) ** 2
    angle: npt.NDArray[np.float64] = 2 * np.arcsin(np.sqrt(np.minimum(square, 1.0)))
    return 6_371_008.8 * angle


def _near_pairs(
    left: pa.Table,
    right: pa.Table,
    pairs: Sequence[tuple[int, int]],
    match: Near | Nearest,
    time: str,
) -> list[tuple[int, int]]:
    """Those of the pairs whose points are near, or nearest."""
    if not pairs:
        return []
    rows = np.array(pairs, np.int64).T
    points = [
        table.column(name).cast(pa.float64()).fill_null(np.nan).to_numpy()[of_side]
        for table, point, of_side in zip((left, right), match.points, rows, strict=True)
        for name in point
    ]
    if match.metres is None:
        apart = np.hypot(points[0] - points[2], points[1] - points[3])
        near = np.arange(len(pairs))  # as SQL says
    else:
        apart = haversine_m(*points)
        near = np.flatnonzero(apart <= match.metres)  # false for NaN
    if isinstance(match, Nearest):
        late = -right.column(time).cast(pa.int64()).to_numpy()[rows[1]]
        hashes = spread_hash(right.drop_columns([_ROW]))[rows[1]]
        near = near[np.lexsort((hashes[near], late[near], apart[near], rows[0][near]))]
        first = np.flatnonzero(np.diff(rows[0][near], prepend=-1))
        rank = np.arange(len(near)) - np.repeat(first, np.diff(np.append(first, len(near))))
        near = near[rank < match.k]
    return [pairs[i] for i in near.tolist()]


def _matching(
    left: pa.Table, right: pa.Table, pairs: Sequence[tuple[int, int]], match: SetMatch
) -> list[tuple[int, int]]:
    """Those of the pairs whose sets match."""
    sets = [
        [_weights(value, match) for value in table.column(name).to_pylist()]
        for table, name in zip((left, right), columns_of(match), strict=True)
    ]
    return [(a, b) for a, b in pairs if matches(match, sets[0][a], sets[1][b])]


def matches(match: SetMatch, left: Mapping[Any, float], right: Mapping[Any, float]) -> bool:
    """Whether two sets, as weights by item, fulfil a condition.

    >>> matches(Overlap("s", 2), {"a": 1, "b": 1}, {"b": 1, "c": 1})
    False
    >>> from skewless.operators.join.match import InnerProduct
    >>> matches(InnerProduct("s", 2), {"a": 1, "b": 2}, {"b": 1, "c": 1})
    True
    """
    common = left.keys() & right.keys()
    if isinstance(match, Overlap):
        return len(common) >= match.at_least
    return bool(common) and sum(left[i] * right[i] for i in common) >= match.at_least


def _weights(value: Any, match: SetMatch) -> dict[Any, float]:
    """A set as the weights of its items; null items and weights do not count."""
    found: dict[Any, float] = {}
    for entry in value or ():
        item, weight = (entry, 1) if isinstance(match, Overlap) else _entry(entry)
        if item is not None and weight is not None:
            item = _plain(item)
            found[item] = found.get(item, 0) + weight
    return found


def _entry(entry: Any) -> tuple[Any, Any]:
    """Item and weight, of a map's pair or of an array's struct."""
    if entry is None:
        return None, None
    item, weight = entry.values() if isinstance(entry, dict) else entry
    return item, weight


def _columns(left: pa.Table, right: pa.Table, on: Sequence[tuple[str, str]]) -> dict[str, str]:
    """The output of `sk.join` with its default suffix."""
    shown = {a: f"l.{a}" for a, _ in on}
    shown.update({c: f"l.{c}" for c in left.column_names if c not in shown})
    keys = {b for _, b in on}
    for c in right.column_names:
        if c not in keys:
            shown[f"{c}_right" if c in shown else c] = f"r.{c}"
    return shown


def _quoted(source: str) -> str:
    side, name = source.split(".", 1)
    return f'{side}."{name}"'


def _on_time(
    batches: Sequence[Batch], time: tuple[str, str], watermark: tuple[str | None, str | None]
) -> tuple[pa.Table, pa.Table, int | None]:
    """The rows that are not late, and the watermark after all of them."""
    delay = [None if w is None else parse_duration_us("watermark", w) for w in watermark]
    delays = Delays({LEFT: delay[0], RIGHT: delay[1]})
    seen: dict[str, int | None] = dict.fromkeys(SIDES)
    mark: int | None = None
    kept: dict[str, list[pa.Table]] = {side: [] for side in SIDES}
    for batch in batches:
        newest: dict[str, int | None] = dict.fromkeys(SIDES)
        for side, table, column in zip(SIDES, batch, time, strict=True):
            micros = table.column(column).cast(pa.int64())
            newest[side] = pc.max(micros).as_py()
            if mark is not None and delays.by_side[side] is not None:
                table = table.filter(pc.greater(micros, mark))
            kept[side].append(table.filter(pc.is_valid(table.column(column))))
        seen = merged_max(seen, newest)
        mark = delays.watermark(seen, mark)
    return pa.concat_tables(kept[LEFT]), pa.concat_tables(kept[RIGHT]), mark


def assert_same_rows(found: pa.Table, expected: pa.Table) -> None:
    """Fails unless both tables hold the same rows, each as often, in any order."""
    names = expected.column_names
    missing_columns = set(names) - set(found.column_names)
    assert not missing_columns, f"columns missing from the result: {sorted(missing_columns)}"
    ours, theirs = _bag(found.select(names)), _bag(expected)
    surplus, missing = ours - theirs, theirs - ours
    assert ours == theirs, (
        f"{sum(missing.values())} rows missing, {sum(surplus.values())} too many; "
        f"missing: {list(missing)[:3]}, too many: {list(surplus)[:3]}"
    )


def _bag(table: pa.Table) -> Counter[Any]:
    return Counter(zip(*(map(_plain, c.to_pylist()) for c in table.columns), strict=True))


def _plain(value: Any) -> Any:
    """A value that can be counted: nested ones as text, NaN equal to itself, times in UTC."""
    if isinstance(value, float):
        return "NaN" if value != value else value + 0.0
    if isinstance(value, list | dict):
        return repr(value)
    if hasattr(value, "timestamp") and getattr(value, "tzinfo", None) is not None:
        return value.timestamp()
    return value
