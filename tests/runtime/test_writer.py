"""The writer and the query: formats, triggers, names, progress, and what is refused."""

import copy
import json
import threading
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F
from pyspark.sql.streaming import StreamingQuery

import skewless as sk
from skewless.runtime import advice
from skewless.runtime.history import History
from skewless.runtime.query import Query
from skewless.runtime.sinks import FileSink, MemorySink
from skewless.runtime.stream import Stream
from skewless.state.commit import CommitLog
from skewless.state.lock import DirectoryLock
from skewless.state.storage import Storage
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
    assert isinstance(query, StreamingQuery), "what takes a query of Spark's takes it"
    assert isinstance(query, sk.Query)
    assert StreamingQuery.id.fget(query) == query.id, "also what it does not define itself"
    query.explain()
    query.stop()
    assert not query.isActive


def test_a_query_of_connect_is_one_of_its_own_kind(tmp_path) -> None:
    """Connect's StreamingQuery is another class than the one of the classic Spark."""

    class Remote:
        id = "q"

        def awaitTermination(self) -> None: ...  # noqa: N802 - Spark's name

        def later(self) -> str:
            return f"{self.id} later"

    storage = Storage(str(tmp_path))
    lock = DirectoryLock(storage, "q")
    query = Query(Remote(), History(CommitLog(storage)), lock)  # type: ignore[arg-type]
    assert isinstance(query, Remote)
    assert isinstance(query, StreamingQuery)
    assert isinstance(query, sk.Query)
    assert query.id == "q"
    assert query.later() == "q later"
    assert not hasattr(query, "nothing")


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


def test_transform_is_ordinary_dataframe_code(replay, recwarn) -> None:
    stream = (
        build(*replay.inputs())
        .where("k < 3")
        .filter(F.col("k") == 1)
        .withColumn("twice", F.col("k") * 2)
        .withColumns({"w": F.upper("v"), "x": F.lit(1)})
        .withColumnRenamed("w", "W")
        .withColumnsRenamed({"twice": "double"})
        .drop("x", "ts")
        .selectExpr("k", "v", "W", "double + 0 AS double")
        .select("k", F.col("v"), "W", "double")
    )
    assert stream.columns == ["k", "v", "W", "double"]
    stream = stream.transform(lambda df: df.where("double = 2").select("k", "v"))
    stream = stream.transform(lambda df, text: df.withColumn("tag", F.lit(text)), "seen")
    assert stream.columns == ["k", "v", "tag"]
    assert not [w for w in recwarn if w.category is sk.PerBatchWarning]
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
    folder = Path(query._history._temporary)
    assert folder.is_dir()
    query.awaitTermination()
    assert not folder.exists(), "a temporary checkpoint goes when its query has ended"
    shown = capsys.readouterr().out
    assert "Batch: 0" in shown
    assert "only showing top 1 row" in shown
    query.explainBalance()
    told = capsys.readouterr().out
    assert told.startswith("join on k on 2 instances, policy Hash")
    assert "batch 2: imbalance" in told
    assert query.lastProgress["skewless"]["batchId"] == 2
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
        .trigger(processingTime="interval '10' milliseconds")
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
        (lambda w: w.trigger(continuous="1 second"), "continuous='1 second' is not offered"),
        (lambda w: w.trigger(realTime="5 minutes"), "use trigger(processingTime='0 seconds')"),
        (lambda w: w.foreach(print), "foreachBatch(lambda df, batch_id: df.foreach(f))"),
        (lambda w: w.toTable(""), "tableName: got ''; takes the name of a table"),
        (lambda w: w.toTable("t"), "checkpointLocation: missing"),
        (lambda w: w.toTable("t", format="console"), "format: got 'console'; takes the format of"),
        (lambda w: w.foreachBatch(lambda a, b: None).toTable("t"), "format: got 'foreachBatch'"),
        (lambda w: w.toTable("t", format="nope"), "format: got 'nope'; takes console, csv, "),
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


