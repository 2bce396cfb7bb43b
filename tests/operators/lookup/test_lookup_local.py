"""A stream with a table without Spark, against DuckDB: whatever the rows, routes and kills are."""

import tempfile
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skewless.control.loop import Balance
from skewless.engine.chunks import Limits
from skewless.operators.join.asof import AsOf
from skewless.operators.join.bounds import Bounds
from skewless.planning.auto import Auto
from skewless.planning.hash import Hash
from skewless.routing.route import Route
from skewless.testing import POINTS, Fault, assert_same_rows
from skewless.testing.local import spread_hash
from skewless.testing.local_lookup import LocalLookup
from tests.routing.cases import routes

STAMP = pa.timestamp("us", "UTC")
STREAM = pa.schema([("k", pa.string()), ("g", pa.int32()), ("at", STAMP), ("a", pa.int64())])
TABLE = pa.schema([("k", pa.string()), ("g", pa.int32()), ("since", STAMP), ("b", pa.string())])
EPOCH = datetime(2024, 1, 1, tzinfo=UTC)
SMALL = Limits(run_bytes=1, chunk_bytes=1, chunk_rows=1)

keys = st.sampled_from(["", "x", "y", "hot", "hot", "hot", None])
groups = st.sampled_from([0, 0, 0, 1, None])
moments = st.one_of(st.none(), st.integers(0, 20).map(lambda s: EPOCH + timedelta(seconds=s)))
rows = st.tuples(keys, groups, moments)
# Of the right side only inner and right: as Spark has it.
cases = st.sampled_from(
    [
        *(("left", how) for how in ("inner", "left", "left_semi", "left_anti")),
        *(("right", how) for how in ("inner", "right")),
    ]
)
conditions = st.one_of(
    st.none(),
    st.tuples(st.integers(-8, 8), st.integers(-8, 8)).map(sorted).map(tuple),
    st.tuples(st.none(), st.integers(-5, 5)),
)


@st.composite
def batches(draw: st.DrawFn) -> list[tuple[pa.Table, pa.Table]]:
    """Rows of the stream, and a table that is another one in every batch."""
    made = []
    for number in range(draw(st.integers(1, 5))):
        streamed, stored = (draw(st.lists(rows, max_size=12)) for _ in range(2))
        made.append(
            (
                pa.Table.from_pylist(
                    [
                        {"k": k, "g": g, "at": t, "a": 100 * number + i}
                        for i, (k, g, t) in enumerate(streamed)
                    ],
                    STREAM,
                ),
                pa.Table.from_pylist(
                    [
                        {"k": k, "g": g, "since": t, "b": f"{number}.{i}"}
                        for i, (k, g, t) in enumerate(stored)
                    ],
                    TABLE,
                ),
            )
        )
    return made


def expected(
    made: list[tuple[pa.Table, pa.Table]],
    reads: list[int],
    side: str,
    how: str,
    within: tuple[int | None, int | None] | None,
) -> pa.Table:
    """What SQL gives if every batch is joined with the table of the last batch that read it."""
    seen = [max(read for read in reads if read <= number) for number in range(len(made))]
    tagged = []
    for which, tags in ((0, seen), (1, range(len(made)))):
        parts = [
            batch[which].append_column("copy", pa.array([tag] * len(batch[which]), pa.int64()))
            for tag, batch in zip(tags, made, strict=True)
        ]
        tagged.append(pa.concat_tables(parts))
    stream, table = ("l", "r") if side == "left" else ("r", "l")
    conditions = ["l.copy = r.copy", "l.k = r.k", "l.g = r.g"]
    if within is not None:
        at, since = f"{stream}.at", f"{table}.since"
        later, sooner = (since, at) if side == "left" else (at, since)
        gap = f"epoch_us({later}) - epoch_us({sooner})"
        lower, upper = within
        conditions += [] if lower is None else [f"{gap} >= {lower * 1_000_000}"]
        conditions += [] if upper is None else [f"{gap} <= {upper * 1_000_000}"]
        conditions.append(f"{gap} IS NOT NULL")
    shown = f"{stream}.k, {stream}.g, {stream}.at, {stream}.a"
    if how in ("inner", "left", "right"):
        shown += f", {table}.since, {table}.b"
    kind = how.replace("left_", "")
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    connection.register(stream, tagged[0])
    connection.register(table, tagged[1])
    sql = f"SELECT {shown} FROM l {kind} JOIN r ON {' AND '.join(conditions)}"
    return connection.sql(sql).to_arrow_table()


