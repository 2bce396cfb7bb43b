"""A stream with a table on Spark, against Spark's own join: types, refresh, kills, chains."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import skewless as sk
from skewless.runtime.lookups import TableOfFunction
from skewless.testing import POINTS, Fault, Replay, assert_same_rows

STAMP = pa.timestamp("us", "UTC")
EPOCH = datetime(2024, 1, 1, tzinfo=UTC)
SIZE = 300


def stream_of(batch: int) -> pa.Table:
    """Rows of which most have one key, some have none, and some match nothing."""
    rng = np.random.default_rng(batch)
    keys = np.where(rng.random(SIZE) < 0.6, 7, rng.integers(0, 60, SIZE)).tolist()
    return pa.table(
        {
            "k": pa.array([None if n % 17 == 0 else k for n, k in enumerate(keys)], pa.int32()),
            "at": pa.array(
                [EPOCH + timedelta(seconds=10 * batch + n % 10) for n in range(SIZE)], STAMP
            ),
            "note": [f"{batch}-{n}" for n in range(SIZE)],
            "x": rng.uniform(0, 10, SIZE),
            "tags": [["a", "b", "c", "d"][n % 3 : n % 3 + 2] for n in range(SIZE)],
        }
    )


@pytest.fixture(scope="module")
def batches() -> list[tuple[pa.Table, pa.Table]]:
    return [(stream_of(batch), stream_of(batch)) for batch in range(len(POINTS))]


@pytest.fixture
def table(spark: SparkSession) -> DataFrame:
    """Keys that are there twice, once, or not at all; of a wider type than the stream's."""
    rows = [
        (k, f"name {k}.{n}", EPOCH + timedelta(seconds=k), float(k) / 4, ["a", "b", "z"][k % 3 :])
        for k in range(50)
        for n in range(1 + k % 2)
    ]
    rows.append((None, "nobody", EPOCH, 1.0, ["a"]))
    kinds = "k long, name string, since timestamp, x double, tags array<string>"
    return spark.createDataFrame(rows, kinds).repartition(3)


def all_rows(spark: SparkSession, batches: list[tuple[pa.Table, pa.Table]]) -> DataFrame:
    return spark.createDataFrame(pa.concat_tables(left for left, _ in batches))


def sparks_own(stream: DataFrame, table: DataFrame, how: str, extra: str = "true") -> DataFrame:
    """The same join by Spark, with our columns."""
    condition = (stream.k == table.k) & F.expr(extra)
    shown = [stream.k, stream.at, stream.note, stream.x, stream.tags]
    others = [table.name, table.since, table.x.alias("x_right"), table.tags.alias("tags_right")]
    joined = stream.alias("l").join(table.alias("r"), condition, how)
    return joined.select(*shown, *([] if how in ("left_semi", "left_anti") else others))


def test_every_type_of_join_equals_sparks_own_across_kills(
    spark: SparkSession, tmp_path: Path, batches: Any, table: DataFrame
) -> None:
    everything = all_rows(spark, batches)
    for number, how in enumerate(("left", "inner", "left_semi", "left_anti")):
        # Kills at every point, spread over the types of join.
        faults = [Fault(POINTS[number], 0), Fault(POINTS[-1 - number], 2)]
        replay = Replay(spark, tmp_path / how, batches[:3])
        balance = sk.Auto(instances=3) if how == "left" else sk.Hash(2)
        rows = replay.run(
            lambda left, _, how=how, to=balance: sk.join(left, table, on="k", how=how, balance=to),
            faults,
        )
        assert replay.restarts == len(faults)
        few = everything.where(F.col("at") < F.lit(EPOCH + timedelta(seconds=30)))
        assert_same_rows(rows, sparks_own(few, table, how).toArrow())


def test_a_condition_on_the_pair(
    spark: SparkSession, tmp_path: Path, batches: Any, table: DataFrame
) -> None:
    few = all_rows(spark, batches[:1])
    for how in ("left", "left_anti"):
        replay = Replay(spark, tmp_path / how, batches[:1])
        rows = replay.run(
            lambda left, _, how=how: sk.join(
                left, table, on="k", how=how, where="left.x < right.x", balance=sk.Hash(2)
            )
        )
        assert_same_rows(rows, sparks_own(few, table, how, "l.x < r.x").toArrow())


def test_a_table_on_the_left_and_a_condition_on_times(
    spark: SparkSession, tmp_path: Path, batches: Any, table: DataFrame
) -> None:
    everything = all_rows(spark, batches[:2])
    replay = Replay(spark, tmp_path / "right", batches[:2])
    rows = replay.run(
        lambda left, _: sk.join(
            table, left, on="k", how="rightouter", time=("since", "at"), within="8 seconds"
        )
    )
    near = "abs(unix_micros(r.since) - unix_micros(l.at)) <= 8000000"
    expected = sparks_own(everything, table, "left", near)
    others = ["x AS x_right", "tags AS tags_right", "x_right AS x", "tags_right AS tags"]
    expected = expected.selectExpr("k", "at", "note", "name", "since", *others)
    assert_same_rows(rows, expected.toArrow())
    assert rows.column_names[:2] == ["k", "name"]
    assert rows.schema.field("k").type == pa.int64()


