"""Brings the rows of a stream and of a table into the columns of a lookup, and stores the table."""

from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from skewless.engine.columns import HASH, LEFT_CODE, POSTINGS, TIME, key_name, slot_name
from skewless.engine.loading import BAD_ROWS, SEGMENT, Loaded
from skewless.errors import SkewlessError
from skewless.routing.partitions import PartitionTable
from skewless.runtime import routing
from skewless.runtime.dispatch import RowIndex, SideColumns, Task, Worker, compared, quoted
from skewless.runtime.types import is_hashable

_TOLD = T.StructType(
    [T.StructField(SEGMENT, T.StringType()), T.StructField(BAD_ROWS, T.LongType())]
)


@dataclass(frozen=True)
class LookupRows:
    """The rows of one side: hash, time, keys, and what is shown of the rest.

    A row of the stream goes to one instance. Where rows are joined by distance, it is that of its
    cell; where they are joined by sets, any will do: every instance reads the whole table.
    """

    columns: SideColumns
    with_hash: bool
    index: RowIndex | None = None
    by_cell: bool = False
    is_table: bool = False

    def __call__(self, frame: DataFrame) -> DataFrame:
        if self.columns.added is not None:
            frame = self.columns.added.to(frame)
        rows = frame.select(*self._columns(frame))
        if self.is_table:
            # Rows without a key match nothing, and rows of the table are given with a match only.
            for i in range(len(self.columns.keys)):
                rows = rows.where(F.col(key_name(i)).isNotNull())
        if self.index is None:
            return rows
        told = self.index.added(rows, self.columns.code)
        others = [c for c in told.columns if c not in (HASH, POSTINGS)]
        is_needle = self.by_cell and self.columns.code == LEFT_CODE
        hashed = f"coalesce(get({POSTINGS}, 0), {HASH})" if is_needle else HASH
        return told.selectExpr(*others, f"{hashed} AS {HASH}")

    def _columns(self, frame: DataFrame) -> list[Column]:
        side = self.columns
        keys = [compared(key) for key in side.keys]
        found = []
        if self.with_hash:
            any_null = keys[0].isNull()
            for key in keys[1:]:
                any_null = any_null | key.isNull()
            # Null keys match nothing; hashed by all that they have they burden no single instance.
            fields = [f.name for f in frame.schema.fields if is_hashable(f.dataType)]
            row = F.xxhash64(*(quoted(name) for name in fields))
            found.append(F.when(any_null, row).otherwise(F.xxhash64(*keys)).alias(HASH))
        if side.time is not None:
            found.append(quoted(side.time).alias(TIME))
        found += [key.alias(key_name(i)) for i, key in enumerate(keys)]
        slots = sorted(side.slots.items())
        return [*found, *(quoted(name).alias(slot_name(slot)) for slot, name in slots)]


TableFunction = Callable[[SparkSession], DataFrame]


@dataclass(frozen=True)
class FixedTable:
    """A DataFrame: whenever it is read, Spark runs the plan that it has."""

    frame: DataFrame
    rows: LookupRows

    def read(self, session: SparkSession) -> DataFrame:
        return self.rows(self.frame)


@dataclass(frozen=True)
class TableOfFunction:
    """A function that gives a DataFrame, a new one for every read."""

    function: TableFunction
    schema: T.StructType  # which every DataFrame must have
    rows: LookupRows
    # The user's session, of which that of a query is a copy. Connect's cannot travel with a query.
    session: SparkSession | None = None

    def read(self, session: SparkSession) -> DataFrame:
        frame = self.function(self.session or session)
        # Whether a column may be null is nothing that anybody relies on.
        if _described(frame.schema) != _described(self.schema):
            raise SkewlessError(
                f"the function of a table gave the columns {frame.schema.simpleString()}; when the "
                f"query was made they were {self.schema.simpleString()}: start a new query for the "
                "changed table"
            )
        return self.rows(frame)


def load_table(rows: DataFrame, task: Task, table: PartitionTable) -> Loaded:
    """Stores a copy of a table, the rows of an instance's partitions in segments of their own."""
    owner = F.expr(routing.owners(rows, table))
    stored = rows.repartitionById(table.instances, owner).mapInArrow(Worker(task, None), _TOLD)
    return Loaded.of(row.asDict() for row in stored.collect())


def _described(schema: T.StructType) -> list[tuple[str, str]]:
    return [(f.name, f.dataType.simpleString()) for f in schema.fields]


def user_session(session: SparkSession) -> SparkSession | None:
    """The session of the user where it can travel with a query."""
    return session if isinstance(session, SparkSession) else None
