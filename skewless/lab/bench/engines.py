"""The engines that the join benchmark compares, each as a function that starts its query."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from skewless.lab.bench import choice, with_flink, with_pathway
from skewless.lab.bench.pipe import settings, to_function, to_nowhere
from skewless.lab.bench.verdict import FLOOR, SKEWLESS, SKEWLESS_INNER

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

CLOSEST = "asof"
SCHEMA = "k long, ts timestamp, v long"
_JOIN_FORMAT = "spark.sql.streaming.join.stateFormatVersion"
_STATE_STORE = "spark.sql.streaming.stateStore"
_PROVIDERS = "org.apache.spark.sql.execution.streaming.state"
IN_MEMORY = {f"{_STATE_STORE}.providerClass": f"{_PROVIDERS}.HDFSBackedStateStoreProvider"}
# Meant to save RocksDB work: a log of changes instead of whole snapshots in every commit, and
# no look-up before every write only to keep the number of rows.
ROCKSDB = {
    f"{_STATE_STORE}.providerClass": f"{_PROVIDERS}.RocksDBStateStoreProvider",
    f"{_STATE_STORE}.rocksdb.changelogCheckpointing.enabled": "true",
    f"{_STATE_STORE}.rocksdb.trackTotalNumberOfRows": "false",
}


def rocksdb_join(version: str) -> dict[str, str]:
    """RocksDB for Spark's join, with its state in this format."""
    return {**ROCKSDB, _JOIN_FORMAT: version}


@dataclass(frozen=True)
class Replay:
    """What an engine is given: both folders, the window, and where it may keep its state."""

    left: str
    right: str
    within_s: float
    cores: int
    checkpoint: str
    how: str = "inner"  # or CLOSEST


@dataclass(frozen=True)
class Engine:
    """One way to join; `start` gives a query that ends when all files are joined.

    Without it the engine is not on Spark.
    """

    name: str
    title: str
    start: Callable[["SparkSession", Replay], Any] | None
    is_spark_join: bool = False
    is_slow: bool = False  # few batches are measured
    settings: dict[str, str] = field(default_factory=dict)


def session_settings(own: Mapping[str, str], cores: int, driver_memory: str) -> dict[str, str]:
    """The settings of an engine's session, beside those of `sk.session` that all share."""
    return {**settings(driver_memory), "spark.sql.shuffle.partitions": str(cores), **own}


def _read(spark: "SparkSession", folder: str) -> "DataFrame":
    return spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(folder)


def _skewless(spark: "SparkSession", replay: Replay) -> Any:
    import skewless as sk

    reach = timedelta(seconds=replay.within_s)
    closest = replay.how == CLOSEST
    matches = sk.join(
        _read(spark, replay.left),
        _read(spark, replay.right),
        on="k",
        time="ts",
        within=(-reach, timedelta(0)) if closest else reach,
        how="inner" if closest else replay.how,
        match=sk.AsOf("backward") if closest else None,
        watermark="0 seconds",
        balance=sk.Hash(replay.cores),
    )
    return to_nowhere(matches, replay.checkpoint)


def _skewless_inner(spark: "SparkSession", replay: Replay) -> Any:
    return _skewless(spark, replace(replay, how="inner"))


def _spark_join(spark: "SparkSession", replay: Replay) -> Any:
    from pyspark.sql import functions as F

    left = _read(spark, replay.left).withWatermark("ts", "0 seconds").alias("l")
    right = _read(spark, replay.right).withWatermark("ts", "0 seconds").alias("r")
    window = f"INTERVAL {round(replay.within_s * 1e6)} MICROSECONDS"
    condition = f"l.k = r.k AND r.ts >= l.ts - {window} AND r.ts <= l.ts + {window}"
    shown: list[Any] = [
        F.expr("coalesce(l.k, r.k)" if replay.how == "full" else "l.k"),
        "l.ts",
        "l.v",
        F.col("r.ts").alias("ts_right"),
        F.col("r.v").alias("v_right"),
    ]
    if replay.how == "left_semi":
        shown = ["l.k", "l.ts", "l.v"]
    if replay.how == CLOSEST:
        condition = f"l.k = r.k AND r.ts >= l.ts - {window} AND r.ts <= l.ts"
        pairs = left.join(right, F.expr(condition)).select(*shown)
        return to_function(pairs, _closest, replay.checkpoint)
    matches = left.join(right, F.expr(condition), replay.how).select(*shown)
    return to_nowhere(matches, replay.checkpoint)


def _closest(pairs: "DataFrame", batch: int) -> None:
    """The last quote of every trade, as far as one batch tells: what Spark's users write."""
    from pyspark.sql import functions as F

    last = F.max_by("v_right", "ts_right").alias("v_right")
    chosen = pairs.groupBy("k", "ts", "v").agg(last, F.max("ts_right").alias("ts_right"))
    chosen.write.format("noop").mode("overwrite").save()


def _floor(spark: "SparkSession", replay: Replay) -> Any:
    from pyspark.sql import functions as F

    both = _read(spark, replay.left).union(_read(spark, replay.right))
    instance = F.pmod(F.xxhash64("k"), F.lit(replay.cores)).cast("int")
    counted = both.repartitionById(replay.cores, instance).mapInArrow(_count, "rows long")
    return to_nowhere(counted, replay.checkpoint)


def _count(batches: Iterator["pa.RecordBatch"]) -> Iterator["pa.RecordBatch"]:
    import pyarrow as pa

    rows = sum(batch.num_rows for batch in batches)
    yield pa.RecordBatch.from_pydict({"rows": [rows]})


def _spark(name: str, title: str, settings: dict[str, str]) -> Engine:
    """Spark's own join in one of its configurations."""
    return Engine(name, title, _spark_join, is_spark_join=True, is_slow=True, settings=settings)


ENGINES = {
    engine.name: engine
    for engine in (
        Engine(SKEWLESS, "Skewless", _skewless),
        Engine(SKEWLESS_INNER, "Skewless, inner join", _skewless_inner),
        _spark("spark-memory", "Spark, in-memory store", IN_MEMORY),
        *(
            _spark(
                f"spark-rocksdb{version}",
                f"Spark, RocksDB, join state format {version}",
                rocksdb_join(version),
            )
            for version in ("2", "4")
        ),
        Engine(
            FLOOR,
            "floor: read, union, repartitionById, count in Python",
            _floor,
            # As in the step of Skewless: without it the floor would be a third slower.
            settings={"spark.sql.execution.arrow.maxBytesPerBatch": str(2**31 - 1)},
        ),
        *([Engine(with_flink.NAME, "Flink", None)] if with_flink.installed() else []),
        *(
            [Engine(with_pathway.NAME, "Pathway", None, is_slow=True)]
            if with_pathway.installed()
            else []
        ),
    )
}


def chosen(names: list[str] | None) -> list[Engine]:
    """The engines of these names, all of them for None, in the order in which they are run."""
    return [ENGINES[name] for name in choice.chosen("engine", names, list(ENGINES))]
