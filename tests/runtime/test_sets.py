"""Joins by sets on Spark: routes, every kind of set, chains and restarts, against plain Python."""

from datetime import UTC, datetime, timedelta
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import skewless as sk
from skewless.engine.columns import HASH, LEFT_CODE, POSTINGS, REPLICA, RIGHT_CODE, SIDE
from skewless.routing.partitions import PartitionTable
from skewless.routing.postings import row_visits
from skewless.runtime.routing import set_visits
from skewless.testing import Fault, Replay, assert_same_rows, join_oracle
from tests.routing.cases import KINDS, random_route

EPOCH = datetime(2024, 1, 1, tzinfo=UTC)
STAMP = pa.timestamp("us", "UTC")
CODES = {"left": LEFT_CODE, "right": RIGHT_CODE}
NAN = float("nan")


@pytest.mark.parametrize("kind", KINDS)
def test_spark_sends_rows_with_postings_the_same_ways(spark: SparkSession, kind: str) -> None:
    """Three random routes of every kind in one query."""
    queries, expected = [], set()
    for seed in range(3):
        rng = np.random.default_rng(seed)
        keys = rng.integers(0, 2**64, 24, dtype=np.uint64)
        instances = 12 - seed
        table = PartitionTable(instances, tuple(rng.integers(0, instances, 48).tolist()))
        way = random_route(kind, table, keys[:12].tolist(), rng)
        sizes = rng.integers(0, 5, 200)
        owner = np.repeat(np.arange(200), sizes)
        postings = rng.choice(keys, len(owner))
        spread = rng.integers(0, 2**64, 200, dtype=np.uint64)
        sides = rng.choice(list(CODES), 200)
        rows = [
            (n, int(spread.view(np.int64)[n]), CODES[sides[n]], lists.tolist())
            for n, lists in enumerate(np.split(postings.view(np.int64), np.cumsum(sizes)[:-1]))
        ]
        schema = f"n int, {HASH} long, {SIDE} byte, {POSTINGS} array<long>"
        sent, named = set_visits(spark.createDataFrame(rows, schema), way)
        queries.append(sent.selectExpr(f"{seed} AS seed", "n", f"{named} AS at", SIDE))
        for side in CODES:
            mine = sides == side
            at = np.cumsum(mine) - 1
            of_side = mine[owner]
            ways = row_visits(way, side, at[owner[of_side]], postings[of_side], spread[mine])
            row = np.flatnonzero(mine)[ways.row].tolist()
            replica = (~ways.home).tolist()
            expected |= {(seed, *w) for w in zip(row, ways.instance.tolist(), replica, strict=True)}
    collected = reduce(DataFrame.unionAll, queries).collect()
    found = {(r["seed"], r["n"], r["at"], r[SIDE] >= REPLICA) for r in collected}
    assert len(found) == len(collected), "a row goes to an instance once"
    assert found == expected


# Column of the sets, its type on the left and on the right, values to draw from, and the condition.
CASES: dict[str, tuple[pa.DataType, pa.DataType, list[Any], Any]] = {
    "texts": (pa.string(), pa.string(), ["a", "b", "c", "d", "é", "", None], 2),
    "longs": (pa.int64(), pa.int32(), [0, 1, 2, 3, -5, None], 2),
    "reals": (pa.float64(), pa.float32(), [0.0, -0.0, NAN, 1.5, 2.5, None], 2),
    "days": (pa.date32(), pa.date32(), [EPOCH.date() + timedelta(days=d) for d in range(5)], 2),
    "money": (pa.decimal128(9, 2), pa.int64(), [1, 2, 3, 4, 5, None], 2),
    "moments": (STAMP, STAMP, [EPOCH + timedelta(hours=h) for h in range(5)], 2),
    "map": (pa.string(), pa.string(), ["a", "b", "c", "d"], 0.5),
    "structs": (pa.int64(), pa.int64(), [1, 2, 3, 4, None], 1.25),
}


def kind_of(name: str, item: pa.DataType) -> pa.DataType:
    if name == "map":
        return pa.map_(item, pa.float64())
    if name == "structs":
        return pa.list_(pa.struct([("the item", item), ("w", pa.int32())]))
    return pa.list_(item)


def drawn(name: str, values: list[Any], rng: np.random.Generator) -> Any:
    size = int(rng.integers(0, 6))
    items = [values[i] for i in rng.integers(0, len(values), size)]
    if rng.random() < 0.1:
        return None
    if name == "map":
        weights = rng.choice([-1.0, 0.0, 0.25, 0.5, 2.0], size).tolist()
        return list(dict(zip(items, weights, strict=True)).items())
    if name == "structs":
        weights = [None if w == 9 else int(w) for w in rng.choice([-1, 0, 1, 2, 9], size)]
        return [{"the item": i, "w": w} for i, w in zip(items, weights, strict=True)]
    return items


def set_batches(count: int, rows: int, seed: int = 1) -> list[tuple[pa.Table, pa.Table]]:
    """Every kind of set in a column of its own, late and out-of-order rows, null keys."""
    rng = np.random.default_rng(seed)
    made = []
    for number in range(count):
        sides = []
        for side, value in (("left", "a"), ("right", "b")):
            times = [
                EPOCH + timedelta(seconds=int(s) + 4 * number) for s in rng.integers(0, 9, rows)
            ]
            columns: dict[str, pa.Array] = {
                "k": pa.array(rng.choice(["x", "x", "y", None], rows).tolist(), pa.string()),
                f"{side[0]}t": pa.array(times, STAMP),
                value: pa.array(range(1000 * number, 1000 * number + rows)),
            }
            for name, (left, right, values, _) in CASES.items():
                kind = kind_of(name, left if side == "left" else right)
                sets = [drawn(name, values, rng) for _ in range(rows)]
                columns[name] = pa.array(sets, kind)
            sides.append(pa.table(columns))
        made.append((sides[0], sides[1]))
    return made


