"""A stream that an operator gives: schema before anything runs, ordinary code on every batch."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from skewless.errors import bad_argument
from skewless.runtime.topology import Node
from skewless.runtime.writer import StreamWriter


@dataclass(frozen=True)
class Stream:
    """The result of an operator, to be written somewhere or to be the input of another one."""

    node: Node
    schema: T.StructType
    session: SparkSession

    @property
    def isStreaming(self) -> bool:  # noqa: N802 - Spark's name
        return True

    @property
    def columns(self) -> list[str]:
        return self.schema.names

    @property
    def dtypes(self) -> list[tuple[str, str]]:
        return [(f.name, f.dataType.simpleString()) for f in self.schema.fields]

    @property
    def sparkSession(self) -> SparkSession:  # noqa: N802 - Spark's name
        return self.session

    @property
    def writeStream(self) -> StreamWriter:  # noqa: N802 - Spark's name
        return StreamWriter(self)

    def printSchema(self) -> None:  # noqa: N802 - Spark's name
        self.session.createDataFrame([], self.schema).printSchema()

    def transform(self, func: Callable[..., DataFrame], *args: Any, **kwargs: Any) -> "Stream":
        """Applies ordinary DataFrame code to the result of every batch."""
        if not callable(func):
            raise bad_argument("transform", func, "a function from DataFrame to DataFrame")

        def apply(frame: DataFrame) -> DataFrame:
            return func(frame, *args, **kwargs)

        result = apply(self.session.createDataFrame([], self.schema))
        if not hasattr(result, "schema"):
            raise bad_argument("transform", result, "a function that returns a DataFrame")
        if getattr(result, "isStreaming", False):
            takes = "a function that makes its result from the batch it is given, not of a stream"
            raise bad_argument("transform", result, takes)
        node = replace(self.node, transforms=(*self.node.transforms, apply))
        return replace(self, node=node, schema=result.schema)

    def __getattr__(self, name: str) -> Any:
        """Only asked for what a stream does not have: says where DataFrame code belongs."""
        hint = ""
        if not name.startswith("_") and hasattr(DataFrame, name):
            hint = f"; use .transform(lambda df: df.{name}(...)), which is applied to every batch"
        raise AttributeError(f"a stream of Skewless has no {name!r}{hint}")

    def cores(self) -> int:
        """How many tasks the session runs at once, as far as it tells."""
        try:
            return self.session.sparkContext.defaultParallelism
        except (PySparkException, AttributeError):  # Spark Connect has no context to ask
            return int(self.session.conf.get("spark.sql.shuffle.partitions") or 1)
