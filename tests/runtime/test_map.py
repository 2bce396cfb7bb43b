"""sk.map on Spark: the plain map, each row once, however it is dealt out, killed or consumed."""

import asyncio
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark import cloudpickle
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

import skewless as sk
from skewless.errors import SkewlessError
from skewless.runtime.stream import Stream
from skewless.testing import POINTS, Fault, Replay, assert_same_rows, join_oracle

from . import batches as joined

# The workers cannot import this module: its functions travel whole.
cloudpickle.register_pickle_by_value(sys.modules[__name__])

# Two columns have the names of helper columns, on purpose.
NOON = datetime(2024, 5, 1, 12, tzinfo=UTC)
ROWS = pa.schema(
    [
        ("h", pa.string()),
        ("n", pa.int64()),
        ("instance", pa.list_(pa.int64())),
        ("place", pa.struct([("x", pa.float64()), ("tags", pa.list_(pa.string()))])),
    ]
)
NONE = pa.table({"unused": pa.array([0])})
TEXT = "n long, size long, place struct<x: double, tags: array<string>>"
PLACE = T.StructType().add("x", T.DoubleType()).add("tags", T.ArrayType(T.StringType()))
STRUCT = T.StructType().add("n", T.LongType()).add("size", T.LongType()).add("place", PLACE)


def rows_of(number: int, size: int = 30) -> pa.Table:
    """Skewed and null keys, nulls and empty lists in nested columns; numbers are unique."""
    numbers = [1_000 * number + i for i in range(size)]
    return pa.table(
        [
            [None if i % 7 == 3 else f"key {i * i % 5}" for i in range(size)],
            numbers,
            [None if n % 5 == 0 else list(range(n % 3)) for n in numbers],
            [None if n % 4 == 0 else {"x": n / 2, "tags": ["a", None][: n % 3]} for n in numbers],
        ],
        schema=ROWS,
    )


BATCHES = [rows_of(0), rows_of(1), rows_of(2, size=0), rows_of(3)]


def mapped(row: dict[str, Any]) -> dict[str, Any]:
    """What every function of the test makes of a row."""
    return {"n": row["n"], "size": len(row["instance"] or ()), "place": row["place"]}


def expected(batches: list[pa.Table], fn: Callable[[dict[str, Any]], Any] = mapped) -> pa.Table:
    """The plain map."""
    found = []
    for batch in batches:
        for row in batch.to_pylist():
            result = fn(row)
            found += result if isinstance(result, list) else [] if result is None else [result]
    return pa.Table.from_pylist(found, RESULT)


RESULT = pa.schema([("n", pa.int64()), ("size", pa.int64()), ROWS.field("place")])


def on_batches(batch: pa.RecordBatch) -> pa.RecordBatch:
    sizes = pc.fill_null(pc.list_value_length(batch.column("instance")), 0)
    return pa.record_batch(
        {"place": batch.column("place"), "n": batch.column("n"), "size": sizes.cast(pa.int8())}
    )


