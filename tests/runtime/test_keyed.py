"""sk.keyed on Spark, against DuckDB and against Spark's own aggregates, under kills and moves."""

import json
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import skewless as sk
from skewless.control.loop import ControlLoop
from skewless.errors import LateRowsWarning, StateGrowsWarning
from skewless.operators.keyed.windows import SessionWindow, Windows
from skewless.routing.entries import Entry
from skewless.routing.partitions import PartitionTable, partition_of
from skewless.routing.table import TableRoute
from skewless.runtime.stream import Stream
from skewless.testing import POINTS, Fault, Replay, assert_same_rows
from tests.operators.keyed.cases import SECOND, table
from tests.operators.keyed.oracle import MEASURES, closed_groups, expected, grouped, on_time, shown

DELAY_S = 6
BY = ["k", "g"]


def made(seed: int, count: int, after_s: int = 0) -> list[pa.Table]:
    """Skewed and null keys, equal times, late rows; the fourth batch is empty."""
    rng = np.random.default_rng(seed)
    batches = []
    for number in range(count):
        size = 0 if number == 3 else 40
        keys = rng.choice(["hot", "hot", "hot", "x", "y", "", None], size)
        groups = rng.choice([0, 0, 0, 1, None], size)
        seconds = rng.integers(0, 16, size)
        values = [None if v == 9 else int(v) for v in rng.integers(-5, 10, size)]
        seconds[: size // 8] -= 24
        drawn = zip(keys.tolist(), groups.tolist(), seconds.tolist(), values, strict=True)
        batches.append(table(list(drawn), 8 * number + after_s))
    return batches


BATCHES = made(seed=5, count=5)
FAULTS = [Fault(point, batch) for batch, point in enumerate(POINTS)]


def numbered(batches: Sequence[pa.Table]) -> list[pa.Table]:
    """Every row with a number of its own."""
    ends = np.cumsum([b.num_rows for b in batches]).tolist()
    return [
        b.select(["k", "t", "g"]).append_column(
            "id", pa.array(range(e - b.num_rows, e), pa.int64())
        )
        for b, e in zip(batches, ends, strict=True)
    ]


def replay_of(spark: SparkSession, folder: Path, batches: Sequence[pa.Table]) -> Replay:
    """One input: what the kit calls the right side is there and not read."""
    return Replay(spark, folder, [(batch, batch.slice(0, 0)) for batch in batches])


def keyed(**options: Any) -> Callable[[DataFrame, DataFrame], Stream]:
    given = {"by": BY, "time": "t", "watermark": f"{DELAY_S} seconds", **options}

    def build(rows: DataFrame, _: DataFrame) -> Stream:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", StateGrowsWarning)
            return sk.keyed(rows, **given)

    return build


def operators(query: Any) -> list[dict[str, Any]]:
    return [p["skewless"]["operators"][0] for p in query.recentProgress]


def groups_of(batches: Sequence[pa.Table], window: Windows | SessionWindow) -> pa.Table:
    return closed_groups(batches, DELAY_S * SECOND, window)


@pytest.fixture
def restless(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Another table of partitions and of keys in every batch; gives how large the key tables are.

    A key gets one instance or several: what cannot be added up must refuse the latter by itself.
    """
    rng = np.random.default_rng(3)
    plain = ControlLoop.next_round
    seen: dict[int, int] = {}
    sizes: list[int] = []

    def restless_round(loop, route, balance, reports, segments):
        turn = plain(loop, route, balance, reports, segments)
        for report in reports:
            for key in report.hot_keys:
                at = partition_of(np.array([key.hash], np.uint64), route.partitions)
                seen[key.hash] = int(at[0])
        count = route.instances
        chosen = list(seen.items())[: int(rng.integers(1, 6))]
        entries = tuple(
            Entry(h, at, tuple(rng.permutation(count)[: rng.integers(1, count)].tolist()))
            for h, at in chosen
        )
        sizes.append(len(entries))
        owners = PartitionTable(count, tuple(rng.integers(0, count, route.partitions).tolist()))
        order = tuple(rng.permutation(count).tolist())
        way = TableRoute(owners, entries)
        return replace(turn, route=way, balance=replace(turn.balance, order=order))

    monkeypatch.setattr(ControlLoop, "next_round", restless_round)
    yield sizes
    assert max(sizes) > 1, "the table of keys has changed"


TUMBLING = Windows(10 * SECOND, 10 * SECOND)
SLIDING = Windows(10 * SECOND, 4 * SECOND)
SESSIONS = SessionWindow("2 seconds")


@pytest.mark.parametrize(
    ("window", "options"),
    [
        pytest.param(TUMBLING, {"window": "10 seconds"}, id="tumbling"),
        pytest.param(SLIDING, {"window": "10 seconds", "slide": "4 seconds"}, id="sliding"),
        pytest.param(SESSIONS, {"window": SESSIONS}, id="sessions"),
    ],
)
def test_every_aggregate_equals_duckdb(spark, tmp_path, window, options) -> None:
    """With late rows, null keys and an empty batch, under the paper's policy."""
    policy = sk.Mixed(instances=3, threshold=0.02)
    replay = replay_of(spark, tmp_path, BATCHES)
    query = replay.start(keyed(process=sk.Agg(MEASURES), balance=policy, **options))
    query.awaitTermination()
    right = expected(groups_of(BATCHES, window))
    assert {None, "hot"} <= {row[2] for row in right}
    assert shown(replay.rows(), window) == right

    kept = [rows.num_rows for rows, _ in on_time(BATCHES, DELAY_S * SECOND, window)]
    told = operators(query)
    assert [o["rows"] for o in told] == [b.num_rows for b in BATCHES]
    late = [b.num_rows - k for b, k in zip(BATCHES, kept, strict=True)]
    assert [o["late"] for o in told] == late
    assert sum(late) > 0
    assert any(o["balance"]["keyTable"] for o in told), "keys were given other instances"


@pytest.mark.parametrize(
    ("window", "options"),
    [
        pytest.param(SLIDING, {"window": "10 seconds", "slide": "4 seconds"}, id="sliding"),
        pytest.param(SESSIONS, {"window": SESSIONS}, id="sessions"),
    ],
)
def test_kills_and_a_key_table_that_changes_in_every_batch(
    spark, tmp_path, restless, window, options
) -> None:
    replay = replay_of(spark, tmp_path, BATCHES)
    build = keyed(process=sk.Agg(MEASURES), balance=sk.Mixed(instances=3), **options)
    found = replay.run(build, FAULTS)
    assert replay.restarts == len(FAULTS)
    assert shown(found, window) == expected(groups_of(BATCHES, window))


def test_partial_key_grouping_adds_up(spark, tmp_path) -> None:
    """Two instances share the hot key's rows; one of them gives its sum."""
    replay = replay_of(spark, tmp_path, BATCHES)
    build = keyed(window="10 seconds", process=sk.Count(), balance=sk.PKG(instances=3))
    query = replay.start(build)
    query.awaitTermination()
    groups = groups_of(BATCHES, TUMBLING).select(["k", "g", "rows"])
    assert_same_rows(replay.rows(), groups.rename_columns(["k", "g", "count"]))
    assert any(o["balance"]["splits"] for o in operators(query)), "a key is shared"


@pytest.mark.parametrize("kind", ["sliding", "sessions"])
def test_equals_sparks_own_windows(spark, tmp_path, kind) -> None:
    """Late rows among them: those of windows that are still open count in both."""
    # Spark's watermark starts at 1970: everything before is late.
    batches = made(seed=5, count=5, after_s=60)
    delay = f"{DELAY_S} seconds"
    if kind == "sliding":
        ours: dict[str, Any] = {"window": "6 seconds", "slide": "4 seconds"}
        theirs = F.window("t", "6 seconds", "4 seconds").alias("window")
    else:
        ours = {"window": SESSIONS}
        theirs = F.session_window("t", "2 seconds").alias("session_window")
    measures = {"*": "count", "i": "sum", "d": "avg", "f": "max"}
    replay = replay_of(spark, tmp_path, batches[:1])
    rows = replay.inputs()[0].withWatermark("t", delay)
    own = rows.groupBy(theirs, "k", "g").agg(measures)
    writer = own.writeStream.format("memory").queryName(f"own_{kind}").outputMode("append")
    query = writer.start()
    # Spark takes up a new watermark only when it is idle for a moment.
    query.processAllAvailable()
    for batch in batches[1:]:
        replay.add(batch, batch.slice(0, 0))
        query.processAllAvailable()
    query.stop()
    right = spark.table(f"own_{kind}")
    late = sum(p["stateOperators"][0]["numRowsDroppedByWatermark"] for p in query.recentProgress)
    assert late > 0
    assert right.count() > 20
    found = replay.run(keyed(process=sk.Agg(measures), balance=sk.Hash(2), **ours))
    assert sorted(found.column_names) == sorted(right.columns)
    assert_same_rows(found, right.toArrow())


def test_update_mode_gives_the_groups_that_a_batch_has_changed(spark, tmp_path, restless) -> None:
    replay = replay_of(spark, tmp_path, BATCHES)
    given: dict[int, pa.Table] = {}
    writer = (
        keyed(window="10 seconds", process=sk.Count(), balance=sk.Mixed(instances=3))(
            *replay.inputs()
        )
        .writeStream.outputMode("update")
        .foreachBatch(lambda df, batch: given.update({batch: df.toArrow()}))
        .option("checkpointLocation", str(replay.checkpoint))
    )
    writer.trigger(availableNow=True).start().awaitTermination()
    so_far: list[pa.Table] = []
    for number, (rows, _) in enumerate(on_time(BATCHES, DELAY_S * SECOND, TUMBLING)):
        so_far.append(rows)
        changed = {tuple(g) for g in _plain_groups(rows)}
        right = [
            g for g in _plain_groups(pa.concat_tables(so_far), counts=True) if g[:3] in changed
        ]
        found = [
            (_us(r["window"]["end"]), r["k"], r["g"], r["count"]) for r in given[number].to_pylist()
        ]
        assert sorted(found, key=repr) == sorted(right, key=repr)
    assert given[3].num_rows == 0, "an empty batch changes nothing"
    assert given[4].num_rows > 0


def _us(moment: Any) -> int:
    return int(pa.scalar(moment, pa.timestamp("us", "UTC")).cast(pa.int64()).as_py())


def _plain_groups(rows: pa.Table, counts: bool = False) -> list[tuple]:
    groups = grouped(rows, TUMBLING).select(["e", "k", "g", *(["rows"] if counts else [])])
    return list(zip(*groups.to_pydict().values(), strict=True))


def test_update_mode_without_a_window_counts_for_ever(spark, tmp_path) -> None:
    """The last count of every key, and null is a key as any other; a map passes updates on."""
    replay = replay_of(spark, tmp_path, BATCHES)
    counts = keyed(by="k", process=sk.Count(), watermark=None, balance=sk.Hash(2))

    def same(batch: pa.RecordBatch) -> pa.RecordBatch:
        return batch

    def passed_on(left: DataFrame, right: DataFrame) -> Stream:
        return sk.map(counts(left, right), same, "k string, count long", cost_key="k")

    with pytest.raises(sk.SkewlessError, match=r'got \'append\'; takes .*outputMode\("update"\)'):
        replay.start(passed_on)
    query = replay.start(passed_on, outputMode="update")
    query.awaitTermination()
    rows = spark.read.parquet(str(replay.out))
    last = rows.groupBy("k").agg(F.max_by("count", "batch").alias("n")).toArrow()
    counts = pa.concat_tables(BATCHES).group_by("k").aggregate([([], "count_all")])
    assert_same_rows(last, counts.rename_columns(["k", "n"]))
    assert [o["late"] for o in operators(query)] == [0] * len(BATCHES)


def pairs(batches: Sequence[pa.Table], within_s: int) -> pa.Table:
    """The pairs of the rows that are not late, by their numbers."""
    kept = pa.concat_tables(rows for rows, _ in on_time(batches, DELAY_S * SECOND))
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    connection.register("kept", kept)
    return connection.sql(
        f"""SELECT a.k, a.g, a.id AS one, b.id AS other FROM kept a JOIN kept b
            ON a.k = b.k AND a.g = b.g AND a.id < b.id
            AND abs(epoch_us(a.t) - epoch_us(b.t)) <= {within_s * SECOND}"""
    ).to_arrow_table()


def test_self_join_equals_duckdb(spark, tmp_path, restless) -> None:
    """Each pair once, the earlier row on the left, however keys move between the batches."""
    batches = numbered(BATCHES)
    replay = replay_of(spark, tmp_path, batches)
    build = keyed(process=sk.SelfJoin(within="3 seconds"), balance=sk.Mixed(instances=3))
    found = replay.run(build, FAULTS)
    assert replay.restarts == len(FAULTS)
    assert found.column_names == ["k", "g", "t", "id", "t_right", "id_right"]
    assert pc.all(pc.less_equal(found["t"], found["t_right"])).as_py()
    told = found.select(["k", "g"])
    told = told.append_column("one", pc.min_element_wise(found["id"], found["id_right"]))
    told = told.append_column("other", pc.max_element_wise(found["id"], found["id_right"]))
    right = pairs(batches, 3)
    assert right.num_rows > 100
    assert_same_rows(told, right)


def remembering() -> Callable[..., tuple[pa.Table, pa.Table]]:
    """A function that gives every row with the ids that its key had before, and keeps them.

    Made here, so that it travels to the workers by value.
    """
    keys = [("k", pa.string()), ("g", pa.int32())]
    out_schema = pa.schema([*keys, ("id", pa.int64()), ("before", pa.list_(pa.int64()))])
    state_schema = pa.schema([*keys, ("ids", pa.list_(pa.int64()))])

    def remember(batch: pa.Table, state: pa.Table | None) -> tuple[pa.Table, pa.Table]:
        seen: dict[tuple, list[int]] = {}
        if state is not None:
            for row in state.to_pylist():
                assert (row["k"], row["g"]) not in seen, "a key's state comes once"
                seen[row["k"], row["g"]] = row["ids"]
        out = []
        for row in batch.to_pylist():
            mine = seen.setdefault((row["k"], row["g"]), [])
            out.append({"k": row["k"], "g": row["g"], "id": row["id"], "before": list(mine)})
            mine.append(row["id"])
        kept = [{"k": k, "g": g, "ids": ids} for (k, g), ids in seen.items()]
        return pa.Table.from_pylist(out, out_schema), pa.Table.from_pylist(kept, state_schema)

    return remember


def test_a_function_sees_every_row_once_in_order_with_its_state(spark, tmp_path, restless) -> None:
    batches = numbered(BATCHES)
    replay = replay_of(spark, tmp_path, batches)
    found = replay.run(keyed(process=remembering(), balance=sk.Mixed(instances=3)), FAULTS)
    assert replay.restarts == len(FAULTS)
    history: dict[tuple, list[int]] = defaultdict(list)
    before = {row["id"]: row["before"] for row in found.to_pylist()}
    assert found.num_rows == len(before), "no row twice"
    for rows, _ in on_time(batches, DELAY_S * SECOND):
        times = {row["id"]: row["t"] for row in rows.to_pylist()}
        by_key: dict[tuple, list[int]] = defaultdict(list)
        for row in rows.to_pylist():
            by_key[row["k"], row["g"]].append(row["id"])
        for key, ids in by_key.items():
            # In the order in which the function has seen them, by what it knew at each.
            ids.sort(key=lambda i: len(before[i]))
            assert [times[i] for i in ids] == sorted(times[i] for i in ids)
            for i in ids:
                assert before[i] == history[key]
                history[key].append(i)
    assert sum(map(len, history.values())) == found.num_rows, "no row missing"
    assert max(map(len, history.values())) > 20


def test_a_function_of_closed_windows_gets_all_their_rows(spark, tmp_path) -> None:
    def counted(batch: pa.Table, state: pa.Table | None) -> tuple[pa.Table, None]:
        ends = batch.column("window").combine_chunks().field("end")
        rows = pa.table({"k": batch.column("k"), "g": batch.column("g"), "e": ends})
        grouped_rows = rows.group_by(["k", "g", "e"]).aggregate([([], "count_all")])
        return grouped_rows.rename_columns(["k", "g", "e", "rows"]), None

    replay = replay_of(spark, tmp_path, BATCHES)
    build = keyed(
        window="10 seconds", slide="4 seconds", process=counted, balance=sk.Mixed(instances=3)
    )
    found = replay.run(build, [Fault("before_commit", 3)])
    found = found.set_column(2, "e", found.column("e").cast(pa.int64()))
    assert_same_rows(found, groups_of(BATCHES, SLIDING).select(["k", "g", "e", "rows"]))


@pytest.mark.parametrize(
    ("process", "window"),
    [(sk.Agg(MEASURES), SESSIONS), (sk.SelfJoin(within="3 seconds"), None)],
    ids=["sessions", "self-join"],
)
def test_another_number_of_instances_on_restart_keeps_the_state(
    spark, tmp_path, process, window
) -> None:
    batches = BATCHES if window else numbered(BATCHES)
    replay = replay_of(spark, tmp_path, [])
    for batch, instances in zip(batches, (1, 3, 3, 7, 2), strict=True):
        replay.add(batch, batch.slice(0, 0))
        policy = sk.Mixed(instances=instances, threshold=0.02)
        replay.run(keyed(process=process, window=window, balance=policy))
    if window is None:
        assert replay.rows().num_rows == pairs(batches, 3).num_rows
    else:
        assert shown(replay.rows(), window) == expected(groups_of(batches, window))


def test_bad_rows_stop_the_query_or_are_dropped(spark, tmp_path) -> None:
    (row,) = table([("x", 0, 1, 7)]).to_pylist()
    bad = pa.Table.from_pylist([row, {**row, "t": None, "s": "no time"}], BATCHES[0].schema)
    replay = replay_of(spark, tmp_path, [bad])
    build = keyed(window="10 seconds", process=sk.Agg({"s": "max"}), balance=sk.Hash(2))
    with pytest.raises(StreamingQueryException, match=r"^bad row: .*'s': 'no time'"):
        replay.start(build).awaitTermination()
    assert not list((replay.checkpoint / "skewless" / "commits").iterdir())
    query = replay.start(build, badRows="drop")
    query.awaitTermination()
    assert operators(query)[-1]["badRows"] == 1


def test_what_a_function_raises_is_told_and_nothing_is_committed(spark, tmp_path) -> None:
    def picky(batch: pa.Table, state: pa.Table | None) -> tuple[pa.Table, None]:
        if batch.num_rows:
            raise ValueError("I do not like it")
        return batch, None

    replay = replay_of(spark, tmp_path, BATCHES[:1])
    says = (
        r"(?s)^ValueError: I do not like it\n.*, in picky\n.*"
        r"process: .*picky failed on \d+ rows of .* \(instance \d+, batch 0\)$"
    )
    with pytest.raises(StreamingQueryException, match=says):
        replay.start(keyed(process=picky, balance=sk.Hash(2))).awaitTermination()
    assert not list((replay.checkpoint / "skewless" / "commits").iterdir())


@pytest.fixture
def rows(spark: SparkSession, tmp_path: Path) -> DataFrame:
    """An input that has no files: what is refused is refused without them."""
    (tmp_path / "rows").mkdir()
    schema = "k string, n long, ts timestamp, day date, tags map<string,int>, amount double"
    return spark.readStream.schema(schema).parquet(str(tmp_path / "rows"))


def keeps(batch: pa.Table, state: pa.Table | None) -> tuple[pa.Table, pa.Table]:
    return batch.select(["k"]), batch.select(["amount"])


def breaks(batch: pa.Table, state: pa.Table | None) -> tuple[pa.Table, pa.Table]:
    raise KeyError("no rows")


GOOD: dict[str, Any] = {"by": "k", "time": "ts", "window": "1 minute", "process": sk.Count()}


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"by": "nope"}, "by: the df input has no column 'nope'; its columns are k, n"),
        ({"by": []}, "by: got []; takes a column name"),
        ({"by": None}, "by: got None"),
        ({"by": ["k", "k"]}, "by: got ['k', 'k']; takes each column once"),
        ({"by": "tags"}, "by: column 'tags' is map<string,int>"),
        ({"by": ["k", "ts"]}, "by: got 'ts'; takes columns other than the event time"),
        ({"time": "day"}, "time: column 'day' is date; takes a timestamp column"),
        ({"time": "nope"}, "time: the df input has no column 'nope'"),
        ({"window": "soon"}, "window: got 'soon'; takes a duration"),
        ({"window": "0 seconds"}, "window: got '0 seconds'; takes a duration above 0"),
        ({"window": 60}, "window: got 60; takes a duration"),
        ({"slide": "2 minutes"}, "slide: got '2 minutes'; takes at most the window's 1 minute"),
        ({"slide": "often"}, "slide: got 'often'; takes a duration"),
        ({"window": sk.SessionWindow("1 minute"), "slide": "1 second"}, "slide: got '1 second'"),
        ({"watermark": "-1 second"}, "watermark: got '-1 second'"),
        (
            {"window": sk.SessionWindow("1 minute"), "watermark": None},
            "watermark: got None; takes a duration, because a window must close",
        ),
        ({"process": "count"}, "process: got 'count'; takes sk.Count()"),
        ({"process": sk.Count}, "process: got <class"),
        ({"process": None}, "process: got None"),
        ({"process": sk.Agg({"nope": "sum"})}, "process: the df input has no column 'nope'"),
        ({"process": sk.Agg({"k": "sum"})}, "process: got 'sum of string'; takes a numeric"),
        ({"process": sk.Agg({"k": ("count", "n")})}, "process: got ['window', 'k', 'k']"),
        ({"process": sk.SelfJoin("1 second")}, "window: got "),
        ({"process": breaks}, "process: cannot tell what the function gives: called with an empty"),
        ({"process": keeps, "window": None}, "state_schema: lacks ['k']"),
        ({"process": keeps, "window": sk.SessionWindow("1 second")}, "window: got SessionWindow"),
        ({"schema": "k string"}, "schema: got 'k string'; takes None"),
        ({"balance": "Mixed"}, "balance: got 'Mixed'; takes a policy"),
        ({"balance": sk.Mixed}, "balance: got"),
        ({"balance": sk.JoinMatrix(instances=4)}, "balance: got JoinMatrix"),
        ({"balance": sk.Posg(instances=2)}, "balance: got Posg"),
    ],
)
@pytest.mark.filterwarnings("ignore::skewless.errors.StateGrowsWarning")
def test_wrong_arguments(rows, changed, says) -> None:
    with pytest.raises(sk.SkewlessError) as refused:
        sk.keyed(rows, **{**GOOD, **changed})
    assert says in str(refused.value)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: sk.Agg({"n": "median"}), "process: got 'median'; takes one of count, "),
        (lambda: sk.Agg({}), "process: got {}; takes aggregates such as"),
        (lambda: sk.Agg({"n": ("sum",)}), "process: got {'n': ('sum',)}"),
        (lambda: sk.Agg([("n", "sum")]), "process: got [('n', 'sum')]"),
        (lambda: sk.SelfJoin("-1 second"), "within: got '-1 second'"),
        (lambda: sk.SelfJoin("near"), "within: got 'near'; takes a duration"),
        (lambda: sk.SelfJoin("1 second", suffix=""), "suffix: got ''"),
        (lambda: sk.SessionWindow("0 seconds"), "gap: got '0 seconds'"),
        (lambda: sk.SessionWindow("idle"), "gap: got 'idle'; takes a duration"),
    ],
)
def test_wrong_processes_and_windows(make, says) -> None:
    with pytest.raises(sk.SkewlessError) as refused:
        make()
    assert says in str(refused.value)


