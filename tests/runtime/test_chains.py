"""Operators after operators in one query: one commit, DuckDB's rows, whatever dies in between."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

import skewless as sk
from skewless.errors import SkewlessError
from skewless.runtime.stream import Stream
from skewless.testing import POINTS, Fault, Replay, assert_same_rows, join_oracle

from .batches import WITHIN, batches

SECOND = 1_000_000
DELAY = "16 seconds"  # rows are up to 15 seconds older than their batch: none is late
DELAY_US = 16 * SECOND
LAG_US = 1_000  # what a result's watermark lags behind its operator's
WIDER_US = 12 * SECOND  # of the bounds of WITHIN
WINDOW_US = 5 * SECOND
BATCHES = batches(6, seed=11)
FAULTS = [Fault(point, batch) for batch, point in enumerate(POINTS)]
# Where some operators of a chain have done their part of the batch and others have not.
BETWEEN = [f for f in FAULTS if f.point in ("in_task", "before_commit")]
JOIN: dict[str, Any] = {
    "on": "k",
    "time": ("lt", "rt"),
    "within": WITHIN,
    "watermark": DELAY,
    "balance": sk.Hash(2),
}
COUNT: dict[str, Any] = {
    "time": "lt",
    "window": "5 seconds",
    "process": sk.Count(),
    "balance": sk.Mixed(instances=3, threshold=0.02),
}


def at_its_end(df: DataFrame) -> DataFrame:
    """A windowed result with an event time: the last moment of its window."""
    return df.select("k", F.col("count").alias("n"), F.window_time("window").alias("at"))


def tagging() -> Callable[[pa.RecordBatch], pa.RecordBatch]:
    """A map that leaves the columns of the left side; made here, so that it travels by value."""

    def tagged(batch: pa.RecordBatch) -> pa.RecordBatch:
        return batch.select(["k", "lt", "a"])

    return tagged


def mapped(rows: Any) -> Stream:
    return sk.map(rows, tagging(), "k string, lt timestamp, a long", cost_key="k")


def map_then_keyed(left: DataFrame, right: DataFrame) -> Stream:
    return sk.keyed(mapped(left), "k", watermark=DELAY, **COUNT)


def join_then_keyed(left: DataFrame, right: DataFrame) -> Stream:
    return sk.keyed(sk.join(left, right, **JOIN), "k", **COUNT)


def join_then_map_then_keyed(left: DataFrame, right: DataFrame) -> Stream:
    return sk.keyed(mapped(sk.join(left, right, **JOIN)), "k", **COUNT)


def keyed_then_keyed(left: DataFrame, right: DataFrame) -> Stream:
    counts = sk.keyed(left, "k", watermark=DELAY, **COUNT).transform(at_its_end)
    return sk.keyed(
        counts,
        "k",
        time="at",
        window="20 seconds",
        process=sk.Agg({"n": ("sum", "n"), "most": ("max", "n")}),
        balance=sk.Hash(2),
    )


def keyed_then_join(left: DataFrame, right: DataFrame) -> Stream:
    """Every right row with the count of the left's window before it."""
    counts = sk.keyed(left, "k", watermark=DELAY, **COUNT).transform(at_its_end)
    return sk.join(
        counts,
        right,
        on="k",
        time=("at", "rt"),
        within=("0 seconds", "5 seconds"),
        watermark=("0 seconds", DELAY),
        balance=sk.Hash(2),
    )


def sql(query: str, **tables: pa.Table) -> pa.Table:
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    for name, table in tables.items():
        connection.register(name, table)
    return connection.sql(query).to_arrow_table()


def newest(side: int, name: str) -> int:
    return max(pc.max(b[side].column(name).cast(pa.int64())).as_py() for b in BATCHES)


def counts_until(rows: pa.Table, mark_us: int) -> pa.Table:
    """The counts per key and window, of the windows that a watermark has closed."""
    return sql(
        f"""SELECT k, count(*) AS n, make_timestamp((u // {WINDOW_US} + 1) * {WINDOW_US}) AS e
            FROM (SELECT k, epoch_us(lt) AS u FROM input) GROUP BY k, u // {WINDOW_US}
            HAVING epoch_us(e) <= {mark_us}""",
        input=rows,
    )


