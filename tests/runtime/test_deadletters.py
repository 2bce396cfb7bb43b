"""Late and bad rows leave a trace: dead letters exactly once, samples in progress, a log line."""

import logging
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

import skewless as sk
from skewless.runtime.deadletters import dead_letter_columns
from skewless.runtime.stream import Stream
from skewless.runtime.topology import Node, Topology
from skewless.testing import POINTS, Fault, Replay

SECOND = 1_000_000
TIME = pa.timestamp("us", "UTC")
LEFT = pa.schema([("k", pa.int32()), ("t", TIME), ("v", pa.string()), ("operator", pa.int64())])
RIGHT = pa.schema([("id", pa.int64()), ("t", TIME), ("v", pa.float64())])
FAR = 2**62


def left(*rows: tuple[int, int | None, str]) -> pa.Table:
    times = [None if t is None else t * SECOND if t < FAR else t for _, t, _ in rows]
    columns = [[k for k, _, _ in rows], times, [v for _, _, v in rows], [9] * len(rows)]
    arrays = [pa.array(c, f.type) for c, f in zip(columns, LEFT, strict=True)]
    return pa.table(arrays, schema=LEFT)


def right(*rows: tuple[int, int, float]) -> pa.Table:
    return pa.table(
        [
            pa.array([k for k, _, _ in rows], pa.int64()),
            pa.array([t * SECOND for _, t, _ in rows], TIME),
            pa.array([v for _, _, v in rows], pa.float64()),
        ],
        schema=RIGHT,
    )


# The watermark after the first batch is 100 seconds, after the second 110.
BATCHES = [
    (left((1, 100, "a"), (1, None, "no time")), right((1, 100, 1.0))),
    (left((1, 90, "late"), (2, 110, "b"), (3, FAR, "far")), right((1, 110, 2.0), (1, 99, 3.0))),
    (left((1, 120, "c")), right((1, 120, 4.0))),
    (left((2, 100, "late"), (2, 100, "late"), (1, 130, "d")), right()),
]
EXPECTED = Counter(
    [
        (0, "left", "bad", 1, None, "no time", None),
        (1, "left", "late", 1, 90, "late", None),
        (1, "left", "bad", 3, None, "far", None),
        (1, "right", "late", None, 99, None, 3.0),
        (3, "left", "late", 2, 100, "late", None),
        (3, "left", "late", 2, 100, "late", None),
    ]
)


def join(left_rows: DataFrame, right_rows: DataFrame, watermark: Any = "0 seconds") -> Stream:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sk.StateGrowsWarning)
        return sk.join(
            left_rows,
            right_rows,
            on=[("k", "id")],
            time="t",
            within="5 seconds",
            watermark=watermark,
            balance=sk.Hash(2),
        )


def letters(spark: SparkSession, path: Path) -> Counter:
    found = spark.read.parquet(str(path))
    seconds = "if(v = 'far', null, unix_seconds(t))"
    rows = found.selectExpr(
        "batch", "input", "split(reason, '[: ]')[0] AS kind", "k", f"{seconds} AS t", "v", "v_right"
    )
    return Counter(tuple(row) for row in rows.collect())


def test_dead_letters_are_there_once_wherever_the_query_dies(spark, tmp_path: Path) -> None:
    """Columns that share a name with ours, or with one of another type, get a suffix."""
    replay = Replay(spark, tmp_path, BATCHES)
    dead = tmp_path / "dead letters"
    faults = [Fault(point, batch) for point, batch in zip(POINTS, (1, 1, 1, 1, 3), strict=True)]
    replay.run(join, faults, badRows="drop", deadLetterPath=str(dead))
    assert replay.restarts == len(faults)
    assert letters(spark, dead) == EXPECTED
    found = spark.read.parquet(str(dead))
    assert found.where("k IS NOT NULL AND operator_left != 9").count() == 0
    reasons = {row.reason for row in found.where("batch = 1").select("reason").collect()}
    assert reasons == {
        "late: its event time is not after the watermark, 1970-01-01T00:01:40Z",
        "bad row: its event time is null, or too far from 1970",
    }
    assert not list((replay.checkpoint / "skewless" / "dropped").iterdir()), "no garbage is left"


def test_without_a_path_progress_log_and_explanation_show_some(
    spark, tmp_path: Path, caplog, capsys
) -> None:
    replay = Replay(spark, tmp_path, BATCHES)
    with caplog.at_level(logging.WARNING, logger="skewless"):
        query = replay.start(join, badRows="drop")
        query.awaitTermination()
    told = [p["skewless"]["operators"][0]["dropped"] for p in query.recentProgress]
    assert [len(samples) for samples in told] == [1, 3, 0, 2]
    late = next(s for s in told[1] if s["input"] == "right")
    assert late["row"] == {"id": 1, "t": "1970-01-01T00:01:39+00:00", "v": 3.0}
    assert late["reason"].startswith("late: its event time")
    lines = [r.getMessage() for r in caplog.records if r.name == "skewless"]
    assert [line.split(":")[0] for line in lines] == ["batch 0", "batch 1", "batch 3"]
    assert "join on k = id dropped 2 late rows and 1 bad row; for example" in lines[1]
    query.explainBalance()
    assert "Dropped in these batches: 4 late rows and 2 bad rows" in capsys.readouterr().out


