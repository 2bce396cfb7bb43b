"""Wherever a query dies, its output is the oracle's: nothing twice, nothing missing."""

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from skewless.testing import (
    POINTS,
    Fault,
    Replay,
    assert_same_rows,
    join_oracle,
)

from .batches import batches, build, oracle_options

LATE_S = 60  # some rows are so much older than their batch that they are late


def rows_of(table: pa.Table, batch: int) -> pa.Table:
    """The pairs that a batch gives: those whose younger row came with it."""
    came_with = np.maximum(table["a"].to_numpy(), table["b"].to_numpy()) // 1000
    return table.filter(pa.array(came_with == batch))


@pytest.mark.parametrize(
    "faults",
    [
        pytest.param([Fault(p, batch) for batch, p in enumerate(POINTS)], id="a batch each"),
        pytest.param([Fault(p, 1) for p in reversed(POINTS)], id="again and again in one batch"),
    ],
)
def test_a_death_at_any_point_changes_nothing(
    spark: SparkSession, tmp_path: Path, faults: list[Fault]
) -> None:
    made = batches(6, stray_s=LATE_S)
    replay = Replay(spark, tmp_path, made)
    found = replay.run(build, faults)
    assert replay.restarts == len(faults)
    expected = join_oracle(made, **oracle_options())
    assert 0 < expected.num_rows < join_oracle(made, **oracle_options("1 hour")).num_rows, (
        "the batches have late rows"
    )
    assert_same_rows(found, expected)


def test_a_killed_worker_is_replaced_and_the_query_goes_on(
    spark: SparkSession, tmp_path: Path
) -> None:
    made = batches(4, stray_s=LATE_S)
    marker = tmp_path / "struck"
    replay = Replay(spark, tmp_path, made)
    fault = Fault("in_task", batch=1, action="kill", once=str(marker))
    query = replay.start(build, [fault])
    query.awaitTermination()
    assert marker.exists(), "a worker was killed"
    assert [p["batchId"] for p in query.recentProgress] == [0, 1, 2, 3], "without a restart"
    assert_same_rows(replay.rows(), join_oracle(made, **oracle_options()))


@pytest.mark.parametrize("kind", ["json", "parquet"])
def test_the_folder_of_a_replayed_batch_is_replaced(
    spark: SparkSession, tmp_path: Path, kind: str
) -> None:
    made = batches(3)
    replay = Replay(spark, tmp_path, made)

    def written() -> set[Path]:
        return set((replay.out / "batch=1").glob(f"part-*.{kind}")) | set(
            (replay.out / "batch=1").glob(f"part-*.*.{kind}")
        )

    with pytest.raises(StreamingQueryException, match="SimulatedKill"):
        replay.start(build, [Fault("after_sink", batch=1)], format=kind).awaitTermination()
    first = written()
    (replay.out / "batch=1" / f"part-of-an-older-attempt.{kind}").write_bytes(b"not even readable")
    replay.start(build, format=kind).awaitTermination()
    second = written()
    assert first
    assert second
    assert not first & second, "the files of the first attempt are gone"
    schema = build(*replay.inputs()).schema
    found = spark.read.format(kind).schema(schema).load(str(replay.out)).toArrow()
    assert_same_rows(found, join_oracle(made, **oracle_options()))


def test_a_function_is_given_the_same_rows_for_a_replayed_batch(
    spark: SparkSession, tmp_path: Path
) -> None:
    made = batches(4, stray_s=LATE_S)
    replay = Replay(spark, tmp_path, made)
    given: dict[int, list[pa.Table]] = {}

    def keep(frame: DataFrame, batch: int) -> None:
        given.setdefault(batch, []).append(frame.toArrow())

    for fault in [Fault("after_sink", 1), Fault("before_commit", 1), Fault("after_commit", 2)]:
        with pytest.raises(StreamingQueryException, match="SimulatedKill"):
            replay.start(build, [fault], function=keep).awaitTermination()
    replay.start(build, function=keep).awaitTermination()
    assert [len(given[batch]) for batch in range(4)] == [1, 3, 2, 1]
    expected = join_oracle(made, **oracle_options())
    for batch, attempts in given.items():
        for attempt in attempts:
            assert_same_rows(attempt, rows_of(expected, batch))


def test_a_function_that_exits_stops_the_query(spark: SparkSession, tmp_path: Path) -> None:
    """PySpark itself would wait for the function's answer for ever."""
    made = batches(2)
    replay = Replay(spark, tmp_path, made)

    def leave(frame: DataFrame, batch: int) -> None:
        sys.exit("enough")

    with pytest.raises(StreamingQueryException, match=r"^SystemExit: enough\n"):
        replay.start(build, function=leave).awaitTermination()
    assert_same_rows(replay.run(build), join_oracle(made, **oracle_options()))


def nothing(frame: DataFrame) -> None:
    """A function that forgets its rows."""


def first_row(frame: DataFrame) -> None:
    frame.limit(1).collect()


def is_empty(frame: DataFrame) -> None:
    frame.isEmpty()


def pruned(frame: DataFrame) -> None:
    assert frame.where("false").count() == 0


def some_rows(frame: DataFrame) -> None:
    frame.where("a % 2 = 0").collect()


def twice(frame: DataFrame) -> pa.Table:
    rows = frame.toArrow()
    assert frame.count() == rows.num_rows
    return rows


def persisted(frame: DataFrame) -> pa.Table:
    frame.persist()
    rows = frame.toArrow()
    assert frame.count() == rows.num_rows
    frame.unpersist()
    return rows


def in_one_task(frame: DataFrame) -> pa.Table:
    return frame.coalesce(1).toArrow()


def below_others(frame: DataFrame) -> pa.Table:
    """The tasks of the join are not the first ones of the job."""
    other = frame.sparkSession.range(0, 50, 1, 3).selectExpr("id AS a")
    rows = other.unionByName(frame, allowMissingColumns=True).where("b IS NOT NULL").toArrow()
    return rows.select(frame.columns)


def with_itself(frame: DataFrame) -> pa.Table:
    both = frame.selectExpr("*", "1 AS copy").union(frame.selectExpr("*", "2 AS copy"))
    return both.where("copy = 2").drop("copy").toArrow()


WAYS: list[Callable[[DataFrame], pa.Table | None]] = [
    nothing,
    first_row,
    is_empty,
    pruned,
    some_rows,
    twice,
    persisted,
    in_one_task,
    below_others,
    with_itself,
]


def test_however_a_function_consumes_a_batch_the_state_is_complete(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Every other batch is consumed in another way; the one after it must find all its rows."""
    made = batches(2 * len(WAYS), stray_s=LATE_S)
    given: dict[int, pa.Table | None] = {}

    def consume(frame: DataFrame, batch: int) -> None:
        way = WAYS[batch // 2] if batch % 2 == 0 else DataFrame.toArrow
        given[batch] = way(frame)

    Replay(spark, tmp_path, made).start(build, function=consume).awaitTermination()
    expected = join_oracle(made, **oracle_options())
    assert list(given) == list(range(len(made)))
    for batch, found in given.items():
        if found is not None:
            right = rows_of(expected, batch)
            assert right.num_rows, "the batch proves something"
            try:
                assert_same_rows(found, right)
            except AssertionError as failure:
                failure.add_note(f"batch {batch}, around `{WAYS[batch // 2].__name__}`")
                raise