def lookup(directory: object, **options: Any) -> LocalLookup:
    kind = options.pop("kind", LocalLookup)
    given: dict[str, Any] = {"on": ["k", "g"], "stream_schema": STREAM, "table_schema": TABLE}
    return kind(str(directory), **{**given, **options})


def run(
    directory: object,
    made: list[tuple[pa.Table, pa.Table]],
    case: tuple[str, str],
    within: tuple[int | None, int | None] | None = None,
    faults: tuple[Fault, ...] = (),
    **options: Any,
) -> LocalLookup:
    side, how = case
    if within is not None:
        micro = [None if x is None else 1_000_000 * x for x in within]
        times = ("at", "since") if side == "left" else ("since", "at")
        options |= {"time": times, "bounds": Bounds(*micro)}
    looked_up = lookup(directory, stream=side, how=how, **options)
    found = looked_up.run(made, faults)
    assert_same_rows(found, expected(made, looked_up.reads, side, how, within))
    return looked_up


@given(
    made=batches(),
    case=cases,
    within=conditions,
    instances=st.integers(1, 4),
    refresh=st.sampled_from([None, 1.0, 2.0]),
    small=st.booleans(),
)
@settings(max_examples=150)
def test_it_equals_the_oracle(made, case, within, instances, refresh, small) -> None:
    with tempfile.TemporaryDirectory() as directory:
        limits = SMALL if small else Limits()
        run(
            directory,
            made,
            case,
            within,
            policy=Hash(instances),
            refresh_s=refresh,
            limits=limits,
        )


def poor_hash(table: pa.Table) -> np.ndarray:
    """Collides: all keys share three hashes, and the keys must tell them apart."""
    lengths = [len(str(row)) % 3 for row in zip(*table.to_pydict().values(), strict=True)]
    return np.array(lengths, np.uint64) << np.uint64(62)


@given(made=batches(), case=cases, within=conditions)
@settings(max_examples=60)
def test_colliding_hashes_change_nothing(made, case, within) -> None:
    with tempfile.TemporaryDirectory() as directory:
        run(directory, made, case, within, hash_keys=poor_hash, refresh_s=1.0)


HOT = spread_hash(
    pa.table({"k": ["", "x", "y", "hot"], "g": pa.array([0] * 4, pa.int32())})
).tolist()


class Restless(LocalLookup):
    """Takes another route in every batch, whatever the policy says."""

    ways: tuple[Route, ...] = ()

    def step(self, number, batch) -> None:
        way = self.ways[number % len(self.ways)]
        plain = self.engine.operators[0].adopt

        def adopt(state, cores):
            planner = {**state.planner, "balance": Balance.initial(way.instances).to_json()}
            return replace(state, route=way, planner=planner)

        object.__setattr__(self.engine.operators[0], "adopt", adopt)
        try:
            super().step(number, batch)
        finally:
            object.__setattr__(self.engine.operators[0], "adopt", plain)


@given(
    made=batches(),
    case=cases,
    ways=st.lists(routes(HOT, most=5, partitions=(5, 16)), min_size=1, max_size=4),
    refresh=st.sampled_from([None, 1.0, 2.0]),
    kills=st.lists(st.tuples(st.sampled_from(POINTS), st.integers(0, 4)), max_size=4),
)
@settings(max_examples=150)
def test_neither_routes_that_change_nor_kills_change_anything(
    made, case, ways, refresh, kills
) -> None:
    in_order = sorted(kills, key=lambda kill: kill[1])
    faults = tuple(Fault(point, batch) for point, batch in in_order if batch < len(made))
    Restless.ways = tuple(ways)
    with tempfile.TemporaryDirectory() as directory:
        run(directory, made, case, None, faults, kind=Restless, refresh_s=refresh)


