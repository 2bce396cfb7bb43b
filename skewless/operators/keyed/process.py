"""What a keyed operator does with the rows of a key: count, aggregate, self-join, a function."""

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from skewless.durations import Duration, parse_duration_us
from skewless.errors import SkewlessError, bad_argument
from skewless.kernels.aggregates import FUNCTIONS, Aggregate, aggregate_of, result_type

UserFunction = Callable[[pa.Table, pa.Table | None], tuple[pa.Table | None, pa.Table | None]]
_ALIASES = {"avg": "mean", "average": "mean"}
_SHOWN = {"mean": "avg"}
_ALL = "*"


@dataclass(frozen=True)
class Measure:
    """One aggregate column: its name, the function, and the input column (None: all rows)."""

    name: str
    function: str
    column: str | None

    def aggregate(self, schema: pa.Schema) -> Aggregate:
        return aggregate_of(self.function, self._kind(schema))

    def result_type(self, schema: pa.Schema) -> pa.DataType:
        return result_type(self.function, self._kind(schema))

    def _kind(self, schema: pa.Schema) -> pa.DataType | None:
        if self.column is None:
            return None
        if self.column not in schema.names:
            raise bad_argument("process", self.column, f"one of {schema.names}")
        return schema.field(self.column).type


@dataclass(frozen=True)
class Count:
    """How many rows a group has, in a column `count`."""

    @property
    def measures(self) -> tuple[Measure, ...]:
        return (Measure("count", "count", None),)

    def describe(self) -> dict[str, Any]:
        return {"process": "count"}


class Agg:
    """Aggregates of a group: `{"total": ("sum", "amount")}`, or as in Spark `{"amount": "sum"}`.

    >>> Agg({"amount": "avg", "rows": ("count", "*")}).measures
    (Measure(name='avg(amount)', function='mean', column='amount'), \
Measure(name='rows', function='count', column=None))
    """

    def __init__(self, aggregates: Mapping[str, str | tuple[str, str]]) -> None:
        if not isinstance(aggregates, Mapping) or not aggregates:
            raise bad_argument(
                "process", aggregates, 'aggregates such as Agg({"total": ("sum", "amount")})'
            )
        self.measures = tuple(_measure(name, value) for name, value in aggregates.items())
        names = [m.name for m in self.measures]
        if len(set(names)) < len(names):
            raise bad_argument("process", names, "each output name once")

    def on(self, columns: Mapping[str, str]) -> "Agg":
        """The same aggregates of the columns that these names mean."""
        renamed = copy.copy(self)
        renamed.measures = tuple(
            replace(m, column=None if m.column is None else columns[m.column])
            for m in self.measures
        )
        return renamed

    def describe(self) -> dict[str, Any]:
        return {
            "process": "aggregate",
            "measures": [[m.name, m.function, m.column] for m in self.measures],
        }

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Agg) and other.measures == self.measures

    def __hash__(self) -> int:
        return hash(self.measures)

    def __repr__(self) -> str:
        return f"Agg({ {m.name: (m.function, m.column or _ALL) for m in self.measures} })"


@dataclass(frozen=True)
class SelfJoin:
    """Pairs of two rows of a key that are at most `within` apart, the earlier one on the left.

    >>> SelfJoin(within="10 seconds").within_us
    10000000
    """

    within: Duration
    suffix: str = "_right"

    def __post_init__(self) -> None:
        if self.within_us < 0:
            raise bad_argument("within", self.within, "a duration of at least 0")
        if not isinstance(self.suffix, str) or not self.suffix:
            raise bad_argument("suffix", self.suffix, "a text that is not empty")

    @property
    def within_us(self) -> int:
        return parse_duration_us("within", self.within)

    def describe(self) -> dict[str, Any]:
        return {"process": "selfJoin", "withinUs": self.within_us, "suffix": self.suffix}


@dataclass(frozen=True)
class Function:
    """A user function on Arrow tables, and the schemas of what it gives and keeps."""

    call: UserFunction
    schema: pa.Schema
    state_schema: pa.Schema | None = None

    def __post_init__(self) -> None:
        if not callable(self.call):
            raise bad_argument("process", self.call, "a function fn(batch, state)")

    @property
    def name(self) -> str:
        return getattr(self.call, "__qualname__", None) or type(self.call).__qualname__

    def describe(self) -> dict[str, Any]:
        state = self.state_schema
        return {
            "process": "function",
            "stateSchema": None if state is None else [[f.name, str(f.type)] for f in state],
        }


Aggregation = Count | Agg
Process = Count | Agg | SelfJoin | Function


def infer_schemas(
    call: UserFunction, input_schema: pa.Schema
) -> tuple[pa.Schema, pa.Schema | None]:
    """What a function gives and keeps, found by calling it on an empty batch without state.

    `input_schema` is that of the batch: the input's columns, then `window` where there is one.
    """
    try:
        result = call(input_schema.empty_table(), None)
    except Exception as failure:
        raise SkewlessError(
            f"process: cannot tell what the function gives: called with an empty batch and no "
            f"state it raised {type(failure).__name__}: {failure}; give schema= and state_schema="
        ) from failure
    if not isinstance(result, tuple) or len(result) != 2:
        raise SkewlessError(
            "process: the function must return (out, state), a table and a table or None; called "
            f"with an empty batch it returned {type(result).__name__}"
        )
    out, state = result
    if not isinstance(out, pa.Table):
        raise SkewlessError(
            "process: cannot tell what the function gives: called with an empty batch it returned "
            f"{type(out).__name__} instead of a table; give schema="
        )
    if state is not None and not isinstance(state, pa.Table):
        raise SkewlessError(
            "process: cannot tell what the function keeps: called with an empty batch it returned "
            f"a state of type {type(state).__name__} instead of a table or None"
        )
    for argument, table in (("schema", out), ("state_schema", state)):
        untyped = (
            [] if table is None else [f.name for f in table.schema if pa.types.is_null(f.type)]
        )
        if untyped:
            raise SkewlessError(
                f"process: column {untyped[0]!r} has no type where the batch is empty; give "
                f"{argument}=, or make the column with its type, as pa.array(values, pa.int64())"
            )
    return out.schema, None if state is None else state.schema


def _measure(name: Any, value: Any) -> Measure:
    if not isinstance(name, str) or not name:
        raise bad_argument("process", {name: value}, "names that are text and not empty")
    if isinstance(value, str):
        function = _function(value)
        column = None if name == _ALL else name
        shown = "1" if column is None else name
        return Measure(f"{_SHOWN.get(function, function)}({shown})", function, column)
    pair = isinstance(value, tuple | list) and len(value) == 2
    if not pair or not all(isinstance(part, str) for part in value):
        raise bad_argument("process", {name: value}, '("sum", "column") or "sum"')
    return Measure(name, _function(value[0]), None if value[1] == _ALL else value[1])


def _function(name: str) -> str:
    function = _ALIASES.get(name.lower(), name.lower())
    if function not in FUNCTIONS:
        raise bad_argument("process", name, f"one of {', '.join(FUNCTIONS)}")
    return function
