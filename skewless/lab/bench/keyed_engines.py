"""The engines that the benchmark of keyed state compares, each as a function that starts its query.

All read one folder (the left one of a `Replay`) and write to the sink that keeps nothing.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from skewless.lab.bench import choice
from skewless.lab.bench.engines import IN_MEMORY, ROCKSDB, Replay
from skewless.lab.bench.keyed_workloads import COUNT, INSTANCES, SELF_JOIN, WORDS
from skewless.lab.bench.pipe import to_nowhere
from skewless.lab.bench.verdict import SKEWLESS

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.state import GroupState

WORD_SCHEMA = "word string, at timestamp"
TRADE_SCHEMA = "symbol long, at timestamp, shares long"
RUNNING_SCHEMA = "word string, n long, last timestamp"
HASH, MIXED = "hash", "mixed"
STORES = (("memory", "in-memory store", IN_MEMORY), ("rocksdb", "RocksDB", ROCKSDB))


@dataclass(frozen=True)
class Engine:
    """One way to do a workload's work; `stream` gives what is to be written, and how it is."""

    workload: str
    name: str
    title: str
    stream: Callable[["SparkSession", Replay], Any]
    mode: str | None = None  # output mode; None: the stream's own
    is_sparks: bool = False
    is_slow: bool = False  # few batches are measured
    needs: str | None = None  # a package that Spark does not bring along, by the module it has
    settings: dict[str, str] = field(default_factory=dict)

    @property
    def key(self) -> str:
        return f"{self.workload}/{self.name}"

    @property
    def is_installed(self) -> bool:
        try:
            return self.needs is None or find_spec(self.needs) is not None
        except ModuleNotFoundError:  # the package above it is missing, too
            return False

    def start(self, spark: "SparkSession", replay: Replay) -> Any:
        """A query that ends when all files are done."""
        return to_nowhere(self.stream(spark, replay), replay.checkpoint, self.mode)


def _read(spark: "SparkSession", replay: Replay, schema: str) -> "DataFrame":
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(replay.left)


def running_counts() -> Callable[..., tuple["pa.Table", "pa.Table"]]:
    """A function on Arrow tables that keeps how often and when last each word was seen.

    Made in here so that it travels to the workers by value, as a user's function does.
    """

    def counted(batch: "pa.Table", state: "pa.Table | None") -> tuple["pa.Table", "pa.Table"]:
        import pyarrow as pa

        found = batch.group_by("word").aggregate([([], "count_all"), ("at", "max")])
        found = found.rename_columns({"count_all": "n", "at_max": "last"})
        if state is not None and state.num_rows:
            both = pa.concat_tables([found, state.select(found.column_names)]).group_by("word")
            found = both.aggregate([("n", "sum"), ("last", "max")])
            found = found.rename_columns({"n_sum": "n", "last_max": "last"})
        found = found.select(["word", "n", "last"])
        return found, found

    return counted


def _skewless_words(spark: "SparkSession", replay: Replay) -> Any:
    import warnings

    import skewless as sk
    from skewless.errors import StateGrowsWarning

    with warnings.catch_warnings():
        # A word is kept for ever, by Spark's operators as well.
        warnings.simplefilter("ignore", StateGrowsWarning)
        return sk.keyed(
            _read(spark, replay, WORD_SCHEMA),
            "word",
            time="at",
            process=running_counts(),
            watermark=None,
            balance=sk.Hash(replay.cores),
        )


def _apply_in_pandas(spark: "SparkSession", replay: Replay) -> Any:
    from pyspark.sql.streaming.state import GroupStateTimeout

    def counted(
        key: tuple[str], frames: Iterator["pd.DataFrame"], state: "GroupState"
    ) -> Iterator["pd.DataFrame"]:
        import pandas as pd

        n, last = state.get if state.exists else (0, None)
        for frame in frames:
            newest = frame["at"].max()
            n += len(frame)
            last = newest if last is None or newest > last else last
        state.update((n, last))
        yield pd.DataFrame({"word": [key[0]], "n": [n], "last": [last]})

    return (
        _read(spark, replay, WORD_SCHEMA)
        .groupBy("word")
        .applyInPandasWithState(
            counted,
            RUNNING_SCHEMA,
            "n long, last timestamp",
            "update",
            GroupStateTimeout.NoTimeout,
        )
    )


