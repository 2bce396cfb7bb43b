"""As-of joins without Spark, against DuckDB and pandas: each left row once, when it is due."""

import tempfile
from datetime import timedelta

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import skewless as sk
from skewless.errors import SkewlessError
from skewless.operators.join.bounds import Bounds
from skewless.planning.auto import Auto
from skewless.state.watermark import Delays
from skewless.testing import POINTS, LocalJoin, assert_same_rows, join_oracle
from tests.operators.join.test_join_local import (
    EPOCH,
    HOT,
    LEFT,
    RIGHT,
    Restless,
    batches,
    faults_of,
    local,
    poor_hash,
    text,
)
from tests.routing.cases import routes

DIRECTIONS = st.sampled_from(["backward", "forward", "nearest"])
# There is some time on either side of the left row, and an upper bound where it is needed.
BOUNDS = st.one_of(
    st.tuples(st.integers(-20, 0), st.integers(0, 20)),
    st.tuples(st.none(), st.integers(0, 20)),
)
DELAYS = st.tuples(st.one_of(st.none(), st.integers(0, 15)), st.integers(0, 15))
SECOND = 1_000_000


def one_per_moment(made: list) -> list:
    """Without a second right row of one key and time: which of them is closest nobody can say."""
    seen: set = set()
    kept = []
    for left, right in made:
        rows = []
        for row in right.to_pylist():
            name = (row["k"], row["g"], row["rt"])
            if name not in seen:
                seen.add(name)
                rows.append(row)
        kept.append((left, pa.Table.from_pylist(rows, RIGHT)))
    return kept


def run(directory, made, direction, within, late, *, faults=(), **options) -> LocalJoin:
    made = one_per_moment(made)
    match = sk.AsOf(direction)
    micro = [None if x is None else x * SECOND for x in (*within, *late)]
    joined = local(
        directory,
        bounds=Bounds(micro[0], micro[1]),
        delays=Delays({"left": micro[2], "right": micro[3]}),
        match=match,
        **options,
    )
    found = joined.run(made, faults)
    expected = join_oracle(
        made,
        on=[("k", "k"), ("g", "g")],
        time=("lt", "rt"),
        within=(text(within[0]), text(within[1])),
        watermark=(text(late[0]), text(late[1])),
        match=match,
        how=options.get("how", "inner"),
    )
    assert_same_rows(found, expected)
    return joined


@given(made=batches(), direction=DIRECTIONS, within=BOUNDS, late=DELAYS, poor=st.booleans())
@settings(max_examples=120)
def test_the_closest_rows_equal_the_oracle(made, direction, within, late, poor) -> None:
    options = {"hash_keys": poor_hash} if poor else {}
    with tempfile.TemporaryDirectory() as directory:
        run(directory, made, direction, within, late, **options)


@given(
    made=batches(),
    direction=DIRECTIONS,
    within=BOUNDS,
    late=DELAYS,
    how=st.sampled_from(["inner", "left"]),
    data=st.data(),
    kills=st.lists(st.tuples(st.sampled_from(POINTS), st.integers(0, 4)), max_size=2),
)
@settings(max_examples=80)
def test_routes_and_kills_change_nothing(made, direction, within, late, how, data, kills) -> None:
    ways = st.lists(routes(HOT, most=5, partitions=(5, 16)), min_size=1, max_size=3)
    Restless.ways = tuple(data.draw(ways))
    with tempfile.TemporaryDirectory() as directory:
        run(
            directory,
            made,
            direction,
            within,
            late,
            join=Restless,
            how=how,
            faults=faults_of(kills, len(made)),
        )