def lazily(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    half = batch.num_rows // 2
    yield on_batches(batch.slice(0, half))
    yield on_batches(batch.slice(half))


def as_table(batch: pa.RecordBatch) -> pa.Table:
    return pa.Table.from_batches([on_batches(batch)])


def some_or_many(row: dict[str, Any]) -> Any:
    return [None, mapped(row), [mapped(row), mapped(row)]][row["n"] % 3]


async def later(row: dict[str, Any]) -> dict[str, Any]:
    for _ in range(row["n"] % 5):  # neighbours overtake each other
        await asyncio.sleep(0)
    return mapped(row)


def mapping(fn: Any, schema: Any = TEXT, **options: Any) -> Callable[..., Stream]:
    given = {"cost_key": "h", "balance": sk.LeastWork(2), **options}
    return lambda left, _: sk.map(left, fn, schema, **given)


def replay(spark: SparkSession | None, folder: Path, batches: list[pa.Table]) -> Replay:
    return Replay(spark, folder, [(batch, NONE) for batch in batches])


def told(query: Any) -> list[dict[str, Any]]:
    """What every batch has told of its map."""
    return [p["skewless"]["operators"][-1] for p in query.recentProgress]


WAYS = {
    "batches": (on_batches, TEXT, {"balance": sk.LeastWork(3)}),
    "tables": (as_table, RESULT, {"balance": sk.Posg(2, window=10), "cost_key": ["h", "n"]}),
    "lazy batches": (lazily, STRUCT, {"balance": sk.RoundRobin(2)}),
    "rows": (mapped, TEXT, {"cost_key": "place"}),
    "threads": (mapped, RESULT, {"concurrency": 4, "balance": sk.Posg(3, window=10)}),
    "rows that vanish and multiply": (some_or_many, TEXT, {"per_row": True}),
    "coroutines": (later, TEXT, {"concurrency": 5, "balance": sk.RoundRobin(3)}),
    "coroutines, unordered": (later, TEXT, {"concurrency": 5, "ordered": False}),
}


@pytest.mark.parametrize("way", WAYS)
def test_equals_the_plain_map(spark: SparkSession, tmp_path: Path, way: str) -> None:
    fn, schema, options = WAYS[way]
    run = replay(spark, tmp_path, BATCHES)
    query = run.start(mapping(fn, schema, **options))
    query.awaitTermination()
    plain = expected(BATCHES, fn if fn is some_or_many else mapped)
    assert run.rows().column_names == ["n", "size", "place"]
    assert_same_rows(run.rows(), plain)
    assert [m["rows"] for m in told(query)] == [batch.num_rows for batch in BATCHES]
    assert sum(m["outputRows"] for m in told(query)) == plain.num_rows


def test_types_that_arrow_alone_has_become_those_of_spark(
    spark: SparkSession, tmp_path: Path
) -> None:
    schema = pa.schema(
        [
            ("n", pa.int64()),
            ("when", pa.timestamp("ns", "UTC")),
            ("kind", pa.dictionary(pa.int32(), pa.string())),
            ("pair", pa.list_(pa.int32(), 2)),
        ]
    )

    def given(row: dict[str, Any]) -> dict[str, Any]:
        return {"n": row["n"], "when": NOON, "kind": "k", "pair": [1, 2]}

    run = replay(spark, tmp_path, BATCHES[:1])
    run.start(mapping(given, schema, per_row=True)).awaitTermination()
    found = run.rows().to_pylist()
    assert len(found) == BATCHES[0].num_rows
    assert {(r["when"], r["kind"], tuple(r["pair"])) for r in found} == {(NOON, "k", (1, 2))}


def test_rows_of_an_instance_keep_their_order_unless_they_may_not(
    spark: SparkSession, tmp_path: Path
) -> None:
    run = replay(spark, tmp_path, [rows_of(0, size=40)])

    async def backwards(row: dict[str, Any]) -> dict[str, Any]:
        for _ in range(2 * (40 - row["n"])):
            await asyncio.sleep(0)
        return {"n": row["n"]}

    given: dict[bool, list[int]] = {}
    for ordered in (True, False):

        def keep(frame: DataFrame, batch: int, ordered: bool = ordered) -> None:
            given[ordered] = frame.toArrow().column("n").to_pylist()

        build = mapping(
            backwards, "n long", concurrency=40, ordered=ordered, balance=sk.LeastWork(1)
        )
        build(*run.inputs()).writeStream.foreachBatch(keep).trigger(
            availableNow=True
        ).start().awaitTermination()
    assert given[True] == list(range(40))
    assert sorted(given[False]) == list(range(40))
    assert given[False] != given[True]


def test_calls_that_fail_are_repeated_and_those_that_hang_are_given_up(
    spark: SparkSession, tmp_path: Path
) -> None:
    """A worker in which a call hangs for ever is not used for another batch."""
    batches = [rows_of(0), rows_of(1), rows_of(2)]
    notes = {name: tmp_path / name for name in ("failed", "hung", "later")}
    for folder in notes.values():
        folder.mkdir()

    async def unreliable(row: dict[str, Any]) -> dict[str, Any]:
        me = str(os.getpid())
        if row["n"] >= 2_000:
            (notes["later"] / me).touch()
        if row["n"] == 1_005:
            (notes["hung"] / me).touch()
            threading.Event().wait()  # blocks the event loop, too
        try:
            (notes["failed"] / str(row["n"])).touch(exist_ok=False)
        except FileExistsError:
            return mapped(row)
        raise ConnectionError("not yet")

    run = replay(spark, tmp_path, batches)
    build = mapping(unreliable, concurrency=8, retries=1, timeout="500 milliseconds")
    query = run.start(build, badRows="drop")
    query.awaitTermination()
    plain = expected(batches)
    assert_same_rows(run.rows(), plain.filter(pc.not_equal(plain.column("n"), 1_005)))
    assert [m["badRows"] for m in told(query)] == [0, 1, 0]
    hung, later = ({f.name for f in notes[name].iterdir()} for name in ("hung", "later"))
    assert hung
    assert later
    assert not hung & later


def no_fours(row: dict[str, Any]) -> dict[str, Any]:
    if row["n"] % 10 == 4:
        raise LookupError("no such entry")
    return mapped(row)


def test_a_failing_row_is_named_or_dropped_and_counted(spark: SparkSession, tmp_path: Path) -> None:
    batches = [rows_of(0, size=3), rows_of(1)]
    run = replay(spark, tmp_path, batches)
    build = mapping(no_fours, concurrency=4, retries=1)
    with pytest.raises(
        StreamingQueryException,
        match=r"(?s)^LookupError: no such entry\n.*, in no_fours\n.*instance \d, batch 1, tried 2 "
        r"times.*the row: .*'n': 10[0-2]4.*badRows",
    ) as told_of:
        run.start(build).awaitTermination()
    assert str(told_of.value).count("\n") < 25
    assert "foreach" not in str(told_of.value).lower()
    assert "FOREACH_BATCH" in str(told_of.value.original), "all that Spark tells is kept"
    assert run.rows().num_rows == 3, "the batch before it was committed, this one was not"
    query = run.start(build, badRows="drop")
    query.awaitTermination()
    fours = expected(batches, lambda row: None if row["n"] % 10 == 4 else mapped(row))
    assert_same_rows(run.rows(), fours)
    assert told(query)[-1]["badRows"] == 3


@pytest.mark.parametrize(
    ("fn", "says"),
    [
        (lambda batch: batch.select(["n"]), "no column 'size'"),
        (lambda batch: 7, r"^fn gave int; .*\(instance \d, batch 0\)"),
    ],
)
def test_a_result_that_does_not_fit_is_told(
    spark: SparkSession, tmp_path: Path, fn: Any, says: str
) -> None:
    run = replay(spark, tmp_path, BATCHES[:1])
    with pytest.raises(StreamingQueryException, match=says):
        run.start(mapping(fn, per_row=False)).awaitTermination()


def test_a_death_at_any_point_changes_nothing(spark: SparkSession, tmp_path: Path) -> None:
    batches = [rows_of(number) for number in range(6)]
    run = replay(spark, tmp_path, batches)
    faults = [Fault(point, batch) for batch, point in enumerate(POINTS)]
    found = run.run(mapping(mapped), faults)
    assert run.restarts == len(POINTS)
    assert_same_rows(found, expected(batches))


def test_a_killed_worker_is_replaced_and_the_query_goes_on(
    spark: SparkSession, tmp_path: Path
) -> None:
    marker = tmp_path / "struck"
    run = replay(spark, tmp_path, BATCHES)
    fault = Fault("in_task", batch=1, action="kill", once=str(marker))
    query = run.start(mapping(on_batches), [fault])
    query.awaitTermination()
    assert marker.exists(), "a worker was killed"
    assert [p["batchId"] for p in query.recentProgress] == [0, 1, 2, 3], "without a restart"
    assert_same_rows(run.rows(), expected(BATCHES))


def busy(row: dict[str, Any]) -> dict[str, Any]:
    """Works long on the key that is costly in this phase."""
    ends = time.perf_counter() + (0.03 if row["h"] == row["costly"] else 0.0)
    while time.perf_counter() < ends:
        pass
    return {"n": row["n"]}


def costly(number: int, key: str) -> pa.Table:
    keys = [f"key {i % 8}" for i in range(24)]
    return pa.table({"h": keys, "n": range(24), "costly": [key] * 24})


def test_costs_that_change_are_learned_again_and_outlive_a_restart(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Under another number of instances, too: what rows cost does not depend on it."""
    run = replay(spark, tmp_path, [costly(0, "key 1"), costly(1, "key 1")])
    query = run.start(mapping(busy, "n long", per_row=True))
    query.awaitTermination()
    first = told(query)[-1]["balance"]
    hashed = spark.range(1).select(*(F.xxhash64(F.lit(f"key {k}")) for k in (1, 6))).collect()[0]
    one, six = (value % 2**64 for value in hashed)
    assert first["costliest"][0]["hash"] == one
    assert first["costliest"][0]["costMs"] >= 30

    for number in range(2, 7):
        run.add(costly(number, "key 6"), NONE)
    query = run.start(mapping(busy, "n long", per_row=True, balance=sk.LeastWork(3)))
    query.awaitTermination()
    after = told(query)
    assert [m["instances"] for m in after] == [3] * 5
    assert one in [key["hash"] for key in after[0]["balance"]["costliest"]], "not begun anew"
    last = {key["hash"]: key["costMs"] for key in after[-1]["balance"]["costliest"]}
    assert last[six] >= 29
    assert last[one] < 10
    # Three costly rows and three instances: once the key is known, everyone gets one.
    assert after[-1]["imbalance"] < 2
    assert sorted(run.rows().column("n").to_pylist()) == sorted(7 * list(range(24)))


def test_maps_before_and_after_a_join(spark: SparkSession, tmp_path: Path) -> None:
    """The join sees mapped keys; the last map sees pairs; all of it survives deaths."""
    made = joined.batches(3, stray_s=60)

    def shout(batch: pa.RecordBatch) -> pa.RecordBatch:
        place = batch.schema.get_field_index("k")
        return batch.set_column(place, "k", pc.utf8_upper(batch.column("k")))

    def total(row: dict[str, Any]) -> dict[str, Any]:
        return {"k": row["k"], "a": row["a"], "b": row["b"], "sum": row["a"] + row["b"]}

    def build(left: DataFrame, right: DataFrame) -> Stream:
        loud = sk.map(left, shout, left.schema, cost_key="k", balance=sk.LeastWork(2))
        loud_right = right.withColumn("k", F.upper("k"))
        pairs = sk.join(loud, loud_right, **joined.join_options(), balance=sk.Hash(2))
        schema = "k string, a long, b long, sum long"
        return sk.map(pairs, total, schema, cost_key="k", balance=sk.LeastWork(2), per_row=True)

    run = Replay(spark, tmp_path, made)
    found = run.run(build, [Fault("in_task", 1), Fault("before_commit", 2)])
    assert run.restarts == 2
    pairs = join_oracle(made, **joined.oracle_options())
    upper = pairs.set_column(0, "k", pc.utf8_upper(pairs.column("k"))).select(["k", "a", "b"])
    assert upper.num_rows
    assert_same_rows(found, upper.append_column("sum", pc.add(upper["a"], upper["b"])))


def nothing(frame: DataFrame) -> None:
    """A function that forgets its rows."""


def first_row(frame: DataFrame) -> None:
    assert len(frame.limit(1).collect()) == 1


def in_one_task(frame: DataFrame) -> list[int]:
    return _numbers(frame.coalesce(1))


def twice(frame: DataFrame) -> list[int]:
    assert frame.count() == 30
    return _numbers(frame)


def below_others(frame: DataFrame) -> list[int]:
    """The tasks of the map are not the first ones of the job."""
    other = frame.sparkSession.range(0, 50, 1, 3).selectExpr("-1 AS n")
    return [n for n in _numbers(other.unionByName(frame, allowMissingColumns=True)) if n >= 0]


def _numbers(frame: DataFrame) -> list[int]:
    return sorted(frame.toArrow().column("n").to_pylist())


CONSUMERS: list[Callable[[DataFrame], list[int] | None]] = [
    nothing,
    first_row,
    in_one_task,
    twice,
    below_others,
]


def test_however_a_function_consumes_a_batch_every_row_is_counted(
    spark: SparkSession, tmp_path: Path
) -> None:
    batches = [rows_of(number) for number in range(len(CONSUMERS))]
    given: dict[int, list[int] | None] = {}

    def consume(frame: DataFrame, batch: int) -> None:
        given[batch] = CONSUMERS[batch](frame)

    run = replay(spark, tmp_path, batches)
    query = run.start(mapping(mapped, balance=sk.LeastWork(3)), function=consume)
    query.awaitTermination()
    assert list(given) == list(range(len(batches)))
    for batch, numbers in given.items():
        assert numbers in (None, batches[batch].column("n").to_pylist()), CONSUMERS[batch].__name__
    assert [m["rows"] for m in told(query)] == [30] * len(batches)
    assert [m["outputRows"] for m in told(query)] == [30] * len(batches)


@pytest.fixture
def stream(spark: SparkSession, tmp_path: Path) -> DataFrame:
    return replay(spark, tmp_path, BATCHES[:1]).inputs()[0]


def test_the_schema_is_known_before_anything_runs(stream: DataFrame) -> None:
    for schema in (TEXT, STRUCT, RESULT):
        made = sk.map(stream, mapped, schema, cost_key="H")
        assert made.schema == STRUCT


@pytest.mark.parametrize(
    ("changed", "argument"),
    [
        ({"df": 5}, "df"),
        ({"fn": 5}, "fn"),
        ({"fn": later, "per_row": False}, "fn"),
        ({"schema": "n lnog"}, "schema"),
        ({"schema": ["n"]}, "schema"),
        ({"schema": ""}, "schema"),
        ({"schema": "n long, N long"}, "schema"),
        ({"schema": pa.schema([("n", pa.decimal256(50, 2))])}, "schema"),
        ({"schema": pa.schema([("n", pa.uint64())])}, "schema"),
        ({"cost_key": "missing"}, "cost_key"),
        ({"cost_key": []}, "cost_key"),
        ({"cost_key": None}, "cost_key"),
        ({"balance": sk.Mixed(2)}, "balance"),
        ({"balance": sk.LeastWork}, "balance"),
        ({"per_row": "yes"}, "per_row"),
        ({"concurrency": 0}, "concurrency"),
        ({"concurrency": "many"}, "concurrency"),
        ({"concurrency": 2, "per_row": False}, "concurrency"),
        ({"ordered": 1}, "ordered"),
        ({"retries": -1}, "retries"),
        ({"retries": 1, "per_row": False}, "retries"),
        ({"timeout": "soon"}, "timeout"),
        ({"timeout": "0 seconds"}, "timeout"),
        ({"timeout": "1 second", "per_row": False}, "timeout"),
    ],
)
def test_wrong_arguments(
    spark: SparkSession, stream: DataFrame, changed: dict[str, Any], argument: str
) -> None:
    given = {"df": stream, "fn": mapped, "schema": TEXT, "cost_key": "h", **changed}
    jobs = spark.sparkContext.statusTracker().getJobIdsForGroup(None)
    with pytest.raises(SkewlessError, match=rf"^{argument}:"):
        sk.map(given.pop("df"), given.pop("fn"), given.pop("schema"), **given)
    assert spark.sparkContext.statusTracker().getJobIdsForGroup(None) == jobs


def test_a_static_frame_is_refused(spark: SparkSession) -> None:
    with pytest.raises(SkewlessError, match=r"^df: .*streaming"):
        sk.map(spark.range(3), mapped, TEXT, cost_key="id")


def test_a_checkpoint_of_another_map_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    run = replay(spark, tmp_path, BATCHES[:1])
    run.run(mapping(mapped))
    with pytest.raises(SkewlessError, match="checkpointLocation"):
        run.start(mapping(mapped, "n long, size long"))
