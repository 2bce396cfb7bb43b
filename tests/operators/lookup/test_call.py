"""What `sk.join` takes and refuses where one side is a table, before any job."""

import re
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

import skewless as sk


@pytest.fixture
def stream(spark: SparkSession) -> DataFrame:
    rate = spark.readStream.format("rate").load()
    return rate.selectExpr("value AS k", "timestamp AS at", "value % 2 AS name", "array(1) AS tags")


@pytest.fixture
def table(spark: SparkSession) -> DataFrame:
    columns = ("id AS k", "now() AS since", "'x' AS name", "array(1) AS tags")
    return spark.range(3).selectExpr(*columns)


def test_the_columns_of_every_type(stream: DataFrame, table: DataFrame) -> None:
    with_table = ["k", "at", "name", "tags", "since", "name_right", "tags_right"]
    for how in ("inner", "left", "LeftOuter"):
        assert sk.join(stream, table, on="k", how=how).columns == with_table
    for how in ("semi", "left_anti"):
        assert sk.join(stream, table, on="k", how=how).columns == stream.columns
    right = sk.join(table, stream, on="k", how="right", suffix="_s")
    assert right.columns == ["k", "since", "name", "tags", "at", "name_s", "tags_s"]
    left = sk.join(stream, table, on="k", how="left")
    assert left.schema["since"].nullable, "a row without a match has no such time"
    assert repr(left).startswith("Stream[k: bigint, at: timestamp")
    assert "lookup on k" in repr(left)


def test_the_watermark_of_the_stream_is_that_of_the_result(
    stream: DataFrame, table: DataFrame
) -> None:
    joined = sk.join(stream.withWatermark("at", "7 seconds"), table, on="k")
    windows = sk.keyed(joined, "name", time="at", window="10 seconds", process=sk.Count())
    assert list(windows.node.operator.delays.by_side.values()) == [7_000_000]


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (
            {"how": "full"},
            "how: got 'full'; takes one of 'inner', 'left', 'left_semi', 'left_anti'",
        ),
        ({"how": "right"}, "known only when the stream has ended"),
        ({"how": "cross"}, "how: got 'cross'"),
        ({"watermark": "1 second"}, "watermark: got '1 second'; takes nothing where one side is"),
        ({"shed": sk.Shed()}, "takes None where one side is a table"),
        ({"time": ("at", "since")}, "takes nothing, unless within says what is compared"),
        ({"within": "1 second"}, "takes nothing, unless time names the columns"),
        ({"time": "at", "within": "1 second"}, "the right input has no column 'at'"),
        ({"match": sk.AsOf()}, 'time: got None; takes ("stream_column", "table_column")'),
        ({"match": "near"}, "match: got 'near'"),
        ({"on": None}, "on: got None"),
        ({"on": "at"}, "the right input has no column 'at'"),
        ({"refresh": "0 seconds"}, "refresh: got '0 seconds'; takes a duration above 0"),
        ({"refresh": 3}, "refresh: got 3"),
        ({"suffix": ""}, "suffix: got ''"),
        ({"balance": sk.PKG(2)}, "sk.PKG is for sk.Count and sk.Agg"),
        ({"balance": "hash"}, "balance: got 'hash'"),
    ],
)
def test_wrong_arguments(
    stream: DataFrame, table: DataFrame, given: dict[str, Any], told: str
) -> None:
    with pytest.raises(sk.SkewlessError, match=re.escape(told)):
        sk.join(stream, table, **{"on": "k", **given})


def test_wrong_sides(spark: SparkSession, stream: DataFrame, table: DataFrame) -> None:
    with pytest.raises(sk.SkewlessError, match="how: got 'left'; takes one of 'inner', 'right'"):
        sk.join(table, stream, on="k", how="left")
    overlap = sk.Overlap("tags", at_least=1)
    with pytest.raises(sk.SkewlessError, match="put the stream on the left"):
        sk.join(table, stream, on="k", match=overlap)
    with pytest.raises(sk.SkewlessError, match="right: got 'a function that gave a NoneType'"):
        sk.join(stream, lambda session: None, on="k")
    with pytest.raises(sk.SkewlessError, match="right: got 'NoneType'; takes a streaming"):
        sk.join(table, None, on="k")
    with pytest.raises(sk.SkewlessError, match="refresh: got '1 hour'; takes None, unless"):
        sk.join(stream, stream, on="k", time="at", within="1 s", refresh="1 hour")
    twice = table.selectExpr("*", "k AS K")
    with pytest.raises(sk.SkewlessError, match="right: column 'k' occurs more than once"):
        sk.join(stream, twice, on="k")


@pytest.mark.parametrize(
    "policy", [sk.Hash(2), sk.Auto(), sk.LsStream(2), sk.ContRand(2), sk.JoinMatrix(4), sk.Mixed(2)]
)
def test_policies_of_joins_are_those_of_lookups(
    stream: DataFrame, table: DataFrame, policy: Any
) -> None:
    operator = sk.join(stream, table, on="k", balance=policy).node.operator
    assert operator.initial_state(2).route.instances >= 1
