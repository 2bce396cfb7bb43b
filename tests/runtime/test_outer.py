"""Outer, semi and anti joins on Spark: as the oracle says, as Spark's own join does, once."""

from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import skewless as sk
from skewless.testing import POINTS, Fault, Replay, assert_same_rows, join_oracle

from .batches import WITHIN, batches, join_options, oracle_options

WATERMARK = "6 seconds"  # some rows are late
HOWS = ("left", "right", "full", "left_semi", "left_anti")
FAULTS = [Fault(point, batch) for batch, point in enumerate(POINTS)]


def with_nulls(table: pa.Table) -> pa.Table:
    """Every seventh row has no key, and every fifth a key that the other side has not."""
    keys = [
        None if at % 7 == 3 else f"only {table.column_names[1]}" if at % 5 == 1 else key
        for at, key in enumerate(table.column("k").to_pylist())
    ]
    return table.set_column(0, "k", pa.array(keys))


def newest_last(table: pa.Table) -> pa.Table:
    """With one more row, as new as the newest, that has a key."""
    last = [["last"], [pc.max(table.column(1)).as_py()], [-1]]
    return pa.concat_tables([table, pa.table(last, schema=table.schema)])


BATCHES = [(with_nulls(left), with_nulls(right)) for left, right in batches(6, seed=5, stray_s=30)]


def joined(how: str, balance: Any) -> Any:
    def build(left: DataFrame, right: DataFrame) -> Any:
        options = join_options(WATERMARK)
        return sk.join(left, right, how=how, balance=balance, **options)

    return build


@pytest.mark.parametrize("how", HOWS)
def test_rows_come_once_whatever_dies(spark: SparkSession, tmp_path: Path, how: str) -> None:
    replay = Replay(spark, tmp_path, BATCHES)
    # One fault after the other in the type that has it all; fewer in the others.
    faults = FAULTS if how == "full" else [FAULTS[HOWS.index(how)]]
    found = replay.run(joined(how, sk.ContRand(4, group=2)), faults)
    expected = join_oracle(BATCHES, how=how, **oracle_options(WATERMARK))
    assert expected.num_rows > 20
    assert_same_rows(found, expected)
    assert replay.restarts >= len(faults) - 1


def sparks_own(left: DataFrame, right: DataFrame, how: str) -> DataFrame:
    one = left.withWatermark("lt", WATERMARK).alias("l")
    other = right.withWatermark("rt", WATERMARK).alias("r")
    condition = F.expr(
        f"l.k = r.k AND r.rt >= l.lt + INTERVAL {WITHIN[0]} AND r.rt <= l.lt + INTERVAL {WITHIN[1]}"
    )
    return one.join(other, condition, how)


def test_sparks_own_join_gives_the_same_rows(spark: SparkSession, tmp_path: Path) -> None:
    """On the same micro-batches; Spark looks for late rows a batch later, so none is late here.

    Its full outer join pairs rows without a key, as no other join does: there every row has one.
    Its other joins drop some of them before the watermark is taken: the newest rows have a key.
    """
    plain = batches(3, seed=8)
    made = [(newest_last(with_nulls(a)), newest_last(with_nulls(b))) for a, b in plain]
    for how in ("left", "right", "full", "left_semi"):
        replay = Replay(spark, tmp_path / how, plain if how == "full" else made)
        build = joined(how, sk.Auto(instances=2))
        found = replay.run(build)
        frame = sparks_own(*replay.inputs(), how)
        out = tmp_path / how / "spark"
        query = (
            frame.selectExpr(*_shown(how))
            .writeStream.format("parquet")
            .option("checkpointLocation", f"{out}-checkpoint")
            .trigger(availableNow=True)
            .start(str(out))
        )
        query.awaitTermination()
        assert_same_rows(found, spark.read.parquet(str(out)).toArrow())


def _shown(how: str) -> list[str]:
    if how == "left_semi":
        return ["k", "lt", "a"]
    return ["coalesce(l.k, r.k) AS k", "lt", "a", "rt", "b"]


def test_every_kind_of_sink_gets_both_parts(spark: SparkSession, tmp_path: Path) -> None:
    """Pairs of the tasks and rows without a match: of the memory, of functions, of code on both."""
    expected = join_oracle(BATCHES, how="left", **oracle_options(WATERMARK))
    replay = Replay(spark, tmp_path / "function", BATCHES)
    rows: list[pa.Table] = []
    query = replay.start(
        joined("left", sk.Hash(2)), function=lambda df, _: rows.append(df.toArrow())
    )
    query.awaitTermination()
    assert_same_rows(pa.concat_tables(rows), expected)
    build = joined("left", sk.Hash(2))
    memory = (
        build(*replay.inputs())
        .transform(lambda df: df.where("a IS NOT NULL"))
        .writeStream.format("memory")
        .queryName("both_parts")
        .trigger(availableNow=True)
        .start()
    )
    memory.awaitTermination()
    assert_same_rows(spark.table("both_parts").toArrow(), expected)


def test_joins_and_keyed_state_may_follow(spark: SparkSession, tmp_path: Path) -> None:
    """The watermark is carried on: no row of an outer join is late for the operators behind it."""
    made = batches(6, seed=11)
    options = join_options("16 seconds")  # no row is late

    def build(left: DataFrame, right: DataFrame) -> Any:
        first = sk.join(left, right, how="left", balance=sk.Hash(2), **options)
        second = sk.join(
            first.select("k", "lt", "a"),
            right.withColumnRenamed("b", "c"),
            on="k",
            time=("lt", "rt"),
            within=("0 seconds", "1 second"),
            watermark=("0 seconds", "16 seconds"),
            how="left_anti",
            balance=sk.Hash(2),
        )
        return sk.keyed(
            second, "k", time="lt", window="5 seconds", process=sk.Count(), balance=sk.Hash(2)
        )

    replay = Replay(spark, tmp_path, made)
    found = replay.run(build, [Fault("after_sink", 2), Fault("before_commit", 4)])
    assert replay.restarts == 2
    pairs = join_oracle(made, how="left", **oracle_options("16 seconds"))
    rights = pa.concat_tables(right for _, right in made)
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    connection.register("pairs", pairs)
    connection.register("rights", rights)
    rows = connection.sql(
        """SELECT k, epoch_us(lt) // 5000000 AS w, count(*) AS n FROM pairs p
           WHERE NOT EXISTS (FROM rights r WHERE r.k = p.k
                             AND epoch_us(r.rt) - epoch_us(p.lt) BETWEEN 0 AND 1000000)
           GROUP BY ALL"""
    ).fetchall()
    expected = {(k, w): n for k, w, n in rows}
    got = {
        (row["k"], int(row["window"]["start"].timestamp()) // 5): row["count"]
        for row in found.to_pylist()
    }
    assert len(got) > 5
    # Windows that are closed are complete; the others have yet to come.
    assert {key: expected.get(key) for key in got} == got
    last = max(w for _, w in got)
    assert {key for key in expected if key[1] < last} == {key for key in got if key[1] < last}
