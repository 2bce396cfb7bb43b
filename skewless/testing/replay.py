"""Replays given micro-batches through a query on Spark, dying where a fault says so."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from skewless.runtime.query import Query
from skewless.runtime.stream import Stream
from skewless.state.faults import Fault, dump_faults

Batch = tuple[pa.Table, pa.Table]
Build = Callable[[DataFrame, DataFrame], Stream]


class Replay:
    """Micro-batches on disk, one file per side and batch, and a query that reads them.

        replay = Replay(spark, tmp_path, batches)
        rows = replay.run(lambda l, r: sk.join(l, r, on="k", time="ts", within="1 second"),
                          faults=[Fault("after_sink", batch=1)])
        assert_same_rows(rows, join_oracle(batches, ...))

    A fault ends the query at its point; the query is then started again from its checkpoint, as a
    supervisor would. Without a session it only writes the batches: a `Driver` runs them.
    """

    def __init__(
        self, spark: SparkSession | None, folder: Path, batches: Sequence[Batch] = ()
    ) -> None:
        self._spark = spark
        self.folder = folder
        self.out = folder / "out"
        self.checkpoint = folder / "checkpoint"
        self.restarts = 0
        self._written = 0
        for batch in batches:
            self.add(*batch)

    @property
    def spark(self) -> SparkSession:
        assert self._spark is not None, "this Replay has no session: it only writes batches"
        return self._spark

    def add(self, left: pa.Table, right: pa.Table) -> None:
        """One more micro-batch."""
        for side, table in (("left", left), ("right", right)):
            directory = self.folder / side
            directory.mkdir(parents=True, exist_ok=True)
            path = directory / f"{self._written:06d}.parquet"
            pq.write_table(table, path)
            # The file source takes files in the order of their modification times.
            moment = 1_000_000_000 + 10 * self._written
            os.utime(path, (moment, moment))
        self._written += 1

    def inputs(self) -> tuple[DataFrame, DataFrame]:
        """Two streaming DataFrames that give one file of each side per batch."""
        frames = []
        for side in ("left", "right"):
            directory = str(self.folder / side)
            schema = self.spark.read.parquet(f"{directory}/000000.parquet").schema
            reader = self.spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
            frames.append(reader.parquet(directory))
        return frames[0], frames[1]

    def start(
        self,
        build: Build,
        faults: Sequence[Fault] = (),
        *,
        format: str = "parquet",
        function: Callable[[DataFrame, int], None] | None = None,
        outputMode: str = "append",
        **options: Any,
    ) -> Query:
        """Starts the query on what is there; `function` takes the batches in place of files."""
        writer = build(*self.inputs()).writeStream.format(format).outputMode(outputMode)
        if function is not None:
            writer = writer.foreachBatch(function)
        writer = writer.option("checkpointLocation", str(self.checkpoint)).options(**options)
        if faults:
            writer = writer.option("skewless.faults", dump_faults(faults))
        return writer.trigger(availableNow=True).start(str(self.out))

    def run(self, build: Build, faults: Sequence[Fault] = (), **options: Any) -> pa.Table:
        """Runs to the end of the batches, restarting after each fault; gives the sink's rows."""
        for fault in faults:
            try:
                self.start(build, [fault], **options).awaitTermination()
            except StreamingQueryException as death:
                if "SimulatedKill" not in str(death):
                    raise
                self.restarts += 1
        self.start(build, **options).awaitTermination()
        return self.rows()

    def rows(self) -> pa.Table:
        """What a reader of the sink's path sees."""
        return self.spark.read.parquet(str(self.out)).drop("batch").toArrow()