def quotes_and_trades(count: int) -> list[tuple[pa.Table, pa.Table]]:
    """Batches in order of time, and a last one that lets the watermark pass all of them."""
    rng = np.random.default_rng(6)
    made = []
    for batch in range(count):
        sides = []
        for schema, time, value, rows in ((LEFT, "lt", "a", 40), (RIGHT, "rt", "b", 200)):
            ms = np.sort(rng.choice(20_000, rows, replace=False)) + 20_000 * batch
            columns = {
                "k": pa.array([f"s{k}" for k in rng.zipf(1.4, rows) % 5]),
                "g": pa.array(np.zeros(rows, np.int32)),
                time: pa.array(
                    [EPOCH + timedelta(milliseconds=int(m)) for m in ms], schema.field(time).type
                ),
                value: pa.array(range(batch * rows, (batch + 1) * rows)).cast(
                    schema.field(value).type
                ),
            }
            sides.append(pa.table(columns, schema=schema))
        made.append((sides[0], sides[1]))
    end = EPOCH + timedelta(hours=1)
    last = [
        pa.Table.from_pylist([{"k": "end", "g": 0, time: end, value: kind}], schema)
        for schema, time, value, kind in ((LEFT, "lt", "a", -1), (RIGHT, "rt", "b", "end"))
    ]
    return [*made, (last[0], last[1])]


@pytest.mark.parametrize("direction", ["backward", "forward", "nearest"])
def test_the_rows_are_those_of_pandas_and_of_duckdb(tmp_path, direction) -> None:
    made = quotes_and_trades(4)
    joined = local(
        tmp_path,
        bounds=Bounds(-3 * SECOND, 3 * SECOND),
        match=sk.AsOf(direction),
        policy=Auto(instances=3),
    )
    found = joined.run(made).select(["a", "b"])
    trades, quotes = (pa.concat_tables(side)[:-1] for side in zip(*made, strict=True))
    frames = [table.to_pandas() for table in (trades, quotes)]
    expected = pd.merge_asof(
        frames[0].sort_values("lt"),
        frames[1].sort_values("rt"),
        left_on="lt",
        right_on="rt",
        by="k",
        direction=direction,
        tolerance=pd.Timedelta(seconds=3),
    ).dropna(subset="b")
    assert len(expected) > 100
    pairs = sorted(zip(expected["a"], expected["b"], strict=True))
    assert sorted(zip(*found.to_pydict().values(), strict=True)) == pairs
    if direction == "nearest":
        return
    order = ">=" if direction == "backward" else "<="
    rows = duckdb.sql(
        f"SELECT a, b FROM trades ASOF JOIN quotes ON trades.k = quotes.k AND lt {order} rt "
        "WHERE abs(epoch_us(lt) - epoch_us(rt)) <= 3000000 ORDER BY ALL"
    ).fetchall()
    assert rows == pairs


def test_what_cannot_be_waited_for_is_refused(tmp_path) -> None:
    with pytest.raises(SkewlessError, match="direction: got 'sideways'"):
        sk.AsOf("sideways")
    with pytest.raises(SkewlessError, match=r"within: .*upper bound"):
        local(tmp_path, bounds=Bounds(0, None), match=sk.AsOf("forward"))
    with pytest.raises(SkewlessError, match=r"within: .*some time before"):
        local(tmp_path, bounds=Bounds(SECOND, 2 * SECOND), match=sk.AsOf("backward"))
    never = Delays({"left": 0, "right": None})
    with pytest.raises(SkewlessError, match=r"watermark: .*right side"):
        local(tmp_path, delays=never, match=sk.AsOf())


def test_state_is_empty_when_all_is_given(tmp_path) -> None:
    made = quotes_and_trades(3)
    joined = local(tmp_path, bounds=Bounds(-SECOND, SECOND), match=sk.AsOf("nearest"))
    later = EPOCH + timedelta(hours=9)
    for batch in range(3):
        rows = [{"k": "x", "g": 0, "lt": later + timedelta(hours=batch), "a": batch}]
        other = [{"k": "y", "g": 0, "rt": later + timedelta(hours=batch), "b": "y"}]
        made.append((pa.Table.from_pylist(rows, LEFT), pa.Table.from_pylist(other, RIGHT)))
    joined.run(made)
    assert sum(joined.progress[-1]["operators"][0]["state"]["rows"].values()) <= 6
