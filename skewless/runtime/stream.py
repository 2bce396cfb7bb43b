"""A stream that an operator gives: schema before anything runs, ordinary code on every batch."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol, TypedDict

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import types as T

from skewless.engine.names import operator_name
from skewless.errors import PerBatchWarning, bad_argument
from skewless.planning.policy import Policy
from skewless.runtime.advice import no_such_member
from skewless.runtime.perbatch import across_rows, sample
from skewless.runtime.session import parallelism
from skewless.runtime.topology import Node, Source, Table, Transform, only
from skewless.runtime.writer import StreamWriter


@dataclass(frozen=True, repr=False)
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

    def __repr__(self) -> str:
        columns = ", ".join(f"{name}: {kind}" for name, kind in self.dtypes)
        operator = self.node.operator
        policy: Policy | None = getattr(operator, "policy", None)
        instances = None if policy is None else policy.describe().get("instances")
        told = f" on {_shown(instances)} instances" if instances else ""
        return f"Stream[{columns}] of {operator_name(operator.fingerprint)}{told}"

    def transform(self, func: Callable[..., DataFrame], *args: Any, **kwargs: Any) -> "Stream":
        """Applies ordinary DataFrame code to the result of every batch.

        Each batch is by itself: a warning says so where rows are grouped, sorted or limited.
        """
        if not callable(func):
            raise bad_argument("transform", func, "a function from DataFrame to DataFrame")
        return self._applied("transform", lambda frame: func(frame, *args, **kwargs))

    def select(self, *cols: Any) -> "Stream":
        """As `DataFrame.select`, on the result of every batch; so are the members below."""
        return self._applied("select", lambda frame: frame.select(*cols))

    def selectExpr(self, *expr: Any) -> "Stream":  # noqa: N802 - Spark's name
        return self._applied("selectExpr", lambda frame: frame.selectExpr(*expr))

    def filter(self, condition: Column | str) -> "Stream":
        return self._applied("", lambda frame: frame.filter(condition))

    def where(self, condition: Column | str) -> "Stream":
        return self._applied("", lambda frame: frame.where(condition))

    def withColumn(self, colName: str, col: Column) -> "Stream":  # noqa: N802 - Spark's names
        return self._applied("withColumn", lambda frame: frame.withColumn(colName, col))

    def withColumns(self, *colsMap: dict[str, Column]) -> "Stream":  # noqa: N802 - Spark's names
        return self._applied("withColumns", lambda frame: frame.withColumns(*colsMap))

    def withColumnRenamed(self, existing: str, new: str) -> "Stream":  # noqa: N802 - Spark's name
        return self._applied("", lambda frame: frame.withColumnRenamed(existing, new))

    def withColumnsRenamed(self, colsMap: dict[str, str]) -> "Stream":  # noqa: N802 - Spark's names
        return self._applied("", lambda frame: frame.withColumnsRenamed(colsMap))

    def drop(self, *cols: Any) -> "Stream":
        return self._applied("", lambda frame: frame.drop(*cols))

    def _applied(self, told: str, apply: Transform) -> "Stream":
        """The stream with more code on its result; `told`: how a warning names that code."""
        batch, name = sample(self.session, self.schema)
        result = apply(batch)
        if not hasattr(result, "schema"):
            raise bad_argument("transform", result, "a function that returns a DataFrame")
        if getattr(result, "isStreaming", False):
            takes = "a function that makes its result from the batch it is given, not of a stream"
            raise bad_argument("transform", result, takes)
        what = across_rows(result, name) if told else None
        if what is not None:
            warnings.warn(
                f"{told}: {what} within each batch only, not over the stream; for results over "
                "the stream put sk.keyed behind the operator",
                PerBatchWarning,
                stacklevel=3,
            )
        node = replace(self.node, transforms=(*self.node.transforms, apply))
        return replace(self, node=node, schema=result.schema)

    if not TYPE_CHECKING:  # a type checker reports what a stream does not have

        def __getattr__(self, name: str) -> Any:
            """Only asked for what a stream does not have: says what to use instead."""
            # Not `self.columns`: copies are made by asking a stream that has no attributes yet.
            schema = self.__dict__.get("schema")
            raise no_such_member(name, [] if schema is None else schema.names)

    def __getitem__(self, item: Any) -> Any:
        raise no_such_member(str(item), self.columns)

    def cores(self) -> int:
        """How many tasks the session runs at once, as far as it tells."""
        return parallelism(self.session)


def _shown(instances: int | list[int]) -> str:
    return " to ".join(map(str, instances)) if isinstance(instances, list) else str(instances)


class Feed(TypedDict):
    """How rows come to a node: what `Node` takes as `children` and `rows`."""

    children: tuple[Source | Node | Table, ...]
    rows: Callable[..., DataFrame]


def fed_by(*given: DataFrame | Stream, rows: Callable[..., DataFrame]) -> Feed:
    """The children of a node, of which each is a DataFrame or the result of another operator.

    DataFrames become one stream of the operator's rows from the start. Where an operator feeds the
    node, its rows are there in every batch only: they are brought into form then.
    """
    if any(isinstance(one, Stream) for one in given):
        nodes = tuple(one.node if isinstance(one, Stream) else Source(one) for one in given)
        return {"children": nodes, "rows": rows}
    return {"children": (Source(rows(*given)),), "rows": only}


def fed_with_table(given: DataFrame | Stream, table: DataFrame, rows: "RowsWithTable") -> Feed:
    """The children of a node that reads a stream and, in its first batch, a table."""
    if isinstance(given, Stream):
        return {"children": (given.node, Table(table)), "rows": _Unformed(rows)}
    return {"children": (Source(rows.points(given)), Table(table)), "rows": _Formed(rows)}


class RowsWithTable(Protocol):
    """Brings a stream and a table into one frame of an operator's columns."""

    def points(self, frame: DataFrame) -> DataFrame: ...
    def joined(self, points: DataFrame, queries: DataFrame) -> DataFrame: ...


@dataclass(frozen=True)
class _Formed:
    """The rows of a stream are in form from the start; a table comes in one batch only."""

    rows: RowsWithTable

    def __call__(self, stream: DataFrame, table: DataFrame | None) -> DataFrame:
        return stream if table is None else self.rows.joined(stream, table)


@dataclass(frozen=True)
class _Unformed:
    """The same behind an operator, whose rows are there in every batch only."""

    rows: RowsWithTable

    def __call__(self, stream: DataFrame, table: DataFrame | None) -> DataFrame:
        return _Formed(self.rows)(self.rows.points(stream), table)


def timing_of(given: DataFrame | Stream) -> Node | None:
    """The operator whose watermark an input inherits; None: its rows tell how far time has come."""
    return given.node.timing if isinstance(given, Stream) else None
