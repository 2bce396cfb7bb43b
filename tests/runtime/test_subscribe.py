"""Subscriptions on Spark: tables and streams of them, shapes, chains, restarts and dead letters."""

import os
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import shapely
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

import skewless as sk
from skewless.testing import POINTS, Fault, Replay
from tests.operators.subscribe.cases import STAMP, Model

EPOCH = datetime(2024, 1, 1, tzinfo=UTC)
BOUNDS = (0.0, 0.0, 100.0, 100.0)
BOX = ("x_min", "y_min", "x_max", "y_max")
TABLE = f"id string, {', '.join(f'{name} double' for name in BOX)}"
REAL = pa.float64()
POINT = pa.schema([("pid", pa.int64()), ("lon", REAL), ("lat", REAL), ("at", STAMP)])
QUERY = pa.schema(
    [
        ("id", pa.string()),
        ("op", pa.string()),
        *((name, pa.float64()) for name in BOX),
        ("asked_at", STAMP),
        ("owner", pa.string()),
    ]
)
ON: dict[str, Any] = {"x": "lon", "y": "lat", "bounds": BOUNDS}
Pairs = Counter[tuple[int, str]]


def moment(second: float) -> datetime:
    return EPOCH + timedelta(seconds=second)


def points_of(batch: int, count: int, rng: np.random.Generator) -> pa.Table:
    """Points of ten seconds, most of them around a spot that wanders."""
    places = rng.normal(20 + 12 * batch, 8, (count, 2)).clip(0, 100)
    seconds = 10 * batch + rng.integers(0, 10, count)
    return pa.table(
        [
            pa.array(range(batch * count, (batch + 1) * count)),
            pa.array(places[:, 0]),
            pa.array(places[:, 1]),
            pa.array([moment(int(s)) for s in seconds], STAMP),
        ],
        schema=POINT,
    )


def words_of(batch: int, rng: np.random.Generator) -> list[dict[str, Any]]:
    """What is said of subscriptions in a batch."""
    rows = []
    for n in range(12):
        op = str(rng.choice(["add", "change", "remove", "snapshot"], p=[0.5, 0.1, 0.2, 0.2]))
        x, y, width = rng.uniform(0, 80), rng.uniform(0, 80), rng.uniform(0, 30)
        row = {"id": f"s{rng.integers(15)}", "op": op, "owner": f"o{n % 3}"}
        if op != "remove":
            row |= dict(zip(BOX, (x, y, x + width, y + width), strict=True))
        rows.append(row | {"asked_at": moment(10 * batch + 9 + n / 100)})
    return rows


def pairs(rows: pa.Table) -> Pairs:
    return Counter(zip(rows.column("pid").to_pylist(), rows.column("id").to_pylist(), strict=True))


def in_us(at: datetime) -> int:
    return int((at - datetime(1970, 1, 1, tzinfo=UTC)) / timedelta(microseconds=1))


@pytest.fixture(scope="module")
def wandering() -> tuple[list[tuple[pa.Table, pa.Table]], Pairs]:
    """Batches of a stream of both, and what must come out."""
    rng = np.random.default_rng(5)
    batches, model = [], Model()
    for batch in range(6):
        points, words = points_of(batch, 120, rng), words_of(batch, rng)
        batches.append((points, pa.Table.from_pylist(words, QUERY)))
        columns = points.to_pydict().values()
        told = [(pid, x, y, in_us(at)) for pid, x, y, at in zip(*columns, strict=True)]
        model.step(
            told,
            [word | {"asked_at": in_us(word["asked_at"])} for word in words],
            15_000_000,
            delay_us=5_000_000,
        )
    return batches, model.pairs()


def watching(points: DataFrame, queries: DataFrame, balance: Any = None) -> sk.Stream:
    return sk.subscribe(
        points,
        queries,
        **ON,
        time=("at", "asked_at"),
        window="15 seconds",
        watermark="5 seconds",
        balance=balance,
    )


@pytest.mark.parametrize(
    "policy",
    [
        sk.Auto(instances=2),
        # Without Spark, kills are tried under tiles that change at random.
        pytest.param(sk.Swarm(instances=3, cells=16), marks=pytest.mark.soak),
    ],
)
def test_streams_of_subscriptions_equal_the_model_across_kills(
    spark: SparkSession, tmp_path: Path, wandering: Any, policy: Any
) -> None:
    batches, expected = wandering
    replay = Replay(spark, tmp_path, batches)
    faults = [Fault(point, batch) for batch, point in enumerate(POINTS)]
    rows = replay.run(lambda p, q: watching(p, q, policy), faults)
    assert replay.restarts == len(faults)
    assert pairs(rows) == expected
    assert rows.column_names == ["pid", "lon", "lat", "at", "id", "asked_at", "owner"]


def test_a_sink_that_looks_at_rows_in_its_own_way(
    spark: SparkSession, tmp_path: Path, wandering: Any
) -> None:
    """Rows then name their instance, and control rows go along with points and subscriptions."""
    batches, expected = wandering
    found: Pairs = Counter()

    def look(batch: DataFrame, number: int) -> None:
        if number % 3:
            batch.limit(1).collect()
        found.update((row["pid"], row["id"]) for row in batch.coalesce(1).collect())

    replay = Replay(spark, tmp_path, batches)
    replay.start(watching, function=look).awaitTermination()
    assert found == expected


