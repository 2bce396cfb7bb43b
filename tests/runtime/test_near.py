"""Joins by distance on Spark: the cells of SQL, every way to ask, a restart, bad rows."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import skewless as sk
from skewless.engine.columns import ITEMS, LEFT_CODE, RIGHT_CODE
from skewless.routing.blocks import GlobeCells, PlaneCells, blocks, cell_hashes
from skewless.runtime.cells import CellRows
from skewless.testing import Fault, Replay, assert_same_rows, join_oracle

EPOCH = datetime(2024, 1, 1, tzinfo=UTC)
STAMP = pa.timestamp("us", "UTC")
GRIDS = [PlaneCells(0.1), PlaneCells(5e6), *map(GlobeCells, (1e-8, 0.0045, 0.7, 30.0, 89.0, 180.0))]


def some_points(cells: Any, rng: np.random.Generator) -> np.ndarray:
    """Points anywhere, on borders, at the ends of what has a cell, and beyond."""
    most = cells.most
    points = np.array([rng.uniform(-m, m, 60) for m in most])
    points[:, 20:40] = rng.choice([-180.0, -90.0, 0.0, 0.2002, 90.0, 180.0], (2, 20))
    points[:, 40:50] = np.round(points[:, 40:50])
    points[:, 50:53] = np.array(most)[:, None] * 1.01
    points[0, 53], points[1, 54], points[0, 55] = np.nan, np.inf, -np.inf
    return points


def cells_of(cells: Any, points: np.ndarray, *, is_left: bool) -> dict[int, list[tuple[int, int]]]:
    """The cells of every point by numpy; none of those that have no cell."""
    sound = np.flatnonzero((np.abs(points) <= np.array(cells.most)[:, None]).all(axis=0))
    found = (cells.own if is_left else cells.reached)(*points[:, sound])
    x, y = (places.reshape(len(sound), -1).tolist() for places in found)
    rows = (list(zip(*row, strict=True)) for row in zip(x, y, strict=True))
    return dict(zip(sound.tolist(), rows, strict=True))


def test_spark_finds_the_same_cells(spark: SparkSession) -> None:
    """All grids, both sides, in one query; a key is part of the hash."""
    queries, told = [], []
    for number, cells in enumerate(GRIDS):
        points = some_points(cells, np.random.default_rng(number))
        rows = [*enumerate(points.T.tolist()), (60, (None, 0.0)), (61, (0.0, None))]
        frame = spark.createDataFrame([(n, *xy) for n, xy in rows], "n int, a double, b double")
        adds = CellRows(cells, ("a", "b"), ("a", "b"), ("n",), casts=number % 2 == 1)
        for code in (LEFT_CODE, RIGHT_CODE):
            queries.append(
                adds.added(frame, code).selectExpr(f"{number} AS g", f"{code} AS s", "n", ITEMS)
            )
            for n, found in cells_of(cells, points, is_left=code == LEFT_CODE).items():
                told += [((number, code, n), n, *cell) for cell in found]
    x, y = (np.array([cell[i] for cell in told], np.int64) for i in (2, 3))
    asked = [(cell[1], *block) for cell, *block in zip(told, *map(list, blocks(x, y)), strict=True)]
    hashed = spark.createDataFrame(
        [(n, int(a), int(b)) for n, a, b in asked], "n int, x long, y long"
    ).selectExpr("xxhash64(n, x, y) AS h")
    of_block = np.array([row["h"] for row in hashed.collect()], np.int64)
    hashes = cell_hashes(of_block.view(np.uint64), x, y).view(np.int64).tolist()
    expected: dict[tuple[int, int, int], dict[int, None]] = {}
    for (row, *_), value in zip(told, hashes, strict=True):
        expected.setdefault(row, {})[value] = None
    united = reduce(DataFrame.union, queries).collect()
    got = {(r["g"], r["s"], r["n"]): r[ITEMS] for r in united}
    assert len(got) == len(GRIDS) * 2 * 62
    for row, items in got.items():
        assert items == list(expected.get(row, ())), row
        assert len(items) <= (1 if row[1] == LEFT_CODE else 4)


def point_batches(count: int, rows: int, seed: int = 1) -> list[tuple[pa.Table, pa.Table]]:
    """Points of a plane, of other types, and of the globe; late rows, nulls, null keys."""
    rng = np.random.default_rng(seed)
    made = []
    for number in range(count):
        sides = []
        for side, value in (("left", "a"), ("right", "b")):
            times = [
                EPOCH + timedelta(milliseconds=int(s) + 4_000 * number)
                for s in rng.integers(0, 9_000, rows)
            ]
            plane = rng.uniform(-5, 5, (2, rows))
            x = plane[0].tolist()
            x[0] = None
            kind = pa.decimal128(12, 3) if side == "left" else pa.int32()
            whole = [[Decimal(int(v)) if side == "left" else int(v) for v in p] for p in plane]
            longitudes = (178 + rng.uniform(0, 4, rows) + 180) % 360 - 180
            sides.append(
                pa.table(
                    {
                        "k": pa.array(
                            rng.choice(["x", "x", "y", None], rows).tolist(), pa.string()
                        ),
                        f"{side[0]}t": pa.array(times, STAMP),
                        value: pa.array(range(1000 * number, 1000 * number + rows)),
                        "x": pa.array(x, pa.float64()),
                        "y": pa.array(plane[1]),
                        "i": pa.array(whole[0], kind),
                        "j": pa.array(whole[1], kind),
                        "lon": pa.array(longitudes),
                        "lat": pa.array(rng.uniform(64, 66, rows)),
                    }
                )
            )
        made.append((sides[0], sides[1]))
    return made


@pytest.mark.parametrize(
    ("match", "on"),
    [
        (sk.Near(radius=1.5, left=("x", "y")), "k"),
        (sk.Near(radius=2, left=("i", "j"), distance="apart"), None),
        (sk.Near(metres=30_000, left=("lon", "lat")), None),
        (sk.Nearest(k=2, metres=40_000, left=("lon", "lat"), distance="metres"), "k"),
    ],
)
def test_every_way_to_ask_equals_the_oracle(
    spark: SparkSession, tmp_path: Path, match: Any, on: str | None
) -> None:
    names = [list(dict.fromkeys(["k", "lt", "a", *match.left])), ["k", "rt", "b", *match.left]]
    batches = [
        tuple(t.select(n) for t, n in zip(b, names, strict=True)) for b in point_batches(3, 60)
    ]
    replay = Replay(spark, tmp_path, batches)

    def build(left: DataFrame, right: DataFrame) -> sk.Stream:
        return sk.join(
            left,
            right,
            on=on,
            match=match,
            time=("lt", "rt"),
            within=("-5 seconds", "2 seconds"),
            watermark="2 seconds",
            balance=sk.Auto(3),
        )

    faults = [Fault("in_task", 1), Fault("after_sink", 2)] if on is not None else []
    found = replay.run(build, faults=faults)
    expected = join_oracle(
        batches,
        on=[] if on is None else [(on, on)],
        time=("lt", "rt"),
        within=("-5 seconds", "2 seconds"),
        watermark=("2 seconds", "2 seconds"),
        match=match,
    )
    assert expected.num_rows > 20
    assert_same_rows(found, expected)
    assert replay.restarts == len(faults)
    if match.distance is not None:
        assert found.column_names[-1] == match.distance
        apart = np.array(found.column(match.distance))
        assert 0 < apart.max() <= match.metric.reach


def test_progress_bad_rows_chains_and_the_fingerprint(spark: SparkSession, tmp_path: Path) -> None:
    batches = point_batches(2, 40, seed=8)
    replay = Replay(spark, tmp_path, batches)

    def build(left: DataFrame, right: DataFrame, metres: float = 50_000) -> sk.Stream:
        wrong = F.expr("IF(b % 1000 = 3, 200D, lon)")
        nearest = sk.join(
            left.select("lt", "a", "x", "lon", "lat"),
            right.select("rt", "b", wrong.alias("lon"), "lat"),
            match=sk.Nearest(k=1, metres=metres, left=("lon", "lat")),
            time=("lt", "rt"),
            within="2 seconds",
            watermark="1 second",
            balance=sk.Hash(3),
        )
        return sk.join(
            nearest,
            left.select(F.col("lt").alias("at"), F.col("a").alias("again"), "x", "y"),
            match=sk.Near(radius=0.5, left=("x", "lat"), right=("x", "y")),
            time=("lt", "at"),
            within="5 seconds",
            watermark="9 seconds",
            balance=sk.Hash(2),
        )

    query = replay.start(build, badRows="drop", deadLetterPath=str(tmp_path / "dead"))
    query.awaitTermination()
    progress = [p["skewless"]["operators"] for p in query.recentProgress]
    nearest, near = progress[-1]
    assert nearest["name"] == "join by nearest of lon, lat"
    assert near["name"] == "join by distance of x, lat and x, y"
    assert nearest["rows"] == {"left": 40, "right": 40}
    assert [p[0]["badRows"]["right"] for p in progress] == [1, 1]
    assert progress[0][1]["nullKeys"]["right"] == 1
    assert near["rows"]["left"] > 0
    letters = spark.read.parquet(str(tmp_path / "dead")).where("reason LIKE '%longitude%'")
    assert sorted(r["b"] for r in letters.collect()) == [3, 1003]
    left, right = replay.inputs()
    other = build(left, right, metres=1).writeStream.format("noop")
    with pytest.raises(sk.SkewlessError, match="checkpoint"):
        other.option("checkpointLocation", str(replay.checkpoint)).start()
