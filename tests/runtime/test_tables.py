"""Results in tables: created or found, appended to in their order, and what is refused."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import types as T

import skewless as sk
from skewless.runtime.tables import TableSink, _takes, table_sink
from skewless.state.storage import Storage

from .test_writer import BATCHES, build, replay  # noqa: F401 - the fixture


@pytest.fixture
def shop(spark: SparkSession, tmp_path: Path):
    """An empty database in a folder of its own."""
    spark.sql(f"CREATE DATABASE shop LOCATION '{tmp_path / 'shop'}'")
    yield "shop"
    spark.sql("DROP DATABASE shop CASCADE")


def found(spark: SparkSession, name: str) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in spark.table(name).select("k", "v", "v_right").collect())


def test_a_table_is_created_and_appended_to(replay, shop) -> None:  # noqa: F811
    """By a first query; a restart goes on, in the order of the columns that the table has."""
    spark = replay.spark
    writer = build(*replay.inputs()).writeStream.trigger(availableNow=True)
    options = {"checkpointLocation": str(replay.checkpoint), "compression": "gzip"}
    query = writer.toTable("shop.matches", partitionBy="V", queryName="to_table", **options)
    query.awaitTermination()
    assert query.name == "to_table"
    first = found(spark, "shop.matches")
    assert len(first) == 5
    assert spark.table("shop.matches").columns == ["k", "ts", "ts_right", "v_right", "v"]
    assert list(replay.folder.rglob("shop/matches/v=a/*.gz.parquet"))
    replay.add(*BATCHES[0])
    again = build(*replay.inputs()).writeStream.trigger(availableNow=True)
    again.toTable("shop.matches", **options).awaitTermination()
    assert len(found(spark, "shop.matches")) > len(first)


def test_a_table_that_is_there_says_what_it_takes(spark: SparkSession, shop: str) -> None:
    spark.sql("CREATE TABLE shop.notes (v STRING, K BIGINT) USING json")
    spark.sql("CREATE VIEW shop.seen AS SELECT 1 AS k")
    asked: dict[str, Any] = {"source": None, "path": None, "partition_by": (), "options": {}}
    rows = spark.createDataFrame([(1, "a")], "k long, v string")
    sink = table_sink("shop.notes", spark, rows.schema, **asked)
    sink.write(rows, 0)
    assert [tuple(row) for row in spark.table("shop.notes").collect()] == [("a", 1)]
    wrong = {
        "format: got 'orc'; takes 'json', the format of the table": {"source": "orc"},
        "lacks ['v'] and has ['w'] besides; name them alike": {
            "schema": rows.withColumnRenamed("v", "w").schema
        },
        "tableName: got 'shop.seen'; takes the name of a table": {"name": "shop.seen"},
        "'K' of the table shop.notes is bigint, and that of the result is string; cast it": {
            "schema": rows.selectExpr("string(k) AS k", "v").schema
        },
    }
    for says, changed in wrong.items():
        options = {"name": "shop.notes", "schema": rows.schema, **asked, **changed}
        with pytest.raises(sk.SkewlessError) as refused:
            table_sink(options.pop("name"), spark, options.pop("schema"), **options)
        assert says in str(refused.value)


def test_delta_is_told_which_batch_of_which_query_it_gets(tmp_path: Path) -> None:
    """A replayed batch is skipped by Delta; a new checkpoint is another writer."""
    calls: list[tuple[str, Any]] = []

    class Writer:
        def __getattr__(self, name: str) -> Any:
            def note(*args: Any, **options: Any) -> Writer:
                calls.append((name, options or args))
                return self

            return note

    class Result:
        write = Writer()

    sink = TableSink("t", "delta", ("k",), None, {"mergeSchema": "true"})  # type: ignore[arg-type]
    writers = []
    for checkpoint in ("a", "a", "b"):
        storage = Storage(str(tmp_path / checkpoint))
        storage.make_directory("")
        opened = sink.opened(None, storage)  # type: ignore[arg-type]
        writers.append(opened.writer)
    assert writers[0] == writers[1] != writers[2]
    opened.write(Result(), 7)  # type: ignore[arg-type]
    options = {"mergeSchema": "true", "txnAppId": writers[2], "txnVersion": "7"}
    assert calls == [
        ("format", ("delta",)),
        ("mode", ("append",)),
        ("options", options),
        ("saveAsTable", ("t",)),
    ]


@pytest.mark.parametrize(
    ("wanted", "given", "fits"),
    [
        ("bigint", "int", True),
        ("int", "bigint", True),
        ("double", "decimal(10,2)", True),
        ("string", "bigint", True),
        ("timestamp", "date", True),
        ("bigint", "string", False),
        ("boolean", "int", False),
        ("timestamp", "bigint", False),
        ("array<int>", "string", False),
        ("array<bigint>", "array<int>", True),
        ("binary", "binary", True),
    ],
)
def test_columns_take_what_spark_stores(wanted: str, given: str, fits: bool) -> None:
    kinds = [T.StructType.fromDDL(f"x {kind}")["x"].dataType for kind in (wanted, given)]
    assert _takes(*kinds) is fits