def test_a_static_input_is_refused(spark) -> None:
    with pytest.raises(sk.SkewlessError, match="df: got 'a static DataFrame'"):
        sk.keyed(spark.range(3), by="id", time="id", process=sk.Count())


@pytest.mark.parametrize(
    ("process", "mode"),
    [
        (sk.SelfJoin("1 second"), "append"),
        (lambda batch, state: (batch.select(["k"]), None), "append"),
        (sk.Count(), "update"),
    ],
    ids=["self-join", "function", "update mode"],
)
def test_sharing_a_key_is_refused_where_its_parts_cannot_be_added_up(rows, process, mode) -> None:
    says = (
        r"balance: got .*PKG with .*; takes it for sk.Count and sk.Agg in append mode only.*"
        r"choose sk.Mixed"
    )
    windows = {} if isinstance(process, sk.SelfJoin) else {"window": "1 minute"}
    if mode == "append" and not windows:
        with pytest.raises(sk.SkewlessError, match=says):
            sk.keyed(rows, "k", time="ts", process=process, balance=sk.PKG(2))
        return
    if mode == "append":
        with pytest.raises(sk.SkewlessError, match=says):
            sk.keyed(rows, "k", time="ts", process=process, balance=sk.PKG(2), **windows)
        return
    stream = sk.keyed(rows, "k", time="ts", process=process, balance=sk.PKG(2), **windows)
    with pytest.raises(sk.SkewlessError, match=says):
        stream.writeStream.format("noop").outputMode(mode).start()


