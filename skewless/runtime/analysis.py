"""Asks Spark's analyser about expressions over the columns of two inputs; no job runs."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.logger import PySparkLogger
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from skewless.runtime.plans import analysed
from skewless.runtime.types import arrow_type

_PROBE = "skewless_probe"


class NotAnalysedError(Exception):
    """Spark does not take an expression; the text is its reason, in one line."""

    def __init__(self, failure: PySparkException) -> None:
        self.condition = failure.getCondition() or ""
        self.parameters = failure.getMessageParameters() or {}
        reason = str(failure).strip().splitlines()[0]
        super().__init__(re.sub(r"\s*SQLSTATE: \w+.*", "", reason))


@dataclass(frozen=True)
class Scope:
    """The names by which an expression reaches the columns of one side.

    `left.x` is a field of a struct that has all columns, plain names are columns. Spark's optimiser
    leaves nothing of the struct.
    """

    side: str
    plain: tuple[str, ...]

    def of(self, frame: DataFrame) -> DataFrame:
        plain = [F.col("`" + name.replace("`", "``") + "`") for name in self.plain]
        return frame.select(F.struct("*").alias(self.side), *plain)


@dataclass(frozen=True)
class AddedColumns:
    """Columns that are computed from those of one side, before anything else is done with it."""

    scope: Scope
    columns: tuple[tuple[str, str], ...]  # name, SQL

    def to(self, frame: DataFrame) -> DataFrame:
        added = [F.expr(sql).alias(name) for name, sql in self.columns]
        return self.scope.of(frame).select(f"{self.scope.side}.*", *added)


@dataclass(frozen=True)
class Analyser:
    """Two inputs as an expression over both of them sees them."""

    session: SparkSession
    schemas: tuple[T.StructType, T.StructType]
    scopes: tuple[Scope, Scope]
    shared: tuple[str, ...]  # plain names that either side has, with one type: equal in every pair
    # Asking takes some milliseconds, and the same is asked again and again.
    _kinds: dict[tuple[str | None, str], T.DataType] = field(default_factory=dict, repr=False)

    @property
    def is_ansi(self) -> bool:
        return (self.session.conf.get("spark.sql.ansi.enabled") or "true").lower() == "true"

    def kind(self, side: str | None, text: str) -> T.DataType:
        """The type of an expression over a side, or over no column."""
        if (side, text) not in self._kinds:
            with _refusing():
                found = self._frame(side).selectExpr(text).schema[0].dataType
            self._kinds[side, text] = found
        return self._kinds[side, text]

    def reads(self, side: str | None, text: str) -> bool:
        """Whether an expression needs no more than the columns of a side."""
        try:
            self.kind(side, text)
        except NotAnalysedError:
            return False
        return True

    def checked(self, text: str) -> str:
        """Spark's own name of an expression that it takes as the condition of a join."""
        left, right = self._both
        with _refusing():
            _ = left.join(right, F.expr(text)).schema
            return str(left.crossJoin(right).selectExpr(text).columns[0])

    def named(self, text: str) -> str:
        """Spark's own name of an expression over both sides, which shows how it was read."""
        left, right = self._both
        with _refusing():
            return str(left.crossJoin(right).selectExpr(text).columns[0])

    def coerced(
        self, text: str, kinds: Mapping[str, T.DataType]
    ) -> tuple[T.DataType, dict[str, tuple[str, ...]]] | None:
        """The type of an expression over columns of these types, and how Spark casts each of them.

        It may ask for a boolean column `b`, too. None where Spark does not show the casts.
        """
        with _refusing():
            frame = _empty(self.session, {**kinds, "b": T.BooleanType()}).selectExpr(
                f"{text} AS {_PROBE}"
            )
            kind = frame.schema[0].dataType
            lines = [line for line in analysed(frame) if f" AS {_PROBE}#" in line]
        found = {name: casts_of(name, lines[0]) for name in kinds} if lines else {}
        if not lines or None in found.values():
            return None
        return kind, {name: casts for name, casts in found.items() if casts is not None}

    def constant(self, text: str, kind: T.DataType) -> pa.Scalar:
        """The value of an expression without columns.

        Spark's optimiser evaluates it over the rows of VALUES, so no job runs; without a FROM one
        would.
        """
        arrow = arrow_type(kind)
        is_moment = isinstance(kind, T.TimestampType)
        with _refusing():
            value = f"unix_micros({text})" if is_moment else text
            (row,) = self.session.sql(f"SELECT {value} AS {_PROBE} FROM VALUES (1)").collect()
        return pa.scalar(row[0], pa.int64()).cast(arrow) if is_moment else pa.scalar(row[0], arrow)

    def _frame(self, side: str | None) -> DataFrame:
        if side is None:
            return self.session.range(0).select()
        return self._frames[side]

    @cached_property
    def _frames(self) -> dict[str, DataFrame]:
        return {
            scope.side: scope.of(_empty(self.session, _types(schema)))
            for scope, schema in zip(self.scopes, self.schemas, strict=True)
        }

    @cached_property
    def _both(self) -> tuple[DataFrame, DataFrame]:
        left, right = self._frame(self.scopes[0].side), self._frame(self.scopes[1].side)
        shared = ["`" + name.replace("`", "``") + "`" for name in self.shared]
        return left, right.drop(*(F.col(name) for name in shared))


def _types(schema: T.StructType) -> dict[str, T.DataType]:
    return {field.name: field.dataType for field in schema.fields}


def _empty(session: SparkSession, kinds: Mapping[str, T.DataType]) -> DataFrame:
    columns = [F.lit(None).cast(kind).alias(name) for name, kind in kinds.items()]
    return session.range(0).select(*columns)


def casts_of(name: str, line: str) -> tuple[str, ...] | None:
    """The types that a column is cast to in a line of a plan, first to last; None: it is not there.

    >>> casts_of("c1", "Project [(c0#1 < cast(cast(c1#2L as decimal(20,0)) as decimal(22,2))) AS x")
    ('decimal(20,0)', 'decimal(22,2)')
    """
    found = re.search(rf"\b{name}#\d+L?", line)
    if found is None:
        return None
    begin, end = found.span()
    casts: list[str] = []
    while line[:begin].endswith("cast(") and line[end:].startswith(" as "):
        depth, stop = 1, end + 4
        while depth:
            depth += {"(": 1, ")": -1}.get(line[stop], 0)
            stop += 1
        casts.append(line[end + 4 : stop - 1])
        begin, end = begin - len("cast("), stop
    return tuple(casts)


@contextmanager
def _refusing() -> Iterator[None]:
    """What Spark refuses is told by us: its log would show a page of Java for it."""
    # By Spark's own class: a plain logger of this name would be used by Spark, too, and fail there.
    logger = PySparkLogger.getLogger("SQLQueryContextLogger")
    before, logger.disabled = logger.disabled, True
    try:
        yield
    except PySparkException as failure:
        raise NotAnalysedError(failure) from None
    finally:
        logger.disabled = before