def test_a_location_is_one_folder_for_spark_and_for_the_state(replay, expected, capsys) -> None:
    """Spark takes %20 as it is; so does everything else, and what was written is protected."""
    job = replay.folder / "e%20f #1?"

    def start(checkpoint: str) -> Query:
        writer = build(*replay.inputs()).writeStream.trigger(availableNow=True)
        writer = writer.option("checkpointLocation", checkpoint)
        query = writer.start(f"file://{job}/out")
        query.awaitTermination()
        return query

    start(f"file://{job}/checkpoint")
    assert sorted(p.name for p in replay.folder.iterdir()) == ["e%20f #1?", "left", "right"]
    assert {"offsets", "commits", "skewless"} <= {p.name for p in (job / "checkpoint").iterdir()}
    assert (job / "out" / "batch=2").is_dir()
    with pytest.raises(
        sk.SkewlessError, match=r"path: .*belongs to the checkpoint .*e%20f #1\?/ch"
    ):
        start(str(job / "another"))
    assert not (job / "another").exists(), "nothing was written"

    (job / "checkpoint").rename(job / "moved")
    replay.add(*BATCHES[0])
    query = start(str(job / "moved"))
    (job / "out").rename(replay.out)  # Spark's readers take ? as a pattern
    found = replay.rows()
    assert found.num_rows > expected.num_rows
    assert "_skewless" in {p.name for p in replay.out.iterdir()}, "and readers do not see it"

    commit = job / "moved" / "skewless" / "commits" / "000000000003.json"
    commit.write_bytes(commit.read_bytes().replace(b'"watermarkUs":', b'"watermarkUs":1'))
    assert "000000000003.json: the commit cannot" in query.lastProgress["skewless"]["damaged"]
    query.explainBalance()
    assert "batch 3: " + query.lastProgress["skewless"]["damaged"] in capsys.readouterr().out
    with pytest.raises(sk.SkewlessError, match=r"000000000003.json: the commit cannot be read"):
        start(str(job / "moved"))


@pytest.mark.parametrize("name", ["../../x", "a/b", "..", "a\\b", "a\0b"])
def test_a_query_name_does_not_leave_the_default_checkpoint_folder(replay, name) -> None:
    default = "spark.sql.streaming.checkpointLocation"
    replay.spark.conf.set(default, str(replay.folder / "all" / "checkpoints"))
    try:
        with pytest.raises(sk.SkewlessError, match=r"queryName: got .*takes a name without /"):
            build(*replay.inputs()).writeStream.format("noop").queryName(name).start()
    finally:
        replay.spark.conf.unset(default)
    assert sorted(p.name for p in replay.folder.iterdir()) == ["left", "right"]


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


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("collect", r'no .collect.; write it with .writeStream.format\("memory"\)'),
        ("toPandas", r'format\("memory"\).queryName\("seen"\)'),
        ("show", r'format\("console"\).start\(\) shows every batch'),
        ("explain", r"query.explain\(\) for Spark's plan"),
        ("count", r"process=sk.Count\(\)\) counts by key"),
        ("union", "union the inputs before the operator"),
        ("groupBy", r"sk.keyed\(stream, .* df.groupBy\(...\)\) does it within each batch only"),
        ("join", "sk.join joins it with another stream"),
        ("withWatermark", "takes its own as watermark="),
        ("dropDuplicates", r"sk.keyed with a function .*df.dropDuplicates\(...\)\)"),
        ("limit", r"df.limit\(...\)\) does it within each batch only"),
        ("persist", "foreachBatch that uses its DataFrame more than once"),
        ("write", "use .writeStream"),
        ("mapInArrow", "sk.map"),
        ("fillna", r"use .transform\(lambda df: df.fillna\(...\)\), which is applied to every b"),
        ("v", r"use F.col\('v'\) for the column"),
        ("_jdf", "a DataFrame cannot be combined with it: union the inputs before the operator"),
        ("nothing", "no 'nothing'$"),
        ("__len__", "no '__len__'$"),
    ],
)
def test_what_a_stream_lacks_says_what_helps(replay, name, says) -> None:
    stream = build(*replay.inputs())
    assert not hasattr(stream, name)
    with pytest.raises(AttributeError, match=says):
        getattr(stream, name)


