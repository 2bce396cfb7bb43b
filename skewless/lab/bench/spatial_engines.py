"""The contenders of the benchmark of spatial streams, each as a function that starts its query."""

from collections.abc import Iterator
from datetime import timedelta
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset as pads
import pyarrow.parquet as pq

from skewless.lab.bench import with_sedona
from skewless.lab.bench.engines import Engine, Replay, rocksdb_join
from skewless.lab.bench.pipe import to_nowhere
from skewless.lab.bench.spatial_scenes import (
    BOUNDS,
    CHANGES,
    FILES_PER_BATCH,
    MOVING,
    POINTS,
    RADIUS,
    SIDE,
    SUBSCRIPTIONS,
    history,
)
from skewless.lab.bench.verdict import FLOOR
from skewless.routing.cells import CellGrid
from skewless.routing.tiles import even_tiles
from skewless.runtime.tiles import tile_visits

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

# A cell of Spark's joins, in sides of a subscription or in radii. Smaller cells mean more copies of
# a row, larger ones more candidates; for both joins the optimum is flat around this.
CELL = 4.0


def points_of(spark: "SparkSession", replay: Replay) -> "DataFrame":
    """A stream of points, with a file per core in every batch."""
    reader = spark.readStream.schema(POINTS).option("maxFilesPerTrigger", FILES_PER_BATCH)
    return reader.parquet(replay.left)


def subscriptions_of(spark: "SparkSession", replay: Replay) -> "DataFrame":
    return spark.read.schema(SUBSCRIPTIONS).parquet(replay.right)


def _subscribe(spark: "SparkSession", replay: Replay) -> Any:
    import skewless as sk

    matches = sk.subscribe(
        points_of(spark, replay),
        subscriptions_of(spark, replay),
        x="x",
        y="y",
        bounds=BOUNDS,
        balance=sk.Auto(instances=replay.cores),
    )
    return to_nowhere(matches, replay.checkpoint)


def _balanced(spark: "SparkSession", replay: Replay, policy: str, **options: Any) -> Any:
    """Under a policy, and with a job that computes something from every match, as jobs do.

    Without that, a straggler's worker and its Java thread together keep two cores busy, and sharing
    their work gains little.
    """
    import skewless as sk

    queries = subscriptions_of(spark, replay)
    matches = sk.subscribe(
        points_of(spark, replay),
        queries.selectExpr("*", "(x_min + x_max) / 2 AS home_x", "(y_min + y_max) / 2 AS home_y"),
        x="x",
        y="y",
        bounds=BOUNDS,
        balance=getattr(sk, policy)(instances=replay.cores, **options),
    )
    return to_nowhere(matches.transform(not_far), replay.checkpoint)


def not_far(matches: "DataFrame") -> "DataFrame":
    """The matches whose point is near the middle of the subscription, on a globe of radians."""
    from pyspark.sql import functions as F

    angle = F.acos(
        F.sin("y") * F.sin("home_y") + F.cos("y") * F.cos("home_y") * F.cos(F.expr("x - home_x"))
    )
    return matches.where(angle < SIDE)


def _from_history(spark: "SparkSession", replay: Replay) -> Any:
    return _balanced(spark, replay, "StaticGrid", history=history())


def _adding(spark: "SparkSession", replay: Replay) -> Any:
    import skewless as sk

    points, changes = (
        spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(folder)
        for schema, folder in ((POINTS, replay.left), (CHANGES, replay.right))
    )
    policy = sk.Auto(instances=replay.cores)
    matches = sk.subscribe(points, changes, x="x", y="y", bounds=BOUNDS, balance=policy)
    return to_nowhere(matches, replay.checkpoint)


def _range_join(spark: "SparkSession", replay: Replay) -> Any:
    from pyspark.sql import functions as F

    # Kept in memory: a stream would read a static side again in every batch.
    queries = subscriptions_of(spark, replay).cache()
    queries.count()
    inside = F.expr("x BETWEEN x_min AND x_max AND y BETWEEN y_min AND y_max")
    matches = points_of(spark, replay).join(F.broadcast(queries), inside)
    return to_nowhere(matches.select("point", "x", "y", "id"), replay.checkpoint)