def test_a_table_of_circles_and_polygons_on_other_types(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Coordinates that are no doubles come out as they went in; an operator may feed the points."""
    rng = np.random.default_rng(8)
    whole = rng.integers(0, 101, (300, 2))
    table = pa.table({"pid": range(300), "lon": whole[:, 0], "lat": whole[:, 1].astype(np.float32)})
    points = _stream(spark, tmp_path / "points", table)

    def same(batch: pa.RecordBatch) -> pa.RecordBatch:
        return batch

    mapped = sk.map(points, same, "pid long, lon long, lat float", cost_key="pid")
    circles = [(f"c{n}", *map(float, rng.uniform(0, 100, 2)), float(n)) for n in range(20)]
    tables = spark.createDataFrame(circles, "id string, x double, y double, radius double")
    near = sk.subscribe(mapped, tables, **ON, balance=sk.StaticGrid(instances=2))
    assert dict(near.dtypes)["lon"] == "bigint"
    assert dict(near.dtypes)["lat"] == "float"
    found = pairs(_written(near, tmp_path / "circles"))
    x, y, radius = np.array([circle[1:] for circle in circles]).T
    inside = (whole[:, None, 0] - x) ** 2 + (whole[:, None, 1] - y) ** 2 <= radius**2
    expected = {(int(p), circles[q][0]) for p, q in zip(*np.nonzero(inside), strict=True)}
    assert set(found) == expected
    corners = [(10, 10), (60, 20), (50, 70), (30, 30)]
    shapes = [shapely.Polygon(corners), shapely.Point(70, 70).buffer(12), shapely.box(0, 0, 5, 5)]
    for column in (shapely.to_wkt(shapes), shapely.to_wkb(shapes)):
        kind = "binary" if isinstance(column[0], bytes) else "string"
        rows = [(f"p{n}", bytearray(c) if kind == "binary" else c) for n, c in enumerate(column)]
        drawn = spark.createDataFrame(rows, f"id string, polygon {kind}")
        inside = sk.subscribe(points, drawn, **ON)
        assert inside.columns == ["pid", "lon", "lat", "id"]
        expected = {
            (p, f"p{n}")
            for n, shape in enumerate(shapes)
            for p in np.flatnonzero(shapely.intersects_xy(shape, *whole.T)).tolist()
        }
        assert set(pairs(_written(inside, tmp_path / kind))) == expected


def test_bad_rows_fail_the_batch_or_become_dead_letters(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = pa.table({"pid": [1, 2, 3, 4], "lon": [5.0, np.nan, 500.0, None], "lat": [5.0] * 4})
    points = _stream(spark, tmp_path / "points", table)
    rows = [("good", 0.0, 0.0, 9.0, 9.0), ("inverted", 9.0, 0.0, 0.0, 9.0)]
    areas = spark.createDataFrame(rows, TABLE)
    seen = sk.subscribe(points, areas, **ON)
    with pytest.raises(StreamingQueryException, match=r"bad row: the (points|queries) input"):
        _written(seen, tmp_path / "fail")
    letters = tmp_path / "letters"
    found = _written(seen, tmp_path / "drop", badRows="drop", deadLetterPath=str(letters))
    assert pairs(found) == Counter([(1, "good")])
    dropped = spark.read.parquet(str(letters)).toPandas()
    assert sorted(dropped["id"].dropna()) == ["inverted"]
    assert sorted(dropped["pid"].dropna()) == [2, 3]


def test_subscriptions_feed_a_keyed_operator(spark: SparkSession, tmp_path: Path) -> None:
    """Event time goes through: windows close as if the points came directly."""
    rng = np.random.default_rng(2)
    tables = [points_of(batch, 100, rng) for batch in range(3)]
    points = _stream(spark, tmp_path / "points", *tables)
    whole = spark.createDataFrame([("all", *BOUNDS)], TABLE)
    seen = sk.subscribe(points, whole, **ON)
    counts = sk.keyed(
        seen, "id", time="at", window="10 seconds", process=sk.Count(), watermark="0 seconds"
    )
    rows = _written(counts, tmp_path / "out")
    assert sorted(rows.column("count").to_pylist()) == [100, 100]


def test_a_query_on_a_table_goes_on_without_reading_it_again(
    spark: SparkSession, tmp_path: Path
) -> None:
    rng = np.random.default_rng(4)
    folder = tmp_path / "points"
    points = _stream(spark, folder, points_of(0, 50, rng))

    def written(name: str) -> pa.Table:
        areas = spark.createDataFrame([(name, *BOUNDS)], TABLE)
        return _written(sk.subscribe(points, areas, **ON), tmp_path / "out")

    assert set(written("first").column("id").to_pylist()) == {"first"}
    _add(folder, points_of(1, 50, rng), 1)
    rows = written("second")
    assert rows.num_rows == 100
    assert set(rows.column("id").to_pylist()) == {"first"}


def _stream(spark: SparkSession, folder: Path, *tables: pa.Table) -> DataFrame:
    for number, table in enumerate(tables):
        _add(folder, table, number)
    schema = spark.read.parquet(str(folder)).schema
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder))


def _add(folder: Path, table: pa.Table, number: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{number:03d}.parquet"
    pq.write_table(table, path)
    os.utime(path, (1_000_000_000 + 10 * number,) * 2)


def _written(stream: sk.Stream, folder: Path, **options: Any) -> pa.Table:
    writer = stream.writeStream.format("parquet").options(**options)
    writer = writer.option("checkpointLocation", str(folder / "checkpoint"))
    writer.trigger(availableNow=True).start(str(folder / "rows")).awaitTermination()
    return stream.session.read.parquet(str(folder / "rows")).drop("batch").toArrow()
