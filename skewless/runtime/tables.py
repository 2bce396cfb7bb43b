"""Results that go to a table of the catalog: found or created, and appended to batch by batch."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from skewless.errors import SkewlessError, bad_argument
from skewless.runtime.dispatch import quoted
from skewless.runtime.inputs import is_case_sensitive
from skewless.runtime.refusals import refuse_unknown_format
from skewless.runtime.sinks import FILE_FORMATS, TEMPORARY_CHECKPOINT
from skewless.state.identity import identify
from skewless.state.storage import Storage

_DEFAULT_SOURCE = "spark.sql.sources.default"
_DELTA = "delta"


@dataclass(frozen=True)
class TableSink:
    """Appends every batch to a table.

    Delta is told the query and the batch, and leaves out a batch that it has. Other formats know no
    such thing: a replayed batch is appended again.
    """

    name: str
    source: str  # the format of the table
    columns: tuple[str, ...]  # of the result, in the order of the table
    schema: T.StructType
    options: dict[str, str]
    partition_by: tuple[str, ...] = ()
    path: str | None = None
    exists: bool = True
    writer: str = ""
    # The user's session, of which that of a query is a copy: each lists the files of a table once,
    # and reads what it has listed. Connect's cannot travel with the sink.
    reader: SparkSession | None = None

    @property
    def plan_is_ours(self) -> bool:
        # Other tables may want their rows in another order or number of tasks.
        return self.source in FILE_FORMATS

    def opened(self, session: SparkSession, storage: Storage) -> "TableSink":
        """The sink of a query that is about to start: its table is there, and knows the query."""
        if not self.exists:
            self._create(session)
        reader = session if isinstance(session, SparkSession) else None
        return replace(self, exists=True, writer=f"skewless-{identify(storage)}", reader=reader)

    def write(self, result: DataFrame, batch: int) -> None:
        if self.source == _DELTA:
            # As Delta documents it for foreachBatch: a transaction that it has seen is skipped.
            seen = {"txnAppId": self.writer, "txnVersion": str(batch)}
            writer = result.write.format(_DELTA).mode("append").options(**self.options, **seen)
            writer.saveAsTable(self.name)
            return
        # By position, whatever the table is partitioned and bucketed by.
        ordered = result.select(*(quoted(column) for column in self.columns))
        ordered.write.options(**self.options).insertInto(self.name)
        if self.reader is not None and self.source in FILE_FORMATS:
            self.reader.catalog.refreshTable(self.name)

    def _create(self, session: SparkSession) -> None:
        writer = session.createDataFrame([], self.schema).write.format(self.source)
        writer = writer.mode("ignore").options(**self.options)
        if self.path is not None:
            writer = writer.option("path", self.path)
        if self.partition_by:
            writer = writer.partitionBy(*self.partition_by)
        writer.saveAsTable(self.name)


def table_sink(
    name: str,
    session: SparkSession,
    schema: T.StructType,
    *,
    source: str | None,
    path: str | None,
    partition_by: Sequence[str],
    options: dict[str, str],
) -> TableSink:
    """Looks the table up and refuses what could not be appended; nothing is created yet."""
    if not isinstance(name, str) or not name.strip():
        raise bad_argument("tableName", name, "the name of a table, such as 'sales.matches'")
    if source is not None and source.lower() in TEMPORARY_CHECKPOINT:
        raise bad_argument("format", source, "the format of a table, such as 'parquet' or 'delta'")
    fold: Callable[[str], str] = str if is_case_sensitive(session) else str.lower
    if not session.catalog.tableExists(name):
        chosen = source or session.conf.get(_DEFAULT_SOURCE, None) or "parquet"
        refuse_unknown_format(chosen, session)
        # The catalog puts the columns of partitions last.
        rest = [column for column in schema.names if column not in partition_by]
        columns = (*rest, *partition_by)
        return TableSink(
            name, chosen.lower(), columns, schema, options, tuple(partition_by), path, exists=False
        )
    found = _source_of(name, session)
    if source is not None and found != source.lower():
        raise bad_argument("format", source, f"{found!r}, the format of the table {name}, or none")
    table = session.table(name).schema
    columns = _ordered(name, table.names, schema.names, fold)
    for wanted, column in zip(table.fields, columns, strict=True):
        given = schema[column].dataType
        if not _takes(wanted.dataType, given):
            raise SkewlessError(
                f"tableName: the column {wanted.name!r} of the table {name} is "
                f"{wanted.dataType.simpleString()}, and that of the result is "
                f"{given.simpleString()}; cast it with .withColumn(...)"
            )
    return TableSink(name, found, columns, schema, options)


def _takes(wanted: T.DataType, given: T.DataType) -> bool:
    """Whether Spark stores values of one type in a column of another, as far as types tell."""
    if isinstance(wanted, T.StringType) or isinstance(given, T.NullType):
        return True
    nested = (T.StructType, T.ArrayType, T.MapType)
    if isinstance(wanted, nested) or isinstance(given, nested):
        return type(wanted) is type(given)
    for kinds in ((T.NumericType,), (T.DateType, T.TimestampType, T.TimestampNTZType)):
        if isinstance(wanted, kinds) and isinstance(given, kinds):
            return True
    return type(wanted) is type(given)


def _ordered(
    name: str, wanted: Sequence[str], given: Sequence[str], fold: Callable[[str], str]
) -> tuple[str, ...]:
    """The columns of the result in the order of the table."""
    known = {fold(column): column for column in given}
    missing = [column for column in wanted if fold(column) not in known]
    unknown = [column for column in given if fold(column) not in set(map(fold, wanted))]
    if missing or unknown:
        told = [f"lacks {missing}"] * bool(missing) + [f"has {unknown} besides"] * bool(unknown)
        raise SkewlessError(
            f"tableName: the table {name} has the columns {list(wanted)}, and the result "
            f"{' and '.join(told)}; name them alike with .select(...), or choose another table"
        )
    return tuple(known[fold(column)] for column in wanted)


def _source_of(name: str, session: SparkSession) -> str:
    """The format of a table that exists."""
    if session.catalog.getTable(name).tableType in ("VIEW", "TEMPORARY"):
        raise bad_argument("tableName", name, "the name of a table: this one is of a view")
    told = session.sql(f"DESCRIBE TABLE EXTENDED {name}").collect()
    # Columns come first, and one of them may have this name, too.
    found = [row["data_type"] for row in told if row["col_name"] == "Provider"]
    return found[-1].lower() if found else ""
