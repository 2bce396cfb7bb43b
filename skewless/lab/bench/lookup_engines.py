"""The engines that join a stream with a table, each as a function that starts its query."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from skewless.lab.bench import choice
from skewless.lab.bench.engines import SCHEMA, Replay
from skewless.lab.bench.pipe import to_nowhere
from skewless.lab.bench.verdict import SKEWLESS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

HASH, CACHED = "hash", "spark-cached"
_ADAPTIVE = "spark.sql.adaptive.enabled"
# A table that is small enough to be broadcast has no skew: here it is not.
_SHUFFLED = {"spark.sql.autoBroadcastJoinThreshold": "-1"}


@dataclass(frozen=True)
class Engine:
    """One way to join; `start` gives a query that ends when all files are joined."""

    name: str
    title: str
    start: Callable[["SparkSession", Replay], Any]
    is_sparks: bool = False
    settings: dict[str, str] = field(default_factory=dict)


def _sides(spark: "SparkSession", replay: Replay) -> "tuple[DataFrame, DataFrame]":
    """The stream is on the left of a replay, the table on its right."""
    stream = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(replay.left)
    return stream, spark.read.parquet(replay.right)


def _skewless(policy: str) -> Callable[["SparkSession", Replay], Any]:
    def start(spark: "SparkSession", replay: Replay) -> Any:
        import skewless as sk

        balance: Any = getattr(sk, policy)(instances=replay.cores)
        joined = sk.join(*_sides(spark, replay), on="k", balance=balance)
        return to_nowhere(joined, replay.checkpoint)

    return start


def _spark(
    hint: str | None = None, *, cached: bool = False
) -> Callable[["SparkSession", Replay], Any]:
    def start(spark: "SparkSession", replay: Replay) -> Any:
        stream, table = _sides(spark, replay)
        if cached:
            # In memory, and where its keys belong: Spark neither reads nor shuffles it again.
            table = table.repartition(replay.cores, "k").persist()
            table.count()
        joined = stream.join(table if hint is None else table.hint(hint), "k")
        return to_nowhere(joined, replay.checkpoint)

    return start


ENGINES = {
    engine.name: engine
    for engine in (
        Engine(SKEWLESS, "Skewless, sk.Auto", _skewless("Auto")),
        Engine(HASH, "Skewless, sk.Hash", _skewless("Hash")),
        *(
            Engine(name, title, start, is_sparks=True, settings={**_SHUFFLED, _ADAPTIVE: adaptive})
            for name, title, start, adaptive in (
                ("spark-adaptive", "Spark, adaptive", _spark(), "true"),
                ("spark-plain", "Spark, not adaptive", _spark(), "false"),
                ("spark-hash", "Spark, shuffled hash", _spark("shuffle_hash"), "true"),
                (CACHED, "Spark, table cached", _spark(cached=True), "false"),
            )
        ),
    )
}


def chosen(names: list[str] | None) -> list[Engine]:
    """The engines of these names, all of them for None, in the order in which they are run."""
    return [ENGINES[name] for name in choice.chosen("engine", names, list(ENGINES))]
