"""Brings what a user's function gives into the declared schema, or names the column at fault."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from skewless.operators.map.strict import (
    OutputError,
    check_loss,
    check_nulls,
    check_types,
    check_values,
)

_ARROW_ERRORS = (
    pa.ArrowInvalid,
    pa.ArrowTypeError,
    pa.ArrowNotImplementedError,
    OverflowError,
    UnicodeError,
)
# What is said of values of Python that are nothing like the type.
_MISFITS = (*_ARROW_ERRORS, TypeError, ValueError, AttributeError, ArithmeticError)


def batches_of(result: Any, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The result of a call on a batch, in the declared schema."""
    if isinstance(result, pa.RecordBatch):
        yield fitted(result, schema)
    elif isinstance(result, pa.Table):
        for batch in result.to_batches():
            yield fitted(batch, schema)
    elif isinstance(result, Iterable) and not isinstance(result, str | bytes | Mapping):
        for part in result:
            yield from batches_of(part, schema)
    else:
        raise OutputError(
            f"fn gave {type(result).__name__}; a map on batches gives a pyarrow RecordBatch, a "
            "Table or an iterable of them; a function of single rows needs per_row=True"
        )


def fitted(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """A batch with the declared columns, cast to their types, in their order."""
    if batch.schema.equals(schema):
        for column, field in zip(batch.columns, schema, strict=True):
            check_nulls(column, field, field.name)
        return batch
    names = batch.schema.names
    for name in names:
        if name not in schema.names:
            raise OutputError(_unknown(name, schema))
    columns = []
    for field in schema:
        if names.count(field.name) != 1:
            problem = "no" if field.name not in names else "more than one"
            raise OutputError(f"fn gave {problem} column {field.name!r}, which the schema declares")
        column = batch.column(field.name)
        check_types(column.type, field.type, field.name)
        try:
            columns.append(column if column.type == field.type else column.cast(field.type))
        except _ARROW_ERRORS as failure:
            raise OutputError(
                f"column {field.name!r}: fn gave {column.type}, which cannot be cast to the "
                f"declared {field.type} ({failure})"
            ) from failure
        check_loss(column, columns[-1], field.name)
        check_nulls(columns[-1], field, field.name)
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def rows_of(result: Any) -> Sequence[Mapping[str, Any]]:
    """The rows that a call on one row gave; copies, for a function may use a dictionary again."""
    if result is None:
        return ()
    if isinstance(result, Mapping):
        return (dict(result),)
    if isinstance(result, list | tuple) and all(isinstance(row, Mapping) for row in result):
        return [dict(row) for row in result]
    raise OutputError(
        f"fn gave {type(result).__name__}; a map with per_row=True gives a dictionary, a list or "
        "generator of dictionaries, or None for no row"
    )


def batch_of_rows(rows: Sequence[Mapping[str, Any]], schema: pa.Schema) -> pa.RecordBatch:
    """Dictionaries as a batch of the declared schema; what a row does not name is null."""
    declared = set(schema.names)
    for row in rows:
        if not row.keys() <= declared:
            raise OutputError(_unknown(next(n for n in row if n not in declared), schema))
    columns = []
    for field in schema:
        values = [row.get(field.name) for row in rows]
        try:
            check_values(values, field.type, field.name)
            columns.append(pa.array(values, field.type))
        except OutputError:
            raise
        except _MISFITS as failure:
            raise OutputError(
                f"column {field.name!r}: {_misfit(values, field)!r} does not fit the declared "
                f"{field.type} ({failure})"
            ) from failure
        check_nulls(columns[-1], field, field.name)
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _misfit(values: list[Any], field: pa.Field) -> Any:
    for value in values:
        try:
            check_values([value], field.type, field.name)
            pa.array([value], field.type)
        except _MISFITS:
            return value
    return values[:1]


def _unknown(name: str, schema: pa.Schema) -> str:
    return f"fn gave a column {name!r}; the schema declares {', '.join(schema.names)}"