def expected_of(chain: Callable[..., Stream]) -> pa.Table:
    """What a chain must have given at the end of the batches: keys, numbers, a time in µs."""
    left, right = (pa.concat_tables(b[side] for b in BATCHES) for side in (0, 1))
    reached = newest(0, "lt") - DELAY_US
    pairs = join_oracle(
        BATCHES, on=[("k", "k")], time=("lt", "rt"), within=WITHIN, watermark=(DELAY, DELAY)
    )
    if chain is map_then_keyed:
        return counts_until(left, reached)
    if chain in (join_then_keyed, join_then_map_then_keyed):
        mark = min(reached, newest(1, "rt") - DELAY_US) - WIDER_US - LAG_US
        return counts_until(pairs, mark)
    counts = counts_until(left, reached)
    if chain is keyed_then_keyed:
        mark = reached - WINDOW_US - LAG_US
        return sql(
            f"""SELECT k, sum(n)::BIGINT AS n, max(n) AS most,
                  make_timestamp((large + 1) * {4 * WINDOW_US}) AS e
                FROM (SELECT *, (epoch_us(e) - 1) // {4 * WINDOW_US} AS large FROM counts)
                GROUP BY k, large HAVING (large + 1) * {4 * WINDOW_US} <= {mark}""",
            counts=counts,
        )
    return sql(
        f"""SELECT c.k, n, b, e - INTERVAL 1 MICROSECOND AS e FROM counts c
            JOIN "right" r ON c.k = r.k
            AND epoch_us(r.rt) - (epoch_us(c.e) - 1) BETWEEN 0 AND {WINDOW_US}""",
        counts=counts,
        right=right,
    )


def told_by(chain: Callable[..., Stream], found: pa.Table) -> pa.Table:
    """A chain's rows in the form of the oracle's."""
    if chain is keyed_then_join:
        return found.select(["k", "n", "b"]).append_column("e", _wall(found.column("at")))
    ends = pc.struct_field(found.column("window"), "end")
    numbers = found.drop_columns(["window"])
    if "count" in found.column_names:
        numbers = numbers.rename_columns({"count": "n"})
    return numbers.append_column("e", _wall(ends))


def _wall(moments: pa.ChunkedArray) -> pa.ChunkedArray:
    return moments.cast(pa.timestamp("us"))


CHAINS = [
    map_then_keyed,
    join_then_keyed,
    join_then_map_then_keyed,
    keyed_then_keyed,
    keyed_then_join,
]
NAMES = {
    map_then_keyed: ["map", "keyed"],
    join_then_keyed: ["join", "keyed"],
    join_then_map_then_keyed: ["join", "map", "keyed"],
    keyed_then_keyed: ["keyed", "keyed"],
    keyed_then_join: ["keyed", "join"],
}


@pytest.mark.parametrize("chain", CHAINS, ids=lambda chain: chain.__name__)
def test_a_chain_equals_duckdb_wherever_it_dies(spark, tmp_path: Path, chain) -> None:
    replay = Replay(spark, tmp_path, BATCHES)
    faults = FAULTS if len(NAMES[chain]) == 3 else BETWEEN
    found = replay.run(chain, faults)
    assert replay.restarts == len(faults)
    right = expected_of(chain)
    assert right.num_rows > 5
    assert_same_rows(told_by(chain, found), right)

    commits = sorted((replay.checkpoint / "skewless" / "commits").glob("*.json"))
    assert [int(c.stem) for c in commits] == list(range(len(BATCHES))), "one commit per batch"
    for commit in commits:
        record = json.loads(commit.read_text())
        assert len(record["operators"]) == len(NAMES[chain])
        assert [o["operator"] for o in record["progress"]["operators"]] == NAMES[chain]


def first_row(frame: DataFrame) -> None:
    frame.take(1)


def in_one_task(frame: DataFrame) -> pa.Table:
    return frame.coalesce(1).toArrow()


def below_others(frame: DataFrame) -> pa.Table:
    """The tasks of the chain are not the first ones of the job."""
    other = frame.sparkSession.range(0, 9, 1, 3).selectExpr("'' AS k")
    rows = other.unionByName(frame, allowMissingColumns=True).where("k != ''").toArrow()
    return rows.select(frame.columns)