@pytest.mark.parametrize(
    ("options", "mode", "says"),
    [
        ({"window": sk.SessionWindow("1 minute")}, "update", "a session may still grow"),
        ({"window": None}, "append", "'update', because without a window no group ends"),
        ({"window": None}, None, """because without a window no group ends: call .outputMode("u"""),
        ({"watermark": None}, None, "watermark: got None; takes a duration, because a window must"),
        ({"window": "1 minute"}, "complete", "outputMode: got 'complete'; takes 'append' or"),
    ],
)
@pytest.mark.filterwarnings("ignore::skewless.errors.StateGrowsWarning")
def test_output_modes_that_make_no_sense_are_refused(rows, options, mode, says) -> None:
    stream = sk.keyed(rows, **{**GOOD, **options})
    with pytest.raises(sk.SkewlessError) as refused:
        stream.writeStream.format("noop").start(outputMode=mode)
    assert says in str(refused.value)
    assert not rows.sparkSession.streams.active


@pytest.mark.filterwarnings("ignore::skewless.StateGrowsWarning")
def test_an_aggregate_that_never_ends_feeds_no_state(rows) -> None:
    totals = sk.Agg({"n": "sum", "at": ("max", "ts")})
    running = sk.keyed(rows, "k", time="ts", process=totals)
    assert running.columns == ["k", "sum(n)", "at"]
    passed_on = sk.map(running, dict, "k string, ts timestamp", cost_key="k", per_row=True)
    says = "got 'an aggregate whose groups never end'; takes a stream that appends: give the"
    with pytest.raises(sk.SkewlessError, match=f"df: {says}"):
        sk.keyed(running, "k", time="at", process=sk.Count())
    with pytest.raises(sk.SkewlessError, match=f"right: {says}"):
        sk.join(rows, passed_on, on="k", time="ts", within="1 second")
    open_windows = sk.keyed(rows, "k", time="ts", window="1 hour", process=totals, watermark=None)
    with pytest.raises(sk.SkewlessError, match=f"left: {says}"):
        sk.join(open_windows, rows, on="k", time=("at", "ts"), within="1 second")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"window": None, "process": sk.Count()}, "there is no window"),
        (
            {"window": None, "process": sk.SelfJoin("1 second"), "watermark": None},
            "no row is ever late",
        ),
    ],
)
def test_state_without_bound_is_warned_of(rows, options, says) -> None:
    with pytest.warns(StateGrowsWarning, match=says):
        sk.keyed(rows, by="k", time="ts", **options)