def test_it_equals_sparks_own_stream_and_feeds_other_operators(
    spark: SparkSession, tmp_path: Path, batches: Any, table: DataFrame
) -> None:
    """A chain into windows: the watermark of the stream goes through."""
    replay = Replay(spark, tmp_path, batches)
    stream = replay.inputs()[0].withWatermark("at", "5 seconds")
    ours = sk.join(stream, table.select("k", "name"), on="k", how="left", balance=sk.Hash(2))
    counts = sk.keyed(ours, "name", time="at", window="10 seconds", process=sk.Count())
    theirs = stream.join(table.select("k", "name"), "k", "left")
    theirs = theirs.groupBy(F.window("at", "10 seconds"), "name").count()
    queries = []
    for name, frame in (("our_counts", counts), ("their_counts", theirs)):
        writer = frame.writeStream.format("memory").queryName(name)
        writer = writer.option("checkpointLocation", str(tmp_path / name))
        queries.append(writer.trigger(availableNow=True).start())
        queries[-1].awaitTermination()
    expected = spark.table("their_counts").selectExpr("window.start AS s", "name", "count AS n")
    found = spark.table("our_counts").selectExpr("window.start AS s", "name", "count AS n")
    assert found.count() > 100
    assert_same_rows(found.toArrow(), expected.toArrow())
    lookup = queries[0].lastProgress["skewless"]["operators"][0]
    assert lookup["operator"] == "lookup"
    assert lookup["state"]["rows"] == {"right": 75}
    assert lookup["tableReadAt"].startswith("20")


def test_sets_and_points_are_looked_up_with_any_type_of_join(
    spark: SparkSession, tmp_path: Path, batches: Any, table: DataFrame
) -> None:
    everything = all_rows(spark, batches[:2])
    replay = Replay(spark, tmp_path / "sets", batches[:2])
    match = sk.Overlap("tags", at_least=2)
    rows = replay.run(lambda left, _: sk.join(left, table, on="k", match=match, how="left"))
    common = "size(array_intersect(l.tags, r.tags)) >= 2"
    assert_same_rows(rows, sparks_own(everything, table, "left", common).toArrow())
    places = table.where("k IS NOT NULL").withColumn("y", F.lit(1.0))
    near = sk.Near(radius=0.26, left=("x", "one"), right=("x", "y"))
    replay = Replay(spark, tmp_path / "near", batches[:2])
    rows = replay.run(
        lambda left, _: sk.join(
            left.withColumn("one", F.lit(1.25)), places, match=near, how="anti", balance=sk.Auto(2)
        ).drop("one")
    )
    far = "sqrt(pow(l.x - r.x, 2) + 0.0625) <= 0.26"
    alone = everything.alias("l").join(places.alias("r"), F.expr(far), "left_anti")
    assert 0 < rows.num_rows < everything.count()
    assert_same_rows(rows, alone.toArrow())


def test_a_function_reads_the_table_as_it_is_at_every_refresh(
    spark: SparkSession, tmp_path: Path, batches: Any
) -> None:
    folder = str(tmp_path / "names")
    spark.range(60).selectExpr("id AS k", "'old' AS name").write.parquet(folder)
    replay = Replay(spark, tmp_path, batches[:2])

    def newest(session: SparkSession) -> DataFrame:
        return session.read.parquet(folder)

    def named(stream: DataFrame, refresh: str) -> sk.Stream:
        joined = sk.join(stream, newest, on="k", refresh=refresh, balance=sk.Hash(2))
        return joined.select("at", "name")

    replay.run(lambda left, _: named(left, "1 day"))
    spark.range(60).selectExpr("id AS k", "'new' AS name").write.mode("overwrite").parquet(folder)
    for batch in batches[2:4]:
        replay.add(*batch)
    # A restart within the day keeps the copy; one that asks for more reads again.
    assert names(replay.run(lambda left, _: named(left, "1 day"))) == {"old": 4}
    replay.add(*batches[4])
    assert names(replay.run(lambda left, _: named(left, "1 millisecond"))) == {"old": 4, "new": 1}

    replay.add(*batches[0])
    spark.range(60).selectExpr("id AS k", "1 AS name").write.mode("overwrite").parquet(folder)
    with pytest.raises(sk.SkewlessError, match="belongs to another query"):
        replay.run(lambda left, _: named(left, "1 millisecond"))
    described = spark.createDataFrame([], "k long, name string").schema
    stored = TableOfFunction(newest, described, rows=None)
    with pytest.raises(sk.SkewlessError, match="start a new query for the changed table"):
        stored.read(spark)


def names(rows: pa.Table) -> dict[str, int]:
    """In how many batches every name was given."""
    columns = zip(rows.column("at").to_pylist(), rows.column("name").to_pylist(), strict=True)
    found = {(int((at - EPOCH).total_seconds()) // 10, name) for at, name in columns}
    return {name: sum(n == name for _, n in found) for _, name in found}
