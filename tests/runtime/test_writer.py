"""The writer and the query: formats, triggers, names, progress, and what is refused."""

import json
import threading
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import skewless as sk
from skewless.runtime.sinks import FileSink, MemorySink
from skewless.runtime.stream import Stream
from skewless.testing import Replay, assert_same_rows, join_oracle

EPOCH = datetime(2024, 1, 1, tzinfo=UTC)
TIME = pa.timestamp("us", "UTC")
LEFT = pa.schema([("k", pa.int64()), ("ts", TIME), ("v", pa.string())])


def rows(*triples: tuple[int | None, int | None, str]) -> pa.Table:
    """Rows of (key, second, payload)."""
    moments = [None if s is None else EPOCH + timedelta(seconds=s) for _, s, _ in triples]
    columns = [[k for k, _, _ in triples], moments, [v for _, _, v in triples]]
    return pa.table(columns, schema=LEFT)


BATCHES = [
    (rows((1, 0, "a"), (2, 1, "b")), rows((1, 1, "p"), (3, 2, "q"))),
    (rows((3, 3, "c")), rows((2, 2, "r"), (1, 9, "late for a"))),
    (rows((1, 10, "d")), rows((1, 11, "s"))),
]


def build(left: DataFrame, right: DataFrame) -> Stream:
    return sk.join(
        left,
        right,
        on="k",
        time="ts",
        within="2 seconds",
        watermark="20 seconds",
        balance=sk.Hash(2),
    )


@pytest.fixture
def replay(spark: SparkSession, tmp_path: Path) -> Replay:
    return Replay(spark, tmp_path, BATCHES)


@pytest.fixture(scope="module")
def expected() -> pa.Table:
    table = join_oracle(
        BATCHES,
        on=[("k", "k")],
        time=("ts", "ts"),
        within=("-2 seconds", "2 seconds"),
        watermark=("20 seconds", "20 seconds"),
    )
    assert table.num_rows == 5
    return table


def test_schema_before_anything_runs(replay, capsys) -> None:
    stream = build(*replay.inputs())
    assert stream.columns == ["k", "ts", "v", "ts_right", "v_right"]
    assert stream.dtypes[3] == ("ts_right", "timestamp")
    assert stream.schema["k"].dataType.simpleString() == "bigint"
    assert stream.isStreaming
    stream.printSchema()
    assert " |-- v_right: string (nullable = true)" in capsys.readouterr().out


@pytest.mark.parametrize("kind", ["parquet", "json", "csv", "orc"])
def test_file_formats_are_read_back_row_by_row(replay, expected, kind) -> None:
    stream = build(*replay.inputs())
    query = (
        stream.writeStream.format(kind)
        .option("checkpointLocation", str(replay.checkpoint))
        .outputMode("append")
        .queryName(f"to_{kind}")
        .trigger(availableNow=True)
        .start(str(replay.out))
    )
    query.awaitTermination()
    schema = ", ".join(f"{name} {kind}" for name, kind in [*stream.dtypes, ("batch", "int")])
    found = replay.spark.read.schema(schema).format(kind).load(str(replay.out))
    assert_same_rows(found.drop("batch").toArrow(), expected)
    assert sorted(p.name for p in replay.out.glob("batch=*")) == ["batch=0", "batch=1", "batch=2"]


def test_memory_sink_and_the_members_of_a_query(replay, expected) -> None:
    query = (
        build(*replay.inputs())
        .writeStream.format("memory")
        .queryName("kept")
        .option("checkpointLocation", str(replay.checkpoint))
        .start()
    )
    query.processAllAvailable()
    assert query.isActive
    assert query.name == "kept"
    assert query.exception() is None
    assert isinstance(query.status, dict)
    assert query.id != query.runId
    assert query.awaitTermination(0.05) is False
    assert_same_rows(replay.spark.table("kept").toArrow(), expected)
    query.explain()
    query.stop()
    assert not query.isActive