def test_advice_is_for_members_that_dataframes_have() -> None:
    # Not in every version, or a matter of each DataFrame.
    gone = {"registerTempTable", "_jdf", "_plan"}
    assert not [n for n in advice._BY_NAME if not hasattr(DataFrame, n) and n not in gone]
    assert not [n for n in advice._BY_NAME if hasattr(Stream, n)], "nobody would see it"


def test_a_stream_shows_itself_in_one_line(replay) -> None:
    left, right = replay.inputs()
    stream = build(left, right).select("k", F.struct("v").alias("s"))
    assert repr(stream) == "Stream[k: bigint, s: struct<v:string>] of join on k on 2 instances"
    renamed = right.withColumnRenamed("k", "j")
    joined = sk.join(left, renamed, on=[("k", "j"), "v"], time="ts", within="1 second")
    assert repr(joined).endswith("] of join on k = j, v")
    mapped = sk.map(left, dict, "k long", cost_key=["k", "v"], per_row=True, balance=sk.Hash(3))
    assert repr(mapped) == "Stream[k: bigint] of map by k, v on 3 instances"
    few = {"window": "1 hour", "balance": sk.Auto(instances=(2, 4))}
    counts = sk.keyed(left, "v", time="ts", process=sk.Count(), **few)
    assert repr(counts).endswith("] of keyed count by v on 2 to 4 instances")
    assert copy.copy(stream).columns == ["k", "s"]


def numbered(df: DataFrame) -> DataFrame:
    place = Window.partitionBy("k").orderBy("ts")
    return df.withColumn("place", F.row_number().over(place))


@pytest.mark.parametrize(
    ("code", "what"),
    [
        (lambda s: s.transform(lambda df: df.groupBy("k").count()), "transform: aggregates"),
        (lambda s: s.select(F.max("ts")), "select: aggregates"),
        (lambda s: s.transform(lambda df: df.distinct().where("k > 1")), "removes duplicates"),
        (lambda s: s.transform(lambda df: df.limit(3)), "limits rows"),
        (lambda s: s.transform(lambda df: df.orderBy("k")), "sorts"),
        (lambda s: s.transform(numbered), "uses window functions"),
        (
            lambda s: s.transform(
                lambda df: df.groupBy("k").applyInArrow(lambda rows: rows, df.schema)
            ),
            "groups",
        ),
        (lambda s: s.transform(lambda df: df.join(df.groupBy("k").count(), "k")), "aggregates"),
        (lambda s: s.transform(lambda df: df.sortWithinPartitions("k").repartition(3)), None),
        (
            lambda s: s.transform(
                lambda df: df.join(
                    s.session.range(9).groupBy("id").count(), F.col("k") == F.col("id")
                )
            ),
            None,
        ),
        (lambda s: s.withColumn("Aggregate", F.lit("+- Aggregate [k]")), None),
    ],
)
def test_code_that_sees_one_batch_at_a_time_is_warned_of(replay, code, what, recwarn) -> None:
    code(build(*replay.inputs()))
    told = [w for w in recwarn if w.category is sk.PerBatchWarning]
    assert len(told) == (what is not None)
    assert all(f"{what} within each batch only" in str(w.message) for w in told)
    assert all(w.filename == __file__ for w in told), "it names the user's line"


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
        sk.SkewlessError, match=r"format 99.*reads format 4.*new checkpointLocation"
    ):
        replay.start(build)


def test_a_checkpoint_in_use_is_refused(replay) -> None:
    writer = build(*replay.inputs()).writeStream.format("noop").queryName("first")
    first = writer.option("checkpointLocation", str(replay.checkpoint)).start()
    with pytest.raises(sk.SkewlessError, match=r"in use by a live query .*first.*stop that query"):
        replay.start(build)
    # Spark cannot go on from a query that was stopped while it wrote its first offsets.
    first.processAllAvailable()
    first.stop()
    replay.start(build).awaitTermination()


@pytest.mark.parametrize("harm", ["missing", "corrupt"])
def test_a_damaged_segment_is_named(replay, harm) -> None:
    replay.run(build)
    for segment in (replay.checkpoint / "skewless" / "segments").rglob("*.arrow"):
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
