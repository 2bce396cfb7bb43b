"""Two DataFrames that do not stream: the rows that the streams would give, as a DataFrame."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import skewless as sk
from skewless.testing import Replay, assert_same_rows, join_oracle

STAMP = pa.timestamp("us", "UTC")
EPOCH = datetime(2024, 1, 1, tzinfo=UTC)
SIZE = 250


def side(seed: int, time: str, value: str) -> pa.Table:
    rng = np.random.default_rng(seed)
    keys = np.where(rng.random(SIZE) < 0.4, 3, rng.integers(0, 40, SIZE)).tolist()
    return pa.table(
        {
            "k": pa.array([None if n % 19 == 0 else k for n, k in enumerate(keys)], pa.int64()),
            time: pa.array(
                [EPOCH + timedelta(milliseconds=int(s)) for s in rng.integers(0, 30_000, SIZE)],
                STAMP,
            ),
            value: [f"{seed}-{n}" for n in range(SIZE)],
            f"x{seed}": rng.uniform(0, 20, SIZE),
            f"y{seed}": rng.uniform(0, 20, SIZE),
            f"tags{seed}": [
                {
                    t: float(w)
                    for t, w in zip(rng.choice(list("abcdef"), 3, False), (1, 2, 3), strict=True)
                }
                for _ in range(SIZE)
            ],
        },
        schema=pa.schema(
            [
                ("k", pa.int64()),
                (time, STAMP),
                (value, pa.string()),
                (f"x{seed}", pa.float64()),
                (f"y{seed}", pa.float64()),
                (f"tags{seed}", pa.map_(pa.string(), pa.float64())),
            ]
        ),
    )


LEFT, RIGHT = side(1, "lt", "a"), side(2, "rt", "b")
POINTS = {"left": ("x1", "y1"), "right": ("x2", "y2")}
MATCHES = {
    "keys": None,
    "inner product": sk.InnerProduct(("tags1", "tags2"), at_least=9.0),
    "near": sk.Near(radius=2.0, **POINTS),
    "nearest": sk.Nearest(k=2, radius=4.0, **POINTS),
    "as of": sk.AsOf("backward"),
}


def frames(spark: SparkSession) -> tuple[DataFrame, DataFrame]:
    return spark.createDataFrame(LEFT), spark.createDataFrame(RIGHT)


@pytest.mark.parametrize("match", MATCHES.values(), ids=MATCHES)
def test_it_gives_what_streams_give_in_the_end(spark: SparkSession, match: Any) -> None:
    left, right = frames(spark)
    on = None if isinstance(match, sk.Near | sk.Nearest) else "k"
    joined = sk.join(
        left,
        right,
        on=on,
        time=("lt", "rt"),
        within=("-6 s", "2 s"),
        match=match,
        balance=sk.Hash(3),
    )
    # Two rows far in the future, which match nothing, make all others due.
    later = EPOCH + timedelta(days=1)
    ends = [
        t.slice(0, 1).set_column(1, t.column_names[1], pa.array([later], STAMP))
        for t in (LEFT, RIGHT)
    ]
    ends[0] = ends[0].set_column(0, "k", pa.array([-1], pa.int64()))
    expected = join_oracle(
        [(LEFT, RIGHT), (ends[0], ends[1])],
        on=[] if on is None else [("k", "k")],
        time=("lt", "rt"),
        within=("-6 s", "2 s"),
        watermark=("0 s", "0 s"),
        match=match,
    )
    names = [n for n in expected.column_names if "tags" not in n]
    expected = expected.select(names)
    if on is None:
        expected = expected.filter(pa.compute.less(expected.column("lt"), pa.scalar(later, STAMP)))
    found = joined.select(*names)
    assert expected.num_rows > 50
    assert_same_rows(found.toArrow(), expected)
    assert found.coalesce(1).union(found.limit(0)).count() == expected.num_rows, "a second time"


def test_overlap_equals_the_stream(spark: SparkSession, tmp_path: Path) -> None:
    """The same call on the same rows, once with and once without streams."""

    def joined(left: DataFrame, right: DataFrame) -> Any:
        items = [
            f.withColumn("items", F.map_keys(f[t])).drop(t)
            for f, t in ((left, "tags1"), (right, "tags2"))
        ]
        return sk.join(
            *items,
            match=sk.Overlap("items", at_least=2),
            time=("lt", "rt"),
            within="1 second",
            watermark="1 minute",
            balance=sk.Hash(2),
        )

    streamed = Replay(spark, tmp_path, [(LEFT, RIGHT)]).run(joined)
    found = joined(*frames(spark))
    assert isinstance(found, DataFrame)
    assert streamed.num_rows > 50
    assert_same_rows(found.toArrow(), streamed)


def test_it_equals_sparks_own_join_and_is_lazy(spark: SparkSession) -> None:
    left, right = frames(spark)
    joined = sk.join(left, right, on="k", time=("lt", "rt"), within="3 seconds")
    near = F.abs(F.unix_micros("rt") - F.unix_micros("lt")) <= 3_000_000
    own = left.join(right, "k").where(near).select(joined.columns)
    counted = joined.groupBy("k").agg(F.count("*").alias("n"), F.min("a").alias("least"))
    expected = own.groupBy("k").agg(F.count("*").alias("n"), F.min("a").alias("least"))
    assert_same_rows(counted.toArrow(), expected.toArrow())
    missing = left.withColumn("lt", F.expr("IF(true, raise_error('read')::timestamp, lt)"))
    sk.join(missing, right, on="k", time=("lt", "rt"), within="3 seconds")
    empty = sk.join(left.limit(0), right, on="k", time=("lt", "rt"), within=None)
    assert empty.collect() == []


def test_every_type_of_join_equals_sparks_own(spark: SparkSession) -> None:
    """With and without bounds, and with a condition on the pair; all rows are due in the end."""
    left, right = (frame.drop("tags1", "tags2") for frame in frames(spark))
    near = "abs(unix_micros(r.rt) - unix_micros(l.lt)) <= 3000000"
    for how in ("left", "right", "full", "left_semi", "left_anti"):
        for within, where, condition in (
            ("3 seconds", None, near),
            (None, "left.a < right.b AND left.x1 < right.x2", "l.a < r.b AND l.x1 < r.x2"),
        ):
            joined = sk.join(
                *(left, right),
                on="k",
                time=("lt", "rt"),
                within=within,
                how=how,
                where=where,
                balance=sk.Hash(3),
            )
            own = left.alias("l").join(right.alias("r"), F.expr(f"l.k = r.k AND {condition}"), how)
            shown = joined.columns[1:]
            key = "l.k" if how in ("left_semi", "left_anti") else "coalesce(l.k, r.k)"
            assert_same_rows(joined.toArrow(), own.selectExpr(f"{key} AS k", *shown).toArrow())


def test_a_condition_sees_the_left_key_in_its_own_type(spark: SparkSession) -> None:
    """Also where the result has keys in the type of both sides: 2^24 + 1 is no float."""
    left = spark.sql("SELECT 16777216f AS k, timestamp'2024-01-01' AS lt, 'a' AS a")
    right = spark.sql("SELECT 16777216d AS k, timestamp'2024-01-01' AS rt, 1f AS f")
    where = "left.k + right.f > 16777216"
    for how in ("left", "full"):
        joined = sk.join(
            left, right, on="k", time=("lt", "rt"), within="1 second", how=how, where=where
        )
        condition = "l.k = r.k AND l.k + r.f > 16777216"
        own = left.alias("l").join(right.alias("r"), F.expr(condition), how)
        assert sorted(map(str, joined.select("a", "f").collect())) == sorted(
            map(str, own.select("a", "f").collect())
        )


def test_sets_of_an_outer_join(spark: SparkSession) -> None:
    left, right = frames(spark)
    match = sk.InnerProduct(("tags1", "tags2"), at_least=13.0)
    joined = sk.join(left, right, match=match, time=("lt", "rt"), within="2 seconds", how="full")
    pairs = sk.join(left, right, match=match, time=("lt", "rt"), within="2 seconds")
    found, matched = (frame.select("a", "b").toArrow() for frame in (joined, pairs))
    alone = [(row["a"], row["b"]) for row in found.to_pylist() if None in row.values()]
    both = {name: set(matched.column(name).to_pylist()) for name in ("a", "b")}
    assert found.num_rows == matched.num_rows + len(alone)
    assert {a for a, _ in alone if a} == set(LEFT.column("a").to_pylist()) - both["a"]
    assert {b for _, b in alone if b} == set(RIGHT.column("b").to_pylist()) - both["b"]
    assert len(alone) == 2 * SIZE - len(both["a"]) - len(both["b"])


def test_what_is_refused(spark: SparkSession) -> None:
    left, right = frames(spark)
    times = {"on": "k", "time": ("lt", "rt")}
    with pytest.raises(sk.SkewlessError, match=r"shed: got .* takes None where nothing streams"):
        sk.join(left, right, **times, within="1 s", shed=sk.Shed())
    with pytest.raises(sk.SkewlessError, match="refresh: got '1 hour'; takes None, unless"):
        sk.join(left, right, **times, within="1 s", refresh="1 hour")
    with pytest.raises(sk.SkewlessError, match="within: got 'nothing'; takes a duration"):
        sk.join(left, right, **times)
    with pytest.raises(sk.SkewlessError, match="time: got None; takes the event-time"):
        sk.join(left, right, on="k", within="1 s")
