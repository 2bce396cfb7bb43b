"""Joins that may shed, on Spark: the limit, the record of progress, and results that stay true."""

from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import skewless as sk
from skewless.testing import Replay, assert_same_rows, join_oracle

TIME = pa.timestamp("us", "UTC")
LEFT = pa.schema([("k", pa.int64()), ("lt", TIME), ("a", pa.int64())])
RIGHT = pa.schema([("k", pa.int64()), ("rt", TIME), ("b", pa.int64())])
WITHIN = ("-5 seconds", "5 seconds")


def batches(count: int, rows: int) -> list[tuple[pa.Table, pa.Table]]:
    rng = np.random.default_rng(5)
    made = []
    for number in range(count):
        start = datetime(2024, 1, 1, tzinfo=UTC) + timedelta(seconds=5 * number)
        sides = []
        for schema in (LEFT, RIGHT):
            moments = [start + timedelta(milliseconds=int(m)) for m in rng.integers(0, 5_000, rows)]
            columns = [rng.integers(0, 20, rows), moments, np.arange(rows) + number * rows]
            sides.append(pa.table(columns, schema=schema))
        made.append((sides[0], sides[1]))
    return made


def build(shed: Any) -> Any:
    return lambda left, right: sk.join(
        left,
        right,
        on="k",
        time=("lt", "rt"),
        within=WITHIN,
        watermark="0 seconds",
        shed=shed,
        balance=sk.Hash(2),
    )


def bag(table: pa.Table) -> Counter[Any]:
    return Counter(zip(table.column("a").to_pylist(), table.column("b").to_pylist(), strict=True))


def test_a_limit_far_away_costs_no_result_and_a_near_one_no_truth(spark, tmp_path: Path) -> None:
    inputs = batches(4, 400)
    expected = join_oracle(
        inputs, on=[("k", "k")], time=("lt", "rt"), within=WITHIN, watermark=("0 seconds",) * 2
    )
    calm = Replay(spark, tmp_path / "calm", inputs)
    query = calm.start(build(sk.Shed("1 hour")))
    query.awaitTermination()
    assert_same_rows(calm.rows(), expected)
    told = query.lastProgress["skewless"]["operators"][0]["shed"]
    assert (told["policy"], told["fraction"], told["missed"]) == ("Shed", 1.0, 0.0)
    assert told["maxLatencyMs"] == 3_600_000.0

    # No batch of Spark's takes a millisecond: nearly everything is shed, and it is told.
    hurried = Replay(spark, tmp_path / "hurried", inputs)
    query = hurried.start(build(sk.Shed("1 ms")))
    query.awaitTermination()
    found = bag(hurried.rows())
    assert not found - bag(expected)
    records = [p["skewless"]["operators"][0] for p in query.recentProgress]
    assert records[-1]["shed"]["fraction"] < 0.5
    for record in records:
        told = record["shed"]
        assert told["droppedRows"] == {"left": 0, "right": 0}, "it is not the rows that take long"
        assert told["results"] + told["missed"] == pytest.approx(told["offered"], rel=1e-3)


def test_without_a_limit_a_query_does_not_start(spark, tmp_path: Path) -> None:
    replay = Replay(spark, tmp_path, batches(1, 5))
    with pytest.raises(sk.SkewlessError, match="shed: Shed has no max_latency, and the trigger"):
        replay.start(build(sk.Shed()))


def test_the_interval_of_the_trigger_is_the_limit(spark, tmp_path: Path) -> None:
    replay = Replay(spark, tmp_path, batches(1, 50))
    stream = build(sk.RandomDrop())(*replay.inputs())
    writer = stream.writeStream.format("noop").trigger(processingTime="2 seconds")
    query = writer.option("checkpointLocation", str(tmp_path / "state")).start()
    query.processAllAvailable()
    told = query.lastProgress["skewless"]["operators"][0]["shed"]
    assert (told["policy"], told["maxLatencyMs"]) == ("RandomDrop", 2_000.0)
    query.stop()
