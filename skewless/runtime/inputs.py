"""An input DataFrame of an operator, looked at before anything runs."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import types as T

from skewless.errors import SkewlessError, bad_argument
from skewless.runtime.plans import analysed
from skewless.runtime.topology import Node
from skewless.runtime.types import WATERMARK, arrow_carries


@dataclass(frozen=True)
class Input:
    """The columns of an input, with names resolved as the session resolves them."""

    argument: str
    schema: T.StructType
    case_sensitive: bool
    watermarks: int = 0  # how many withWatermark its plan has

    @property
    def names(self) -> list[str]:
        return self.schema.names

    def fold(self, name: str) -> str:
        """The form in which two names are the same column."""
        return name if self.case_sensitive else name.lower()

    def first_repeated(self, names: Iterable[str]) -> str | None:
        """A name that is there twice, as columns of the session are told apart."""
        counts = Counter(map(self.fold, names))
        return next((name for name, count in counts.items() if count > 1), None)

    def resolve(self, option: str, name: Any) -> str:
        """The column that a name means; an error lists the columns there are."""
        if isinstance(name, str):
            for known in self.names:
                if self.fold(known) == self.fold(name):
                    return known
        if not isinstance(name, str):
            raise bad_argument(option, name, f"a name, one of {', '.join(self.names)}")
        raise SkewlessError(
            f"{option}: the {self.argument} input has no column {name!r}; "
            f"its columns are {', '.join(self.names)}"
        )

    def resolve_all(self, option: str, names: Any) -> tuple[str, ...]:
        """The columns that one name or a list of names means."""
        listed = [names] if isinstance(names, str) else names
        if not isinstance(listed, list | tuple) or not listed:
            raise bad_argument(option, names, "a column name or a list of names")
        return tuple(self.resolve(option, name) for name in listed)

    def field(self, name: str) -> T.StructField:
        return self.schema[name]

    def type_of(self, name: str) -> T.DataType:
        return self.schema[name].dataType

    def watermark_us(self, name: str) -> int | None:
        """The delay of the column's withWatermark, if it has one, from Spark's own metadata.

        A schema that was stored may have such metadata, too; there it means nothing.
        """
        delay_ms = self.schema[name].metadata.get(WATERMARK) if self.watermarks else None
        return None if delay_ms is None else 1_000 * int(delay_ms)

    def watermarked(self) -> str | None:
        """The column on which withWatermark was called, as long as it is there."""
        marked = [f.name for f in self.schema.fields if WATERMARK in f.metadata]
        return marked[0] if marked and self.watermarks else None

    def described(self) -> list[list[str]]:
        """Names and types, for the query's fingerprint."""
        return [[f.name, f.dataType.simpleString()] for f in self.schema.fields]


def is_case_sensitive(session: SparkSession) -> bool:
    """Whether the session tells columns apart by upper and lower case alone."""
    return session.conf.get("spark.sql.caseSensitive", "false") == "true"


def refuse_updates(argument: str, frame: Any) -> None:
    """Refuses a stream whose rows replace earlier ones as the input of an operator with state."""
    # A DataFrame has an attribute for every column, and one may be called `node`.
    node = getattr(frame, "node", None)
    if isinstance(node, Node) and not node.appends:
        raise bad_argument(
            argument,
            "an aggregate whose groups never end",
            "a stream that appends: give the aggregate a window and a watermark, or write it with "
            '.outputMode("update") and read that in a query of its own',
        )


def read_input(argument: str, frame: Any) -> Input:
    """Checks that an argument is a streaming DataFrame whose columns can be carried."""
    if not hasattr(frame, "isStreaming") or not hasattr(frame, "sparkSession"):
        raise bad_argument(argument, type(frame).__name__, "a streaming DataFrame")
    if not frame.isStreaming:
        raise bad_argument(
            argument, "a static DataFrame", "a streaming DataFrame (spark.readStream)"
        )
    return _read(argument, frame)


def read_table(argument: str, frame: Any) -> Input:
    """Checks that an argument is a DataFrame that does not stream, with columns to be carried."""
    if not hasattr(frame, "isStreaming") or not hasattr(frame, "sparkSession"):
        raise bad_argument(argument, type(frame).__name__, "a DataFrame, streaming or not")
    return _read(argument, frame)


def _read(argument: str, frame: Any) -> Input:
    found = Input(argument, frame.schema, is_case_sensitive(frame.sparkSession), _watermarks(frame))
    repeated = found.first_repeated(found.names)
    if repeated is not None:
        raise SkewlessError(
            f"{argument}: column {repeated!r} occurs more than once; rename or drop one"
        )
    for field in frame.schema.fields:
        if not arrow_carries(field.dataType):
            raise SkewlessError(
                f"{argument}: column {field.name!r} is {field.dataType.simpleString()}, which "
                "Arrow does not carry; cast or drop it before the operator"
            )
    return found


def _watermarks(frame: Any) -> int:
    """How many withWatermark the plan of an input has; it is asked for only if some column says so.

    One where the plan is not shown: then the columns are believed.
    """
    if not any(WATERMARK in field.metadata for field in frame.schema.fields):
        return 0
    plan = analysed(frame)
    return sum("EventTimeWatermark " in line for line in plan) if plan else 1
