"""Where the result of a batch goes, and what happens when a batch is replayed."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import reduce
from typing import Protocol, runtime_checkable

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from skewless.runtime.failures import in_users_code

# Formats that write files below a path: a batch is a folder, replaced as a whole on replay.
FILE_FORMATS = frozenset({"parquet", "json", "csv", "orc", "text", "avro", "xml"})
BATCH_COLUMN = "batch"
NOOP = "noop"
TEMPORARY_CHECKPOINT = frozenset({"console", "memory", "noop", "foreachbatch"})


class Sink(Protocol):
    """Consumes the result of a batch."""

    @property
    def plan_is_ours(self) -> bool:
        """Whether the job that consumes the result is exactly the one that we built."""
        ...

    def write(self, result: DataFrame, batch: int) -> None: ...


@runtime_checkable
class InParts(Protocol):
    """A sink that may be given a batch in two parts, each as soon as it is known."""

    def write(self, result: DataFrame, batch: int) -> None: ...
    def write_rest(self, result: DataFrame, batch: int) -> None:
        """Adds rows to a batch of which some were written; a replay begins with `write`."""
        ...


@dataclass(frozen=True)
class FileSink:
    """A folder `batch=<id>` per batch below the path, overwritten when the batch is replayed."""

    format: str
    path: str
    options: dict[str, str]
    partition_by: tuple[str, ...] = ()
    plan_is_ours: bool = True

    def write(self, result: DataFrame, batch: int) -> None:
        self._save(result, batch, "overwrite")

    def write_rest(self, result: DataFrame, batch: int) -> None:
        self._save(result, batch, "append")

    def _save(self, result: DataFrame, batch: int, mode: str) -> None:
        writer = result.write.format(self.format).mode(mode).options(**self.options)
        # A session may say "dynamic", which would leave partitions that a replay writes no more.
        writer = writer.option("partitionOverwriteMode", "static")
        if self.partition_by:
            writer = writer.partitionBy(*self.partition_by)
        writer.save(f"{self.path.rstrip('/')}/{BATCH_COLUMN}={batch}")


@dataclass(frozen=True)
class FormatSink:
    """Any other batch format of Spark, in append mode: what a replay does is up to the format.

    A batch is written at once, so that no reader sees half of it.
    """

    format: str
    path: str | None
    options: dict[str, str]
    partition_by: tuple[str, ...] = ()
    # Some formats coalesce what they write (JDBC does), and any connector may.
    plan_is_ours: bool = False

    def write(self, result: DataFrame, batch: int) -> None:
        writer = result.write.format(self.format).mode("append").options(**self.options)
        if self.partition_by:
            writer = writer.partitionBy(*self.partition_by)
        writer.save(self.path)


@dataclass(frozen=True)
class NoSink:
    """Takes everything and keeps nothing: Spark's noop."""

    plan_is_ours: bool = True

    def write(self, result: DataFrame, batch: int) -> None:
        result.write.format(NOOP).mode("overwrite").save()

    def write_rest(self, result: DataFrame, batch: int) -> None:
        self.write(result, batch)


@dataclass(frozen=True)
class FunctionSink:
    """The user's foreachBatch function."""

    function: Callable[[DataFrame, int], None]
    plan_is_ours: bool = False

    def write(self, result: DataFrame, batch: int) -> None:
        with in_users_code("the function of foreachBatch", batch):
            self.function(result, batch)


@dataclass(frozen=True)
class ConsoleSink:
    """Prints the first rows of every batch."""

    rows: int = 20
    truncate: bool = True
    plan_is_ours: bool = False  # `show` reads only as many rows as it prints

    def write(self, result: DataFrame, batch: int) -> None:
        line = "-" * 43
        print(f"{line}\nBatch: {batch}\n{line}")  # noqa: T201 - a console is for printing
        result.show(self.rows, self.truncate)


@dataclass
class MemorySink:
    """Keeps every batch on the driver as a temporary view, for trying things out.

    The view is a union of parts, each at least twice as large as the next. n batches are about
    log n parts that way, and a row is handed to Spark about log n times.
    """

    name: str
    session: SparkSession
    schema: T.StructType
    plan_is_ours: bool = True
    _parts: list["_Part"] = field(default_factory=list)
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def write(self, result: DataFrame, batch: int) -> None:
        rows = result.toArrow()
        with self._lock:
            if rows.num_rows:
                while self._parts and self._parts[-1].rows.num_rows < 2 * rows.num_rows:
                    both = (self._parts.pop().rows, rows)
                    rows = pa.concat_tables(both, promote_options="permissive")
                self._parts.append(_Part(rows, self.session.createDataFrame(rows, self.schema)))
            self.publish()

    def write_rest(self, result: DataFrame, batch: int) -> None:
        self.write(result, batch)

    def publish(self) -> None:
        """Makes what was received so far readable under the query's name.

        Also called when the query has started, while its first batch may be under way.
        """
        with self._lock:
            frames = [part.frame for part in self._parts]
            nothing = [self.session.createDataFrame([], self.schema)]
            view = reduce(DataFrame.union, frames or nothing)
            view.createOrReplaceTempView(self.name)


@dataclass(frozen=True)
class _Part:
    """Rows of the memory sink, here and as Spark has them."""

    rows: pa.Table
    frame: DataFrame