@pytest.mark.parametrize("how", ["inner", "left"])
@given(made=batches(), direction=st.sampled_from(["backward", "forward", "nearest"]))
@settings(max_examples=40)
def test_as_of_gives_the_closest_row_of_the_table(how, made, direction) -> None:
    with tempfile.TemporaryDirectory() as directory:
        options = {"time": ("at", "since"), "match": AsOf(direction)}
        looked_up = lookup(directory, how=how, limits=SMALL, **options)
        found = looked_up.run(made)
    table = made[0][1].to_pylist()
    right = []
    for row in (row for batch, _ in made for row in batch.to_pylist()):
        near = []
        for other in table:
            known = None not in (row["k"], row["g"], row["at"], other["since"])
            if known and (row["k"], row["g"]) == (other["k"], other["g"]):
                gap = (other["since"] - row["at"]).total_seconds()
                reach = {"backward": gap <= 0, "forward": gap >= 0, "nearest": True}
                near += [(abs(gap), gap, other["since"])] if reach[direction] else []
        if near:
            right.append((row["a"], min(near)[2]))
        elif how == "left":
            right.append((row["a"], None))
    pairs = zip(found.column("a").to_pylist(), found.column("since").to_pylist(), strict=True)
    assert sorted(pairs, key=str) == sorted(right, key=str)


def steady(batches: int) -> list[tuple[pa.Table, pa.Table]]:
    """Batches of one row, and a table that tells the batch in which it was read."""
    row = {"k": "x", "g": 0, "at": EPOCH, "a": 1}
    return [
        (
            pa.Table.from_pylist([row], STREAM),
            pa.Table.from_pylist([{"k": "x", "g": 0, "since": EPOCH, "b": str(n)}], TABLE),
        )
        for n in range(batches)
    ]


def test_a_table_is_read_again_when_its_copy_is_old_enough(tmp_path: Path) -> None:
    once = run(tmp_path / "once", steady(6), ("left", "inner"))
    assert once.reads == [0]
    again = run(tmp_path / "again", steady(8), ("left", "inner"), refresh_s=3.0, tick_s=1.0)
    assert again.reads == [0, 3, 6]
    assert again.rows().column("b").to_pylist() == ["0"] * 3 + ["3"] * 3 + ["6"] * 2
    told = [p["operators"][0]["tableReadAt"] for p in again.progress]
    assert told[0] == told[2] == "1970-01-01T00:00:01Z"
    assert told[3] == "1970-01-01T00:00:04Z"
    assert {p["operators"][0]["state"]["rows"]["right"] for p in again.progress} == {1}


def test_a_restart_does_not_read_again_too_early_and_old_copies_go(tmp_path: Path) -> None:
    faults = (Fault("after_commit", 1), Fault("before_commit", 2))
    made = steady(7)
    looked_up = run(tmp_path, made, ("left", "inner"), None, faults, refresh_s=5.0)
    # Batches 1 and 2 are begun twice, which the clock counts: the copy is old in batch 3.
    assert looked_up.reads == [0, 3]
    segments = list((tmp_path / "segments").rglob("*.arrow"))
    assert len(segments) == 1, "the last two commits have one copy"


def test_an_empty_table_and_an_empty_stream(tmp_path: Path) -> None:
    stream, _ = steady(1)[0]
    empty = TABLE.empty_table()
    for how, rows_given in (("inner", 0), ("left", 1), ("left_semi", 0), ("left_anti", 1)):
        found = run(tmp_path / how, [(stream, empty)], ("left", how)).rows()
        assert found.num_rows == rows_given, how
        nothing = [(STREAM.empty_table(), empty)]
        assert not run(tmp_path / f"{how}0", nothing, ("left", how)).rows().num_rows


def test_a_hot_key_is_shared_and_nothing_is_sent_twice(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    made = []
    for _ in range(6):
        hot = np.where(rng.random(4_000) < 0.6, "hot", rng.integers(0, 500, 4_000).astype(str))
        columns = {"k": hot, "g": np.zeros(4_000, np.int32), "at": [EPOCH] * 4_000}
        stream = pa.table({**columns, "a": np.arange(4_000)}).cast(STREAM)
        names = ["hot", *map(str, range(400))]
        table = {"k": names, "g": [0] * 401, "since": [EPOCH] * 401, "b": names}
        made.append((stream, pa.table(table).cast(TABLE)))
    looked_up = run(tmp_path, made, ("left", "left"), policy=Auto(instances=4))
    record = looked_up.progress[-1]["operators"][0]
    assert record["balance"]["splits"], "the hot key has several instances"
    assert sum(record["load"]["rows"]) == 4_000, "each row is sent once"
    assert max(record["load"]["rows"]) < 0.5 * 4_000
    assert record["rows"] == {"left": 4_000}
    assert record["operator"] == "lookup"