def _transform_with_state(spark: "SparkSession", replay: Replay) -> Any:
    from pyspark.sql.streaming import StatefulProcessor

    class Counted(StatefulProcessor):
        def init(self, handle: Any) -> None:
            self.seen = handle.getValueState("seen", "n long, last timestamp")

        def handleInputRows(  # noqa: N802 - Spark's name
            self, key: Any, rows: Iterator["pd.DataFrame"], timerValues: Any
        ) -> Iterator["pd.DataFrame"]:
            import pandas as pd

            n, last = self.seen.get() if self.seen.exists() else (0, None)
            for frame in rows:
                newest = frame["at"].max()
                n += len(frame)
                last = newest if last is None or newest > last else last
            self.seen.update((n, last))
            yield pd.DataFrame({"word": [key[0]], "n": [n], "last": [last]})

        def close(self) -> None:
            pass

    grouped = _read(spark, replay, WORD_SCHEMA).groupBy("word")
    return grouped.transformWithStateInPandas(Counted(), RUNNING_SCHEMA, "Update", "None")


def _skewless_count(spark: "SparkSession", replay: Replay) -> Any:
    import skewless as sk

    return sk.keyed(
        _read(spark, replay, WORD_SCHEMA),
        "word",
        time="at",
        window=timedelta(seconds=replay.within_s),
        process=sk.Count(),
        balance=sk.Hash(replay.cores),
    )


def _spark_count(spark: "SparkSession", replay: Replay) -> Any:
    from pyspark.sql import functions as F

    rows = _read(spark, replay, WORD_SCHEMA).withWatermark("at", "0 seconds")
    window = F.window("at", f"{round(replay.within_s * 1e6)} microseconds")
    return rows.groupBy(window, "word").count()


def offsetting(pairs: "DataFrame") -> "DataFrame":
    """The pairs whose trades cancel out by a made-up measure: what a job does with its pairs.

    Spark works on every pair; without that, the worker of a straggler and its Java thread together
    keep more than one core busy, and sharing their work gains less.
    """
    from pyspark.sql import functions as F

    a, b = F.col("shares") * 1e-3, F.col("shares_right") * 1e-3
    angle = F.acos(F.sin(a) * F.sin(b) + F.cos(a) * F.cos(b) * F.cos(a - b))
    return pairs.where(angle < 1e-9)


def _self_join(policy: str, **options: Any) -> Callable[["SparkSession", Replay], Any]:
    def stream(spark: "SparkSession", replay: Replay) -> Any:
        import skewless as sk

        pairs = sk.keyed(
            _read(spark, replay, TRADE_SCHEMA),
            "symbol",
            time="at",
            process=sk.SelfJoin(within=timedelta(seconds=replay.within_s)),
            balance=getattr(sk, policy)(instances=INSTANCES, **options),
        )
        return pairs.transform(offsetting)

    return stream


ENGINES = {
    engine.key: engine
    for engine in (
        Engine(WORDS, SKEWLESS, "Skewless, a function on Arrow tables", _skewless_words),
        *(
            Engine(
                WORDS,
                f"apply-{store}",
                f"applyInPandasWithState, {title}",
                _apply_in_pandas,
                mode="update",
                is_sparks=True,
                is_slow=True,
                settings=settings,
            )
            for store, title, settings in STORES
        ),
        Engine(
            WORDS,
            "transform-rocksdb",
            "transformWithStateInPandas, RocksDB",
            _transform_with_state,
            mode="update",
            is_sparks=True,
            is_slow=True,
            needs="google.protobuf",
            settings=ROCKSDB,  # the only store that it works with
        ),
        Engine(COUNT, SKEWLESS, "Skewless, sk.Count()", _skewless_count),
        *(
            Engine(
                COUNT,
                f"spark-{store}",
                f"Spark, {title}",
                _spark_count,
                mode="append",
                is_sparks=True,
                settings=settings,
            )
            for store, title, settings in STORES
        ),
        Engine(SELF_JOIN, HASH, "Skewless, sk.Hash", _self_join("Hash")),
        Engine(SELF_JOIN, MIXED, "Skewless, sk.Mixed", _self_join("Mixed")),
    )
}


def chosen(names: list[str] | None) -> list[Engine]:
    """The engines of these names, all of them for None, in the order in which they are run."""
    known = dict.fromkeys(engine.name for engine in ENGINES.values())
    wanted = choice.chosen("engine", names, list(known))
    return [engine for engine in ENGINES.values() if engine.name in wanted]
