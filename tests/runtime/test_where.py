"""Conditions on the pair on Spark: whatever the text, the pairs are those of Spark's own join."""

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import skewless as sk
from skewless.testing import Replay, assert_same_rows

EPOCH = datetime(2024, 1, 1, tzinfo=UTC)
TIME = pa.timestamp("us", "UTC")
NAN, INF = float("nan"), float("inf")
COMMON: list[tuple[str, pa.DataType, list[Any]]] = [
    ("i8", pa.int8(), [-128, -3, 0, 2, 127, None]),
    ("i32", pa.int32(), [-7, 0, 1, 5, None]),
    ("i64", pa.int64(), [-(2**53) - 1, -1, 0, 4, 2**53 + 1, None]),
    ("small", pa.float32(), [-0.0, 0.1, NAN, INF, 16777216.0, None]),
    ("real", pa.float64(), [0.0, 0.1, NAN, -INF, 4.0, None]),
    ("money", pa.decimal128(10, 2), [Decimal("-1.50"), Decimal("4.00"), Decimal("0.10"), None]),
    ("fine", pa.decimal128(8, 4), [Decimal("4.0000"), Decimal("0.0999"), None]),
    ("flag", pa.bool_(), [True, False, None]),
    ("text", pa.string(), ["", "a", "B", "é", "2024-01-02", "5", None]),
    ("raw", pa.binary(), [b"", b"\x7f", b"\x80", None]),
    ("day", pa.date32(), [date(2024, 1, 1), date(2024, 1, 2), None]),
    ("at", TIME, [EPOCH, EPOCH + timedelta(days=1), None]),
    (
        "s",
        pa.struct([("f", pa.int32()), ("odd name", pa.string())]),
        [{"f": 1, "odd name": "a"}, None],
    ),
]
CONDITIONS = [
    "left.i32 < right.real",
    "left.i64 = right.real",
    "left.small >= right.real",
    "left.small <=> right.small",
    "left.real < right.real OR left.real = right.small",
    "NOT left.real <= right.i32",
    "left.money = right.fine",
    "left.money <> right.i64",
    "left.i8 BETWEEN right.i32 AND right.i64",
    "left.i32 NOT BETWEEN right.money AND 3",
    "left.text < right.text",
    "upper(left.text) = concat(right.text, '') AND length(left.text) > 0",
    "left.raw <= right.raw",
    "left.at >= right.at - INTERVAL 1 DAY",
    "left.day = right.at",
    "try_cast(left.text AS date) = right.day",
    "left.i32 + right.i64 < 10.5",
    "left.i32 * right.i8 - right.i32 > -5",
    "left.real * right.real + left.small > 0.3",
    "left.real / nullif(right.i32, 0) < 1",
    "left.i32 % nullif(right.i8, 0) = -1",
    "-(left.i32 + right.i8) <= abs(left.i32 - right.i32)",
    "least(left.real, right.small, 3) = greatest(right.real, left.i32)",
    "coalesce(left.i32, right.i64, 4) IN (left.i8, right.i32, 4)",
    "left.i32 NOT IN (right.i32, right.i64)",
    "nvl(left.flag, right.flag)",
    "(left.flag OR right.flag) IS NOT TRUE",
    "(left.flag AND right.flag) IS UNKNOWN",
    "(left.i32 = right.i32) IS NULL OR left.flag IS DISTINCT FROM right.flag",
    "CASE WHEN left.i32 <> 0 THEN 10 / left.i32 > right.real WHEN right.flag THEN left.flag END",
    "CASE left.i32 WHEN right.i32 THEN 'same' WHEN 0 THEN right.text ELSE left.text END = 'a'",
    "if(left.flag, left.i32, right.money) > 0.5",
    "left.i32 <> 0 AND 10 % left.i32 < right.i32 OR left.s.f = right.s.f",
    "LEFT.s.`odd name` = `right`.text AND k IN ('x', 'y')",
    "l_only = r_only AND exists(array(left.i32), v -> v > 0)",
    "left.flag",
    "right.i32 > 0 AND NULL",
    "left.i8 < right.i32 = right.flag",
    "isnull(left.i32 + right.i32) != left.flag",
    "left.text = right.text AND left.lt < right.rt",
]


def tables(seed: int, count: int) -> list[tuple[pa.Table, pa.Table]]:
    rng = np.random.default_rng(seed)
    made = []
    for number in range(count):
        sides = []
        for time, own in (("lt", "l_only"), ("rt", "r_only")):
            size = 30
            columns: dict[str, pa.Array] = {
                "k": pa.array(rng.choice(["x", "y"], size)),
                time: pa.array(
                    [EPOCH + timedelta(seconds=int(s) + number) for s in rng.integers(0, 9, size)],
                    TIME,
                ),
                own: pa.array(rng.integers(0, 3, size), pa.int32()),
            }
            for name, kind, values in COMMON:
                columns[name] = pa.array(
                    [values[i] for i in rng.integers(0, len(values), size)], kind
                )
            sides.append(pa.table(columns))
        made.append((sides[0], sides[1]))
    return made