def test_progress_is_documented_field_by_field(replay) -> None:
    query = replay.start(build)
    query.awaitTermination()
    assert [p["batchId"] for p in query.recentProgress] == [0, 1, 2]
    record = query.lastProgress["skewless"]
    page = (Path(__file__).parents[2] / "docs" / "progress.md").read_text()

    def fields(value: object, path: str = "") -> list[str]:
        if isinstance(value, dict):
            return [f for k, v in value.items() for f in [k, *fields(v, f"{path}.{k}")]]
        if isinstance(value, list):
            return [f for v in value for f in fields(v, path)]
        return []

    undocumented = {f for f in fields(record) if f"`{f}`" not in page}
    assert not undocumented, f"docs/progress.md does not explain {sorted(undocumented)}"
    join = record["operators"][0]
    assert record["batchId"] == 2
    assert join["rows"] == {"left": 1, "right": 1}
    assert join["matches"] == 2
    assert join["instances"] == 2
    assert len(join["load"]["cpuMs"]) == 2
    assert sum(join["load"]["matches"]) == 2
    assert join["watermark"] == "2023-12-31T23:59:50Z"
    assert join["state"]["rows"] == {"left": 4, "right": 5}
    assert join["state"]["bytes"] > 0


def test_foreach_batch_sees_every_batch_once(replay, expected) -> None:
    seen: dict[int, pa.Table] = {}
    query = (
        build(*replay.inputs())
        .writeStream.foreachBatch(lambda df, n: seen.update({n: df.toArrow()}))
        .option("checkpointLocation", str(replay.checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    assert sorted(seen) == [0, 1, 2]
    assert_same_rows(pa.concat_tables(seen.values()), expected)


def test_transform_is_ordinary_dataframe_code(replay) -> None:
    stream = build(*replay.inputs()).transform(lambda df: df.where("k = 1").select("k", "v"))
    stream = stream.transform(lambda df, text: df.withColumn("tag", F.lit(text)), "seen")
    assert stream.columns == ["k", "v", "tag"]
    query = (
        stream.writeStream.format("parquet")
        .option("checkpointLocation", str(replay.checkpoint))
        .partitionBy("k")
        .trigger(availableNow=True)
        .start(str(replay.out))
    )
    query.awaitTermination()
    found = replay.rows()
    assert sorted(found.column("v").to_pylist()) == ["a", "d", "d"]
    assert set(found.column("tag").to_pylist()) == {"seen"}


def test_console_prints_and_keeps_the_state(replay, capsys) -> None:
    query = (
        build(*replay.inputs())
        .writeStream.format("console")
        .option("numRows", 1)
        .option("truncate", False)
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    shown = capsys.readouterr().out
    assert "Batch: 0" in shown
    assert "only showing top 1 row" in shown
    joins = [p["skewless"]["operators"][0] for p in query.recentProgress]
    assert sum(j["matches"] for j in joins) == 5


def test_once_and_processing_time_triggers(replay) -> None:
    stream = build(*replay.inputs())
    once = (
        stream.writeStream.format("noop")
        .option("checkpointLocation", str(replay.checkpoint))
        .trigger(once=True)
        .start()
    )
    once.awaitTermination()
    assert once.lastProgress["skewless"]["operators"][0]["matches"] == 5, "everything at once"
    replay.add(*BATCHES[0])
    timed = (
        stream.writeStream.format("noop")
        .option("checkpointLocation", str(replay.checkpoint))
        .trigger(processingTime="10 milliseconds")
        .start()
    )
    timed.processAllAvailable()
    timed.stop()
    assert timed.lastProgress["skewless"]["batchId"] == 1


def test_changing_the_instances_on_restart_keeps_the_state(replay, expected) -> None:
    for number, instances in enumerate((1, 3, 40)):
        part = Replay(replay.spark, replay.folder / "grown")
        for batch in BATCHES[: number + 1]:
            part.add(*batch)
        part.run(
            lambda left, right, n=instances: sk.join(
                left,
                right,
                on="k",
                time="ts",
                within="2 seconds",
                watermark="20 seconds",
                balance=sk.Hash(n),
            )
        )
    assert_same_rows(part.rows(), expected)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda w: w.outputMode("update"), "outputMode: got 'update'; takes 'append'"),
        (lambda w: w.trigger(), "trigger: got {}"),
        (lambda w: w.trigger(once=True, availableNow=True), "trigger: got"),
        (lambda w: w.trigger(once=False), "trigger: got {'once': False}"),
        (lambda w: w.trigger(processingTime="abc"), "processingTime: got 'abc'; takes a duration"),
        (lambda w: w.trigger(processingTime=5), "processingTime: got 5; takes a duration"),
        (lambda w: w.trigger(processingTime="-1 second"), "processingTime: got '-1 second'"),
        (lambda w: w.foreachBatch("x"), "foreachBatch: got 'x'"),
        (lambda w: w.foreachBatch(lambda df: None), "(DataFrame, batch id) (too many positional"),
        (lambda w: w.partitionBy(*w._stream.columns), "takes not all columns: one must be left"),
        (lambda w: w.format("text").start("/nowhere"), "text takes a single column of type string"),
        (lambda w: w.format("memory").queryName("a b").start(), "queryName: got 'a b'; takes let"),
        (lambda w: w.queryName(""), "queryName: got ''"),
        (lambda w: w.format(""), "format: got ''"),
        (lambda w: w.format("nope").start(), "format: got 'nope'; takes console, csv, "),
        (lambda w: w.format("avro").start("/nowhere"), "format: got 'avro'; takes console, csv, "),
        (lambda w: w.partitionBy("nope"), "partitionBy: got 'nope'"),
        (lambda w: w.partitionBy("k", 3), "partitionBy: got 3"),
        (lambda w: w.format("console").start(numRows="many"), "numRows: got 'many'; takes a whole"),
        (lambda w: w.format("console").start(numRows=-1), "numRows: got '-1'"),
        (lambda w: w.format("console").start(truncate=5), "truncate: got '5'; takes true or false"),
        (lambda w: w.format("parquet").start(), "path: the parquet sink needs one"),
        (lambda w: w.format("parquet").start("/nowhere"), "checkpointLocation: missing"),
        (lambda w: w.format("parquet").start(""), "path: got ''"),
        (lambda w: w.format("noop").start(checkpointLocation=""), "checkpointLocation: got ''"),
        (lambda w: w.format("memory").start(), "queryName: the memory sink needs one"),
        (lambda w: w.format("noop").option("badRows", "ignore").start(), "badRows: got 'ignore'"),
        (
            lambda w: w.format("noop").start(checkpointLocation="/proc/nowhere"),
            "checkpointLocation: /proc/nowhere/skewless/: cannot create it",
        ),
        (lambda w: w.format("noop").start(stateLocation="what://x/y"), "pyarrow.fs cannot open it"),
    ],
)
def test_wrong_options_are_refused_before_any_job(replay, call, says) -> None:
    with pytest.raises(sk.SkewlessError) as refused:
        call(build(*replay.inputs()).writeStream)
    assert says in str(refused.value)
    assert not replay.spark.streams.active


def test_the_last_of_format_and_foreach_batch_is_meant(replay, expected) -> None:
    def never(df: DataFrame, batch: int) -> None:
        raise AssertionError("format came later")

    query = (
        build(*replay.inputs())
        .writeStream.foreachBatch(never)
        .format("parquet")
        .partitionBy("V")  # as the session reads names: upper or lower case
        .option("checkpointLocation", str(replay.checkpoint))
        .option("compression", "gzip")
        .option("Compression", None)
        .trigger(availableNow=True)
        .start(str(replay.out))
    )
    query.awaitTermination()
    assert_same_rows(replay.rows(), expected)
    assert (replay.out / "batch=0" / "v=a").is_dir()
    assert not list(replay.out.rglob("*.gz.parquet")), "None takes an option back"


def test_names_are_compared_as_the_session_does(replay) -> None:
    writer = build(*replay.inputs()).writeStream
    replay.spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        with pytest.raises(sk.SkewlessError, match="partitionBy: got 'K'"):
            writer.partitionBy("K")
        writer.partitionBy("k")
    finally:
        replay.spark.conf.unset("spark.sql.caseSensitive")


@pytest.mark.parametrize(
    ("out", "checkpoint", "state"),
    [
        ("job", "job/checkpoint", None),
        ("job/checkpoint/out", "job/checkpoint", None),
        ("job", "job", None),
        ("job/../job/out", "checkpoint", "job/out/state"),
        ("state/out", "checkpoint", "state"),
    ],
)
def test_result_and_state_inside_each_other_are_refused(replay, out, checkpoint, state) -> None:
    folder = replay.folder
    writer = build(*replay.inputs()).writeStream.format("json")
    writer.option("checkpointLocation", f"file://{folder}/{checkpoint}")
    writer.option("stateLocation", None if state is None else str(folder / state))
    with pytest.raises(sk.SkewlessError, match="lie inside each other; choose two folders"):
        writer.start(str(folder / out))
    assert not (folder / "checkpoint").exists()
    assert not (folder / "job").exists()


def test_neighbours_whose_names_begin_alike_are_not_inside_each_other(replay) -> None:
    writer = build(*replay.inputs()).writeStream.trigger(availableNow=True)
    writer.option("checkpointLocation", str(replay.folder / "out-checkpoint"))
    writer.start(str(replay.out)).awaitTermination()
    assert replay.rows().num_rows == 5


def test_relative_paths_mean_the_same_wherever_java_was_started(
    replay, tmp_path, monkeypatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    writer = build(*replay.inputs()).writeStream.format("parquet")
    query = writer.option("checkpointLocation", "cp").trigger(availableNow=True).start("out")
    query.awaitTermination()
    found = {path.name for path in (tmp_path / "elsewhere" / "cp").iterdir()}
    assert {"offsets", "commits", "skewless"} <= found
    assert (tmp_path / "elsewhere" / "out" / "batch=0").is_dir()


def test_the_memory_sink_hands_over_few_parts(spark) -> None:
    """Sizes that rise and fall; every row once, in few parts, each twice as large as the next."""
    frame = spark.range(1)
    sink = MemorySink("parts", spark, frame.schema)
    sink.publish()
    assert spark.table("parts").count() == 0
    sizes = [5, 0, 4, 4, 3, 9, 1, 1, 8, 7, 6, 5]
    for number, size in enumerate(sizes):
        begin = sum(sizes[:number])
        sink.write(spark.range(begin, begin + size), number)
    found = sorted(spark.table("parts").toArrow().column("id").to_pylist())
    assert found == list(range(sum(sizes)))
    parts = [part.rows.num_rows for part in sink._parts]
    assert all(a >= 2 * b for a, b in pairwise(parts))


def test_a_column_named_batch_cannot_go_to_files(replay) -> None:
    stream = build(*replay.inputs()).transform(lambda df: df.withColumnRenamed("v", "Batch"))
    with pytest.raises(sk.SkewlessError, match="rename the column"):
        stream.writeStream.format("parquet").option("checkpointLocation", "/c").start("/p")


def test_nested_columns_cannot_go_to_csv(replay) -> None:
    stream = build(*replay.inputs()).transform(lambda df: df.select(F.struct("k", "v").alias("s")))
    says = r"csv cannot hold the column 's' of type struct<.*; choose 'parquet' or 'json'"
    with pytest.raises(sk.SkewlessError, match=says):
        stream.writeStream.format("csv").option("checkpointLocation", "/c").start("/p")


def test_a_start_that_is_refused_leaves_the_view_of_its_name_alone(replay) -> None:
    stream = build(*replay.inputs())
    query = stream.writeStream.format("memory").queryName("kept").start()
    query.processAllAvailable()
    rows = replay.spark.table("kept").count()
    assert rows
    with pytest.raises(Exception, match="kept"):
        stream.writeStream.format("memory").queryName("kept").start()
    assert replay.spark.table("kept").count() == rows
    query.stop()


def test_a_transform_may_not_bring_a_stream_of_its_own(replay) -> None:
    left, right = replay.inputs()
    with pytest.raises(sk.SkewlessError, match=r"transform: .*not of a stream"):
        build(left, right).transform(lambda df: left)


def test_dataframe_code_on_a_stream_is_told_where_it_belongs(replay) -> None:
    stream = build(*replay.inputs())
    with pytest.raises(AttributeError, match=r"no 'select'; use .transform\(lambda df: df.select"):
        stream.select("k")
    with pytest.raises(AttributeError, match=r"no 'nothing'$"):
        stream.nothing()
    assert not hasattr(stream, "__len__")


def test_a_replay_replaces_all_partitions_of_its_batch(spark, tmp_path) -> None:
    """Also where the session would have Spark replace only those that are written again."""
    sink = FileSink("parquet", str(tmp_path), {}, ("k",))
    mode = "spark.sql.sources.partitionOverwriteMode"
    spark.conf.set(mode, "dynamic")
    try:
        sink.write(spark.createDataFrame([(1, "a"), (2, "b")], "v int, k string"), 3)
        sink.write(spark.createDataFrame([(5, "a")], "v int, k string"), 3)
    finally:
        spark.conf.unset(mode)
    found = spark.read.parquet(str(tmp_path)).collect()
    assert [(r.v, r.k, r.batch) for r in found] == [(5, "a", 3)]


def test_a_session_of_another_thread_is_taken_as_it_is(spark) -> None:
    settings = dict(spark.conf.getAll)
    found = []
    thread = threading.Thread(target=lambda: found.append(sk.session()))
    thread.start()
    thread.join()
    assert found[0].sparkContext is spark.sparkContext
    assert dict(spark.conf.getAll) == settings


def test_a_path_of_sparks_own_sink_is_refused(replay) -> None:
    (replay.out / "_spark_metadata").mkdir(parents=True)
    with pytest.raises(sk.SkewlessError, match=r"_spark_metadata.*choose another path"):
        replay.start(build)


def test_a_checkpoint_of_another_query_is_refused(replay) -> None:
    replay.run(build)
    left, right = replay.inputs()
    changed = sk.join(left, right, on="k", time="ts", within="3 seconds", balance=sk.Hash(2))
    writer = changed.writeStream.format("noop").option("checkpointLocation", str(replay.checkpoint))
    with pytest.raises(
        sk.SkewlessError, match=r"another query: .*withinUs.*new checkpointLocation"
    ):
        writer.start()
    renamed = sk.join(
        left.withColumnRenamed("v", "w"), right, on="k", time="ts", within="2 seconds"
    )
    writer = renamed.writeStream.format("noop").option("checkpointLocation", str(replay.checkpoint))
    with pytest.raises(sk.SkewlessError, match=r'was "v" and is now "w"'):
        writer.start()


def test_a_checkpoint_of_another_format_is_refused(replay) -> None:
    replay.run(build)
    newest = max((replay.checkpoint / "skewless" / "commits").glob("*.json"))
    newest.write_text(json.dumps({**json.loads(newest.read_text()), "format": 99}))
    with pytest.raises(
        sk.SkewlessError, match=r"format 99.*reads format 2.*new checkpointLocation"
    ):
        replay.start(build)


def test_a_checkpoint_in_use_is_refused(replay) -> None:
    writer = build(*replay.inputs()).writeStream.format("noop").queryName("first")
    first = writer.option("checkpointLocation", str(replay.checkpoint)).start()
    with pytest.raises(sk.SkewlessError, match=r"in use by a live query .*first.*stop that query"):
        replay.start(build)
    first.stop()
    replay.start(build).awaitTermination()


@pytest.mark.parametrize("harm", ["missing", "corrupt"])
def test_a_damaged_segment_is_named(replay, harm) -> None:
    replay.run(build)
    for segment in (replay.checkpoint / "skewless" / "segments").iterdir():
        segment.unlink() if harm == "missing" else segment.write_bytes(b"not Arrow at all")
    replay.add(*BATCHES[2])
    with pytest.raises(StreamingQueryException, match=rf"segments/b0000.*segment.* is {harm}"):
        replay.start(build).awaitTermination()


def test_bad_rows_stop_the_query_or_are_dropped(spark, tmp_path) -> None:
    bad = (rows((1, None, "no time"), (1, 1, "ok")), rows((1, 1, "p")))
    replay = Replay(spark, tmp_path, [bad])
    with pytest.raises(StreamingQueryException, match=r"^bad row: the left input.*'v': 'no time'"):
        replay.start(build).awaitTermination()
    assert not list((replay.checkpoint / "skewless" / "commits").iterdir())
    query = replay.start(build, badRows="drop")
    query.awaitTermination()
    assert query.lastProgress["skewless"]["operators"][0]["badRows"] == {"left": 1, "right": 0}
    assert replay.rows().column("v").to_pylist() == ["ok"]


def test_a_lost_commit_is_named(replay) -> None:
    replay.run(build)
    commits = sorted((replay.checkpoint / "skewless" / "commits").iterdir())
    commits.pop().unlink()
    replay.add(*BATCHES[2])
    with pytest.raises(StreamingQueryException, match=r"commit of batch 2 is missing"):
        replay.start(build).awaitTermination()
    for commit in commits:
        commit.unlink()
    with pytest.raises(sk.SkewlessError, match=r"Spark has finished batch 2.*restore the state"):
        replay.start(build)


def test_a_checkpoint_of_sparks_own_join_is_refused_at_the_start(replay) -> None:
    left, right = replay.inputs()
    own = left.join(right.withColumnRenamed("ts", "rt"), "k").writeStream.format("noop")
    own = own.option("checkpointLocation", str(replay.checkpoint)).trigger(availableNow=True)
    own.start().awaitTermination()
    with pytest.raises(
        sk.SkewlessError, match=r"query of Spark's own, which cannot be taken over.*new checkpoint"
    ):
        replay.start(build)
    assert not (replay.checkpoint / "skewless").exists(), "nothing was written into it"
