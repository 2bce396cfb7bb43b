"""Brings what the function of a map gives into the declared schema, or names the column at fault.

Texts of an `OutputError` say what was given; that `fn` gave it is added by who calls.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from skewless.engine.chunks import Limits, bounded
from skewless.kernels.pieces import ARRAY_BYTES, cuts
from skewless.operators.map.sizes import Sizes
from skewless.operators.strict import (
    MISFITS,
    OutputError,
    check_nulls,
    check_values,
    fitted,
    unknown_column,
)

Rows = Sequence[Mapping[str, Any]]


def batches_of(result: Any, schema: pa.Schema, limits: Limits) -> Iterator[pa.RecordBatch]:
    """The result of a call on a batch, in the declared schema and in pieces to be handed over."""
    if isinstance(result, pa.RecordBatch):
        if not result.num_rows:
            yield fitted(result, schema)
        for piece in bounded(result, limits):
            yield fitted(piece, schema)
    elif isinstance(result, pa.Table):
        empty = pa.RecordBatch.from_pylist([], result.schema)
        for batch in result.to_batches() or [empty]:
            yield from batches_of(batch, schema, limits)
    elif isinstance(result, Iterable) and not isinstance(result, str | bytes | Mapping):
        for part in result:
            yield from batches_of(part, schema, limits)
    else:
        raise OutputError(
            f"{type(result).__name__}; a map on batches gives a pyarrow RecordBatch, a "
            "Table or an iterable of them; a function of single rows needs per_row=True"
        )


def rows_of(result: Any) -> Rows:
    """The rows that a call on one row gave; copies, for a function may use a dictionary again."""
    if result is None:
        return ()
    if isinstance(result, Mapping):
        return (dict(result),)
    if isinstance(result, list | tuple) and all(isinstance(row, Mapping) for row in result):
        return [dict(row) for row in result]
    raise OutputError(
        f"{type(result).__name__}; a map with per_row=True gives a dictionary, a list or "
        "generator of dictionaries, or None for no row"
    )


def batches_of_rows(
    rows: Rows, schema: pa.Schema, sizes: Sizes, limits: Limits
) -> list[pa.RecordBatch]:
    """Dictionaries as batches of the declared schema, none of them much above the limit."""
    upto = np.cumsum([sizes.of(row) for row in rows], dtype=np.int64)
    return [
        batch
        for begin, end in cuts(upto, limits.chunk_bytes)
        for batch in _halved(rows[begin:end], schema, limits.array_bytes)
    ]


def _halved(rows: Rows, schema: pa.Schema, array_bytes: int) -> list[pa.RecordBatch]:
    """Sizes are estimates: rows that are too large together may not be by themselves."""
    try:
        return [batch_of_rows(rows, schema, array_bytes)]
    except _TooLargeError:
        if len(rows) == 1:
            raise
        half = len(rows) // 2
        return [
            *_halved(rows[:half], schema, array_bytes),
            *_halved(rows[half:], schema, array_bytes),
        ]


class _TooLargeError(OutputError):
    """More than an array of Arrow holds."""


def batch_of_rows(rows: Rows, schema: pa.Schema, array_bytes: int = ARRAY_BYTES) -> pa.RecordBatch:
    """Dictionaries as a batch of the declared schema; what a row does not name is null."""
    declared = set(schema.names)
    for row in rows:
        if not row.keys() <= declared:
            raise unknown_column(next(n for n in row if n not in declared), schema)
    columns = [
        _column([row.get(field.name) for row in rows], field, array_bytes) for field in schema
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _column(values: list[Any], field: pa.Field, array_bytes: int) -> pa.Array:
    try:
        check_values(values, field.type, field.name)
        column = pa.array(values, field.type)
    except OutputError:
        raise
    except pa.ArrowCapacityError as failure:
        raise _too_large(field) from failure
    except MISFITS as failure:
        raise OutputError(
            f"column {field.name!r}: {_misfit(values, field)!r} does not fit the declared "
            f"{field.type} ({failure})"
        ) from failure
    # More than an array holds becomes several of them.
    if isinstance(column, pa.ChunkedArray) or column.nbytes > array_bytes:
        raise _too_large(field)
    check_nulls(column, field, field.name)
    return column


def _too_large(field: pa.Field) -> _TooLargeError:
    return _TooLargeError(
        f"column {field.name!r}: a value that is too large; {field.type} holds at most 2 GiB"
    )


def _misfit(values: list[Any], field: pa.Field) -> Any:
    for value in values:
        try:
            check_values([value], field.type, field.name)
            pa.array([value], field.type)
        except MISFITS:
            return value
    return values[:1]
