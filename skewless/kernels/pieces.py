"""Cuts rows into pieces by their bytes, and keeps whole what small offsets cannot count.

A column of text in Arrow holds at most 2 GiB: its offsets have 32 bits. What grows past that gets
64-bit offsets on the inside, and is cut into pieces of the declared types where it is shown or
stored.
"""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.types as kinds

from skewless.kernels.ordering import IndexArray
from skewless.kernels.widths import bytes_at, varying_columns

# Rows of fewer bytes than this have no column that 32-bit offsets cannot count.
ARRAY_BYTES = 2**31 - 1


def cuts(upto: IndexArray, limit: int) -> Iterator[tuple[int, int]]:
    """Ranges of rows of at most `limit` bytes, or of one row that is larger by itself.

    `upto` has the bytes of all rows up to and including each.

    >>> list(cuts(np.array([3, 5, 30, 31]), 5))
    [(0, 2), (2, 3), (3, 4)]
    """
    begin, before = 0, 0
    while begin < len(upto):
        end = max(begin + 1, int(np.searchsorted(upto, before + limit, side="right")))
        yield begin, end
        begin, before = end, int(upto[end - 1])


def pieces(
    rows: pa.RecordBatch, at_most_bytes: int, at_most_rows: int | None = None
) -> Iterator[pa.RecordBatch]:
    """Slices of at most so many bytes and rows, or of one row that is larger by itself.

    Rows that fit are not measured one by one, and nothing is copied, unless it lies in a buffer of
    more than 2 GiB: what stands at the end of one cannot be cast to small offsets.
    """
    most = rows.num_rows if at_most_rows is None else at_most_rows
    copies = rows.get_total_buffer_size() > ARRAY_BYTES
    if rows.nbytes <= at_most_bytes and rows.num_rows <= most:
        if rows.num_rows:
            yield _copied(rows) if copies else rows
        return
    sizes = bytes_at(rows.columns, np.arange(rows.num_rows, dtype=np.int64))
    for begin, end in cuts(np.cumsum(sizes), at_most_bytes):
        for first in range(begin, end, most):
            piece = rows.slice(first, min(most, end - first))
            yield _copied(piece) if copies else piece


def _copied(rows: pa.RecordBatch) -> pa.RecordBatch:
    return rows.take(pa.array(np.arange(rows.num_rows, dtype=np.int64)))


def widened(kind: pa.DataType) -> pa.DataType:
    """The same type with 64-bit offsets, at any depth."""
    if kinds.is_string(kind):
        return pa.large_string()
    if kinds.is_binary(kind):
        return pa.large_binary()
    if kinds.is_struct(kind):
        return pa.struct([_widened_field(kind.field(i)) for i in range(kind.num_fields)])
    if kinds.is_map(kind):  # counts entries, of which there are never so many
        return pa.map_(_widened_field(kind.key_field), _widened_field(kind.item_field))
    if kinds.is_list(kind) or kinds.is_large_list(kind):
        return pa.large_list(_widened_field(kind.value_field))
    return kind


def _widened_field(field: pa.Field) -> pa.Field:
    return field.with_type(widened(field.type))


def schema_for(size: int, schema: pa.Schema, array_bytes: int = ARRAY_BYTES) -> pa.Schema:
    """The schema in which rows of this size can be one batch."""
    return schema if size <= array_bytes else pa.schema([_widened_field(f) for f in schema])


def one_array(column: pa.ChunkedArray, array_bytes: int = ARRAY_BYTES) -> pa.Array:
    """The chunks of a column as one array."""
    if column.nbytes > array_bytes:
        column = column.cast(widened(column.type))
    whole = column.combine_chunks()
    return whole if isinstance(whole, pa.Array) else pa.concat_arrays(whole.chunks)


def gathered(
    rows: pa.RecordBatch, at: IndexArray, repeats: int, array_bytes: int = ARRAY_BYTES
) -> pa.RecordBatch:
    """The rows at these places, each at most `repeats` times."""
    if rows.nbytes * repeats > array_bytes:
        size = int(bytes_at(varying_columns(rows), at).sum())
        rows = rows.cast(schema_for(size, rows.schema, array_bytes))
    return rows.take(pa.array(at))


def as_table(rows: pa.RecordBatch, schema: pa.Schema, array_bytes: int = ARRAY_BYTES) -> pa.Table:
    """Rows as a user sees them, in the declared types; in several chunks if one cannot hold them.

    >>> rows = pa.record_batch({"s": pa.array(["a" * 6, "b" * 6], pa.large_string())})
    >>> as_table(rows, pa.schema([("s", pa.string())]), array_bytes=20).column("s").num_chunks
    2
    """
    parts = [part.cast(schema) for part in pieces(rows, array_bytes)]
    return pa.Table.from_batches(parts, schema)