def with_itself(frame: DataFrame) -> pa.Table:
    both = frame.selectExpr("*", "1 AS copy").union(frame.selectExpr("*", "2 AS copy"))
    return both.where("copy = 2").drop("copy").toArrow()


@pytest.mark.parametrize("chain", [join_then_keyed, keyed_then_join], ids=lambda c: c.__name__)
def test_however_a_function_consumes_a_chain_its_state_is_complete(
    spark, tmp_path: Path, chain
) -> None:
    """What only the first row was taken of is still there for the batches after it."""
    ways = [first_row, DataFrame.toArrow, in_one_task, below_others, first_row, with_itself]
    replay = Replay(spark, tmp_path, BATCHES)
    plain = Replay(spark, tmp_path / "plain", BATCHES)
    given: dict[int, pa.Table | None] = {}

    def consume(frame: DataFrame, batch: int) -> None:
        given[batch] = ways[batch](frame)

    replay.start(chain, function=consume).awaitTermination()
    plain.run(chain)
    assert list(given) == list(range(len(BATCHES)))
    seen = 0
    for batch, found in given.items():
        if found is not None:
            undisturbed = spark.read.parquet(f"{plain.out}/batch={batch}").toArrow()
            assert_same_rows(found, undisturbed)
            seen += found.num_rows
    assert seen > 5


def test_a_checkpoint_of_another_chain_is_refused(spark, tmp_path: Path) -> None:
    replay = Replay(spark, tmp_path, BATCHES[:1])
    replay.start(join_then_keyed).awaitTermination()
    with pytest.raises(sk.SkewlessError, match=r"another query: operators was .*new checkpoint"):
        replay.start(join_then_map_then_keyed)


def test_code_between_operators_may_stop_early(spark, tmp_path: Path) -> None:
    """The first operator's state is complete, although hardly any of its rows were wanted."""

    def nearly_nothing(left: DataFrame, right: DataFrame) -> Stream:
        pairs = sk.join(
            left, right, on="k", time=("lt", "rt"), within=WITHIN, watermark=DELAY
        ).transform(lambda df: df.where("false"))
        return sk.keyed(pairs, "k", **COUNT)

    replay = Replay(spark, tmp_path, BATCHES)
    assert replay.run(nearly_nothing).num_rows == 0
    folder = next(tmp_path.rglob("commits/*.json")).parent
    last = json.loads(sorted(folder.glob("*.json"))[-1].read_text())["progress"]["operators"]
    assert last[0]["matches"] > 0
    assert last[1]["rows"] == 0


def test_a_join_behind_one_without_a_watermark_says_that_its_state_grows(spark, tmp_path) -> None:
    left, right = Replay(spark, tmp_path, BATCHES).inputs()
    with pytest.warns(UserWarning, match="grows without bound"):
        endless = sk.join(left, right, on="k", time=("lt", "rt"), within=None)
    says = (
        "the left and the right side grows without bound: the stream on the left has no watermark"
    )
    for first in (
        endless,
        sk.map(endless, lambda b: b, endless.schema, cost_key="k", per_row=False),
    ):
        with pytest.warns(UserWarning, match=says):
            second = sk.join(
                first, right, on="k", time=("lt", "rt"), within="1 second", watermark="1 second"
            )
        with pytest.warns(UserWarning, match=says):
            sk.join(second, right, on="k", time=("lt", "rt"), within="1 second", suffix="_third")


def test_a_window_cannot_close_without_a_watermark_above_it(spark, tmp_path: Path) -> None:
    replay = Replay(spark, tmp_path, BATCHES)

    def endless(left: DataFrame, right: DataFrame) -> Stream:
        pairs = sk.join(left, right, on="k", time=("lt", "rt"), within=(None, "5 seconds"))
        return sk.keyed(pairs, "k", **COUNT)

    with (
        pytest.warns(UserWarning, match="grows without bound"),
        pytest.raises(SkewlessError, match="a stream without a watermark"),
    ):
        replay.run(endless)