def compared(spark: SparkSession, folder: Any, conditions: list[str], **match: Any) -> None:
    """All conditions in one query: a left row is there once for each, and is meant for it alone."""
    where = " OR ".join(f"left.c = {i} AND ({text})" for i, text in enumerate(conditions))
    numbers = f"explode(sequence(0, {len(conditions) - 1})) AS c"
    replay = Replay(spark, folder, tables(seed=4, count=2))

    def build(left: DataFrame, right: DataFrame) -> Any:
        return sk.join(
            left.selectExpr("*", numbers),
            right,
            on="k",
            time=("lt", "rt"),
            within="2 seconds",
            watermark="20 seconds",
            where=where,
            balance=sk.Hash(2),
        )

    columns = ["c", "k", "lt", "l_only", "rt", "r_only"]
    query = replay.start(lambda *sides: build(*sides).transform(lambda rows: rows.select(*columns)))
    query.awaitTermination()
    left = spark.read.parquet(str(folder / "left")).selectExpr("*", numbers)
    right = spark.read.parquet(str(folder / "right"))
    within = "abs(unix_micros(right.rt) - unix_micros(left.lt)) <= 2000000"
    own = left.alias("left").join(
        right.withColumnRenamed("k", "K2").alias("right"),
        F.expr(f"left.k = right.K2 AND {within} AND ({where})"),
    )
    expected = own.select(*columns).toArrow()
    assert_same_rows(replay.rows(), expected)
    found = set(expected.column("c").to_pylist())
    idle = [text for i, text in enumerate(conditions) if i not in found]
    assert idle == [c for c in conditions if c.endswith("AND NULL")], (
        "conditions that are never true"
    )


def test_every_condition_gives_the_pairs_of_sparks_own_join(spark, tmp_path) -> None:
    compared(spark, tmp_path, CONDITIONS)


def test_without_ansi_numbers_wrap_and_divisions_are_null(spark, tmp_path) -> None:
    conditions = [
        "left.i8 + right.i8 < left.i8 AND right.i8 > 0",
        "left.i8 * right.i8 = right.i32",
        "left.real / right.i32 < 1",
        "(left.i32 % right.i32) IS NULL AND left.i32 = 5",
        "-(least(left.i8, right.i8)) = -128",
        "abs(least(left.i8, right.i8)) < 0",
        "left.text = right.i32",
        "left.i32 < right.small",
    ]
    spark.conf.set("spark.sql.ansi.enabled", "false")
    try:
        compared(spark, tmp_path, conditions)
    finally:
        spark.conf.unset("spark.sql.ansi.enabled")


def test_what_does_not_fit_stops_the_batch_and_another_condition_is_refused(
    spark, tmp_path
) -> None:
    replay = Replay(spark, tmp_path, tables(seed=5, count=1))

    def start(where: str | None) -> None:
        replay.start(
            lambda left, right: sk.join(
                left, right, on="k", time=("lt", "rt"), within="9 seconds", where=where,
                watermark="1 second", balance=sk.Hash(1),
            ).transform(lambda rows: rows.select("k", "lt", "rt"))
        ).awaitTermination()  # fmt: skip

    with pytest.raises(StreamingQueryException, match=r"where: left\.i8 \+ right\.i8 does not fit"):
        start("left.i8 + right.i8 > 0")
    start("left.i32 < right.i32")
    with pytest.raises(sk.SkewlessError, match="where"):
        start("left.i32 <= right.i32")


def test_the_latest_row_that_fulfils_it_is_chosen(spark, tmp_path) -> None:
    """As-of: the closest quote that is good enough, not the closest quote if it is."""
    moments = [EPOCH + timedelta(seconds=s) for s in (1, 5, 9, 60)]
    left = pa.table({"k": ["x", "x"], "lt": [moments[2], moments[3]], "least": [3, 0]})
    right = pa.table(
        {"k": ["x"] * 3, "rt": [moments[0], moments[1], moments[3]], "size": [4, 2, 9]}
    )
    times = [t.set_column(1, t.column_names[1], t.column(1).cast(TIME)) for t in (left, right)]
    found = Replay(spark, tmp_path, [(times[0], times[1])]).run(
        lambda left, right: sk.join(
            left,
            right,
            on="k",
            time=("lt", "rt"),
            within=("-30 seconds", "0 seconds"),
            watermark="0 seconds",
            match=sk.AsOf("backward"),
            where="right.size >= left.least",
        )
    )
    assert found.select(["lt", "size"]).to_pylist() == [{"lt": moments[2], "size": 4}]