def match_of(name: str) -> Any:
    at_least = CASES[name][3]
    return (sk.InnerProduct if isinstance(at_least, float) else sk.Overlap)(name, at_least)


@pytest.mark.parametrize(
    ("name", "on"),
    [*((name, None) for name in CASES), ("texts", "k"), ("longs", "k"), ("map", "k")],
)
def test_every_kind_of_set_equals_the_oracle(
    spark: SparkSession, tmp_path: Path, name: str, on: str | None
) -> None:
    names = [("k", "lt", "a", name), ("k", "rt", "b", name)]
    batches = [
        tuple(t.select(list(n)) for t, n in zip(b, names, strict=True)) for b in set_batches(2, 40)
    ]
    replay = Replay(spark, tmp_path, batches)
    found = replay.run(
        lambda left, right: sk.join(
            left,
            right,
            on=on,
            match=match_of(name),
            time=("lt", "rt"),
            within=("-5 seconds", "3 seconds"),
            watermark="2 seconds",
            balance=sk.Hash(3),
        )
    )
    expected = join_oracle(
        batches,
        on=[] if on is None else [(on, on)],
        time=("lt", "rt"),
        within=("-5 seconds", "3 seconds"),
        watermark=("2 seconds", "2 seconds"),
        match=match_of(name),
    )
    assert expected.num_rows > 5
    assert_same_rows(found, expected)
    assert f"{name}_right" in found.column_names


@pytest.mark.parametrize("policy", [sk.JoinMatrix(4), sk.ContRand(4, group=2), sk.Auto(3)])
def test_copies_kills_and_restarts_change_nothing(
    spark: SparkSession, tmp_path: Path, policy: sk.Policy
) -> None:
    batches = set_batches(3, 30, seed=5)
    replay = Replay(spark, tmp_path, batches)
    match = sk.Overlap(("texts", "map_keys"), 2)

    def build(left: DataFrame, right: DataFrame) -> sk.Stream:
        right = right.withColumn("map_keys", F.map_keys("map"))
        return sk.join(
            left.select("lt", "a", "texts"),
            right.select("rt", "b", "map_keys"),
            match=match,
            time=("lt", "rt"),
            within="6 seconds",
            watermark="9 seconds",
            balance=policy,
        )

    found = replay.run(build, faults=[Fault("in_task", 1), Fault("after_sink", 1)])
    keyed = [
        (
            left.select(["lt", "a", "texts"]),
            right.select(["rt", "b"]).append_column("map_keys", _map_keys(right.column("map"))),
        )
        for left, right in batches
    ]
    expected = join_oracle(
        keyed,
        on=[],
        time=("lt", "rt"),
        within=("-6 seconds", "6 seconds"),
        watermark=("9 seconds", "9 seconds"),
        match=match,
    )
    assert_same_rows(found, expected)
    assert replay.restarts == 2


def _map_keys(column: pa.ChunkedArray) -> pa.Array:
    keys = [None if m is None else [k for k, _ in m] for m in column.to_pylist()]
    return pa.array(keys, pa.list_(pa.string()))


def test_progress_dead_letters_chains_and_the_fingerprint(
    spark: SparkSession, tmp_path: Path
) -> None:
    batches = set_batches(2, 30, seed=8)
    replay = Replay(spark, tmp_path, batches)

    def build(left: DataFrame, right: DataFrame, at_least: int = 2) -> sk.Stream:
        joined = sk.join(
            left.select("lt", "a", "texts"),
            right.select("rt", "b", "texts"),
            match=sk.Overlap("texts", at_least),
            time=("lt", "rt"),
            within="5 seconds",
            watermark="0 seconds",
            balance=sk.Hash(3),
        )
        return sk.join(
            joined,
            right.select("rt", F.col("b").alias("again"), "longs"),
            on=[("b", "again")],
            time="rt",
            within="0 seconds",
            watermark="9 seconds",
            balance=sk.Hash(2),
        )

    query = replay.start(build, deadLetterPath=str(tmp_path / "dead"))
    query.awaitTermination()
    progress = [p["skewless"]["operators"] for p in query.recentProgress]
    sets, plain = progress[-1]
    assert sets["name"] == "join by overlap of texts"
    assert sets["rows"] == {"left": 30, "right": 30}
    assert sets["comparisons"] > sets["matches"]
    assert plain["comparisons"] == plain["matches"] > 0
    assert progress[0][0]["nullKeys"]["left"] > 0
    letters = spark.read.parquet(str(tmp_path / "dead")).where("operator = 0").collect()
    assert len(letters) == sum(sum(p[0]["late"].values()) for p in progress) > 0
    assert len({(r["input"], r["a"], r["b"]) for r in letters}) == len(letters), "each once"
    left, right = replay.inputs()
    other = build(left, right, at_least=3).writeStream.format("noop")
    with pytest.raises(sk.SkewlessError, match="checkpoint"):
        other.option("checkpointLocation", str(replay.checkpoint)).start()