def test_a_checkpoint_of_another_query_is_refused(spark, tmp_path) -> None:
    replay = replay_of(spark, tmp_path, BATCHES[:1])
    same = {"window": "10 seconds", "process": sk.Count(), "balance": sk.Hash(2)}
    replay.start(keyed(**same)).awaitTermination()
    for changed, says in (
        ({"window": "20 seconds"}, r"window.sizeUs was 10000000 and is now 20000000"),
        ({"slide": "5 seconds"}, r"window.slideUs"),
        ({"process": sk.Agg({"i": "sum"})}, r'process was "count" and is now "aggregate"'),
        ({"by": "k"}, r"operators\[0\].by"),
    ):
        with pytest.raises(sk.SkewlessError, match=rf"another query: .*{says}.*new checkpoint"):
            replay.start(keyed(**{**same, **changed}))
    writer = keyed(**same)(*replay.inputs()).writeStream.format("noop").outputMode("update")
    with pytest.raises(sk.SkewlessError, match=r'outputMode was "append" and is now "update"'):
        writer.option("checkpointLocation", str(replay.checkpoint)).start()
    assert not spark.streams.active
    other = {**same, "balance": sk.Mixed(instances=3), "watermark": "1 second"}
    replay.start(keyed(**other)).awaitTermination()
    (commit,) = (replay.checkpoint / "skewless" / "commits").glob("*.json")
    assert json.loads(commit.read_text())["batch"] == 0


