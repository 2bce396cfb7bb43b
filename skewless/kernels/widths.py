"""How many bytes rows take, one by one: a mean hides the row that is a thousand times as large."""

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from skewless.kernels.ordering import IndexArray


def varying_columns(rows: pa.RecordBatch) -> list[pa.Array]:
    """The columns in which one row can be larger than another."""
    return [c for c in rows.columns if _fixed_bytes(c.type) is None]


def bytes_between(columns: list[pa.Array], begin: IndexArray, end: IndexArray) -> IndexArray:
    """What these columns hold of the rows [begin, end), for many such ranges at once.

    Offsets say where values begin and end, so a range costs as much as a row. Validity bits do not
    count.

    >>> bytes_between([pa.array(["", "four", None])], np.array([1, 0]), np.array([2, 3])).tolist()
    [8, 16]
    """
    total = np.zeros(len(begin), np.int64)
    for column in columns:
        total += _between(column, begin, end)
    return total


def bytes_at(columns: list[pa.Array], rows: IndexArray) -> IndexArray:
    """What these columns hold of every one of the rows."""
    return bytes_between(columns, rows, rows + 1)


def _between(column: pa.Array, begin: IndexArray, end: IndexArray) -> IndexArray:
    kind = column.type
    fixed = _fixed_bytes(kind)
    if fixed is not None:
        return (fixed * (end - begin)).astype(np.int64)
    if pa.types.is_struct(kind):
        fields = [column.field(i) for i in range(kind.num_fields)]
        return np.sum([_between(f, begin, end) for f in fields], axis=0, dtype=np.int64)
    offsets = _offsets(column)
    if offsets is None:
        return (column.nbytes / max(1, len(column)) * (end - begin)).astype(np.int64)
    first, last = offsets[begin].astype(np.int64), offsets[end].astype(np.int64)
    own = offsets.itemsize * (end - begin)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_map(kind):
        return own + _between(column.values, first, last)
    return own + last - first


def _offsets(column: pa.Array) -> npt.NDArray[np.integer] | None:
    """Where the values of a column begin and end; None where Arrow lays it out in another way."""
    kind = column.type
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_map(kind):
        listed: npt.NDArray[np.integer] = column.offsets.to_numpy()
        return listed
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        width: type[np.integer] = np.int32
    elif pa.types.is_large_string(kind) or pa.types.is_large_binary(kind):
        width = np.int64
    else:
        return None
    buffer = column.buffers()[1]
    if buffer is None or not buffer.size:  # a column without values may come without offsets
        return np.zeros(1, width)
    return np.frombuffer(buffer, width)[column.offset : column.offset + len(column) + 1]


def _fixed_bytes(kind: pa.DataType) -> float | None:
    """The bytes of a value, for types whose values all take the same."""
    if pa.types.is_null(kind):
        return 0.0
    if pa.types.is_struct(kind):
        widths = [_fixed_bytes(kind.field(i).type) for i in range(kind.num_fields)]
        return None if None in widths else float(sum(w or 0.0 for w in widths))
    try:
        return float(kind.bit_width) / 8
    except ValueError:
        return None