def _cell_join(spark: "SparkSession", replay: Replay) -> Any:
    from pyspark.sql import functions as F

    cell = CELL * SIDE
    queries = subscriptions_of(spark, replay)
    queries = queries.select("*", covered("x_min", "x_max", cell).alias("column"))
    queries = queries.select("*", covered("y_min", "y_max", cell).alias("row")).cache()
    queries.count()
    points = points_of(spark, replay).select(
        "*", place("x", cell).alias("column"), place("y", cell).alias("row")
    )
    inside = F.expr("x BETWEEN x_min AND x_max AND y BETWEEN y_min AND y_max")
    matches = points.join(F.broadcast(queries), ["column", "row"]).where(inside)
    return to_nowhere(matches.select("point", "x", "y", "id"), replay.checkpoint)


def place(coordinate: str, cell: float) -> "Column":
    """The row or column that a coordinate is in."""
    from pyspark.sql import functions as F

    return F.expr(f"CAST(FLOOR({coordinate} / {cell!r}) AS INT)")


def covered(low: str, high: str, cell: float) -> "Column":
    """One row for every row or column from one coordinate to the other."""
    from pyspark.sql import functions as F

    return F.explode(F.sequence(place(f"({low})", cell), place(f"({high})", cell)))


def _strtree(spark: "SparkSession", replay: Replay) -> Any:
    folder = replay.right

    def inside(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield found_in_tree(batch, *_tree_of(folder))

    matches = points_of(spark, replay).mapInArrow(inside, f"{POINTS}, id long")
    return to_nowhere(matches, replay.checkpoint)


@cache
def _tree_of(folder: str) -> tuple[Any, pa.Array]:
    """Built once in a worker process."""
    return tree_of(pq.read_table(folder))


def tree_of(queries: pa.Table) -> tuple[Any, pa.Array]:
    """The subscriptions in shapely's tree, and their ids."""
    import shapely

    edges = (queries[name].to_numpy() for name in ("x_min", "y_min", "x_max", "y_max"))
    tree = shapely.STRtree(shapely.box(*edges))
    tree.query(shapely.Point(0.0, 0.0))  # the first search builds it
    return tree, queries["id"].combine_chunks()


def found_in_tree(batch: pa.RecordBatch, tree: Any, ids: pa.Array) -> pa.RecordBatch:
    """The points with the subscriptions around them."""
    import shapely

    places = shapely.points(batch["x"].to_numpy(), batch["y"].to_numpy())
    # Without a predicate the tree compares envelopes: with points and rectangles that is all.
    point, query = tree.query(places)
    columns = [column.take(pa.array(point)) for column in batch.columns]
    return pa.record_batch([*columns, ids.take(pa.array(query))], [*batch.schema.names, "id"])


def _floor(spark: "SparkSession", replay: Replay, *, shuffles: bool) -> Any:
    """What Spark takes for as many rows, to Python and back, without looking for anything."""
    from pyspark.sql import functions as F

    per_point = pads.dataset(replay.right).count_rows() * SIDE**2

    def handed_back(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield repeated(batch, per_point)

    points = points_of(spark, replay)
    if shuffles:
        points, instance = tile_visits(points, even_tiles(CellGrid(64, BOUNDS), replay.cores), ())
        points = points.repartitionById(replay.cores, F.expr(instance))
    matches = points.mapInArrow(handed_back, f"{POINTS}, id long")
    return to_nowhere(matches, replay.checkpoint)


def repeated(batch: pa.RecordBatch, times: float) -> pa.RecordBatch:
    """Every point about so many times, with its own number as the id."""
    rows = pa.array((np.arange(round(batch.num_rows * times)) / times).astype(np.int64))
    taken = batch.take(rows)
    return pa.record_batch([*taken.columns, taken["point"]], [*batch.schema.names, "id"])


def _near(spark: "SparkSession", replay: Replay) -> Any:
    import skewless as sk

    matches = sk.join(
        moving(spark, replay.left),
        moving(spark, replay.right),
        match=sk.Near(radius=RADIUS, left=("x", "y"), right=("x", "y")),
        time="ts",
        within=timedelta(seconds=replay.within_s),
        watermark="0 seconds",
        balance=sk.Hash(replay.cores),
    )
    return to_nowhere(matches, replay.checkpoint)


def _cells_in_state(spark: "SparkSession", replay: Replay) -> Any:
    from pyspark.sql import functions as F

    reach, cell = RADIUS, CELL * RADIUS
    left, right = (
        moving(spark, folder).withWatermark("ts", "0 seconds")
        for folder in (replay.left, replay.right)
    )
    left = left.select("*", covered(f"x - {reach!r}", f"x + {reach!r}", cell).alias("column"))
    left = left.select("*", covered(f"y - {reach!r}", f"y + {reach!r}", cell).alias("row"))
    right = right.select("*", place("x", cell).alias("column"), place("y", cell).alias("row"))
    window = f"INTERVAL {round(replay.within_s * 1e6)} MICROSECONDS"
    near = (
        "l.column = r.column AND l.row = r.row "
        f"AND r.ts >= l.ts - {window} AND r.ts <= l.ts + {window} "
        f"AND SQRT(POW(l.x - r.x, 2) + POW(l.y - r.y, 2)) <= {reach!r}"
    )
    pairs = left.alias("l").join(right.alias("r"), F.expr(near))
    names = ("id", "ts", "x", "y")
    theirs = [F.col(f"r.{name}").alias(f"{name}_right") for name in names]
    matches = pairs.select(*(f"l.{name}" for name in names), *theirs)
    return to_nowhere(matches, replay.checkpoint)


def moving(spark: "SparkSession", folder: str) -> "DataFrame":
    """One side of a join: a stream with one file per batch."""
    return spark.readStream.schema(MOVING).option("maxFilesPerTrigger", 1).parquet(folder)


SUBSCRIBE, STRTREE, CELLS, RANGE = "subscribe", "strtree", "spark-cells", "spark-range"
IN_PLACE = "floor-in-place"
FLOORS = (FLOOR, IN_PLACE)
NEAR, STATE_CELLS = "near", "spark-state"
SWARM, STATIC, REPLICATED, AUTO = "Swarm", "StaticGrid", "Replicated", "Auto"
ADDING = "adding"
# As in the step of Skewless.
_AS_OURS = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.execution.arrow.maxBytesPerBatch": str(2**31 - 1),
}
ENGINES = {
    engine.name: engine
    for engine in (
        Engine(SUBSCRIBE, "sk.subscribe", _subscribe),
        Engine(STRTREE, "STRtree in mapInArrow", _strtree),
        Engine(CELLS, "Spark, broadcast hash join by cells", _cell_join),
        Engine(RANGE, "Spark, broadcast range join", _range_join, is_slow=True),
        *(
            Engine(
                name,
                f"floor: {what}to Python and back",
                partial(_floor, shuffles=name == FLOOR),
                settings=_AS_OURS,
            )
            for name, what in ((FLOOR, "tiles, repartitionById, "), (IN_PLACE, ""))
        ),
        Engine(NEAR, "sk.join by distance", _near),
        Engine(
            STATE_CELLS,
            "Spark, stream-stream join by cells",
            _cells_in_state,
            is_slow=True,
            settings=rocksdb_join("4"),
        ),
        *([Engine(with_sedona.NAME, "SedonaDB, a batch", None)] if with_sedona.installed() else []),
        *(
            Engine(name, f"sk.{name}", partial(_balanced, policy=name))
            for name in (SWARM, REPLICATED, AUTO)
        ),
        Engine(STATIC, "sk.StaticGrid from history", _from_history),
        Engine(ADDING, "sk.subscribe, subscriptions stream", _adding),
    )
}