def test_keyed_state_and_maps_leave_whole_rows(spark, tmp_path: Path) -> None:
    """A chain: what a map could not do, and what came too late for its window, in one folder."""

    def checked(row: dict[str, Any]) -> dict[str, Any]:
        if row["v"] == "far":
            raise LookupError("nobody knows")
        return {"k": row["k"], "t": row["t"], "extra": "kept"}

    def build(rows: DataFrame, _: DataFrame) -> Stream:
        mapped = sk.map(
            rows.where("t IS NOT NULL").selectExpr("k", "if(v = 'far', null, t) AS t", "v"),
            checked,
            "k int, t timestamp, extra string",
            cost_key="k",
            per_row=True,
            balance=sk.RoundRobin(2),
        )
        return sk.keyed(
            mapped,
            "k",
            time="t",
            window="10 seconds",
            process=sk.Count(),
            watermark="0 seconds",
            balance=sk.Hash(2),
        )

    replay = Replay(spark, tmp_path, BATCHES)
    dead = tmp_path / "dead"
    counts = replay.run(build, badRows="drop", deadLetterPath=str(dead))
    assert sum(counts.column("count").to_pylist()) == 3
    found = spark.read.parquet(str(dead)).orderBy("batch", "operator").collect()
    told = [(r.batch, r.operator, r.input, r.k, r.v, r.extra) for r in found]
    assert told == [
        (1, 0, "input", 3, "far", None),
        (1, 1, "input", 1, None, "kept"),
        (3, 1, "input", 2, None, "kept"),
        (3, 1, "input", 2, None, "kept"),
    ]
    assert found[0].reason == "bad row: fn raised LookupError: nobody knows"
    assert found[1].reason.startswith("late: its window ends at or before the watermark, 1970-")


def test_columns_of_all_inputs_share_one_schema(spark, tmp_path: Path) -> None:
    replay = Replay(spark, tmp_path, BATCHES)
    stream = join(*replay.inputs())
    twice = sk.join(
        stream.transform(lambda df: df.withColumn("reason", df.k > 1)),
        replay.inputs()[1],
        on=[("k", "id")],
        time="t",
        within="1 second",
        watermark="1 second",
        suffix="_again",
    )
    schema, places = dead_letter_columns(Topology.of(twice.node))
    assert schema.simpleString() == (
        "struct<reason:string,operator:int,input:string,k:int,t:timestamp,v:string,"
        "operator_left:bigint,id:bigint,v_right:double,t_right:timestamp,reason_left:boolean>"
    )
    assert places[0, "right"] == {"id": "id", "t": "t", "v": "v_right"}
    assert places[1, "left"]["v_right"] == "v_right", "equal name and type: one column"
    assert isinstance(schema["operator_left"].dataType, T.LongType)


def places_of(**inputs: str) -> tuple[T.StructType, Any]:
    """The dead letters of an operator with such inputs."""
    schemas = {side: T.StructType.fromDDL(ddl) for side, ddl in inputs.items()}
    nothing: Any = None
    node = Node(nothing, (), nothing, T.StructType(), inputs=schemas)
    return dead_letter_columns(Topology.of(node))


def test_no_column_hides_another() -> None:
    schema, places = places_of(left="Cell string", right="cell string")
    assert places[0, "right"] == {"cell": "Cell"}, "one column, as Spark tells names apart"
    schema, places = places_of(left="x int", right="x string, x_right string")
    assert places[0, "right"] == {"x": "x_right", "x_right": "x_right_right"}
    schema, places = places_of(left="reason string, reason_left string, batch int")
    assert len(set(places[0, "left"].values())) == 3
    assert len({name.lower() for name in schema.names}) == len(schema.names)


def test_a_batch_that_is_read_twice_has_its_dead_letters_once(spark, tmp_path: Path) -> None:
    replay = Replay(spark, tmp_path, BATCHES)
    dead = tmp_path / "dead"

    def twice(frame: DataFrame, batch: int) -> None:
        frame.count()
        frame.collect()

    replay.start(join, function=twice, badRows="drop", deadLetterPath=str(dead)).awaitTermination()
    assert letters(spark, dead) == EXPECTED


def test_a_replay_that_drops_nothing_leaves_no_dead_letters_of_the_first_try(
    spark, tmp_path: Path
) -> None:
    replay = Replay(spark, tmp_path, [(left((1, 100, "a")), right((1, 100, 1.0))), BATCHES[1]])
    dead = str(tmp_path / "dead")
    died = replay.start(join, [Fault("before_commit", 1)], badRows="drop", deadLetterPath=dead)
    with pytest.raises(StreamingQueryException, match="SimulatedKill"):
        died.awaitTermination()
    assert sum(letters(spark, Path(dead)).values()) == 3

    def patient(left_rows: DataFrame, right_rows: DataFrame) -> Stream:
        return join(left_rows.where("v != 'far'"), right_rows, watermark=None)

    replay.start(patient, badRows="drop", deadLetterPath=dead).awaitTermination()
    assert spark.read.parquet(dead).count() == 0


def test_the_folder_of_dead_letters_holds_nothing_else(spark, tmp_path: Path) -> None:
    replay = Replay(spark, tmp_path, BATCHES)
    for inside in (replay.checkpoint / "dead", replay.out, replay.out / "dead"):
        with pytest.raises(sk.SkewlessError, match=r"deadLetterPath: .* lie inside each other"):
            replay.start(join, deadLetterPath=str(inside))


def test_dead_letters_of_another_checkpoint_are_not_replaced(spark, tmp_path: Path) -> None:
    dead = str(tmp_path / "dead")
    Replay(spark, tmp_path / "one", BATCHES[:1]).run(join, badRows="drop", deadLetterPath=dead)
    with pytest.raises(sk.SkewlessError, match=r"deadLetterPath: .* belongs to the checkpoint"):
        Replay(spark, tmp_path / "two", BATCHES[:1]).start(join, deadLetterPath=dead)