@pytest.mark.filterwarnings("ignore::skewless.errors.StateGrowsWarning")
def test_the_inputs_own_watermark_is_used(spark, tmp_path) -> None:
    rows = replay_of(spark, tmp_path, BATCHES).inputs()[0]
    late = rows.withWatermark("t", "1 minute")
    count: dict[str, Any] = {"by": "k", "time": "t", "process": sk.Count()}
    with warnings.catch_warnings():
        warnings.simplefilter("error", LateRowsWarning)
        own = sk.keyed(late, window="1 hour", **count)
        assert own.node.operator.delays.by_side == {"input": 60 * SECOND}
        sk.keyed(rows, **count)  # without a window no row is late
        two = sk.keyed(own.transform(at_its_end), window="1 day", **{**count, "time": "at"})
        assert two.node.operator.delays.by_side == {"input": 0}, "behind the watermark of the first"
    with pytest.warns(LateRowsWarning, match="row whose window ends at or before"):
        sk.keyed(rows, window="1 hour", **count)
    with pytest.raises(sk.SkewlessError, match=r"got '1 second', but the df input has"):
        sk.keyed(late, window="1 hour", watermark="1 second", **count)


def at_its_end(df: DataFrame) -> DataFrame:
    return df.select("k", F.window_time("window").alias("at"))
