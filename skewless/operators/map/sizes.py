"""About how many bytes a dictionary takes as a row of Arrow, told without making one."""

from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.types as kinds

# The size of a value of a fixed-size type, at most.
_FIXED = 16
Size = Callable[[Any], int]


class Sizes:
    """The sizes of rows of a schema.

    Only columns whose values differ in size are looked at, so that rows of numbers cost nothing.

    >>> Sizes(pa.schema([("id", pa.int64()), ("text", pa.string())])).of({"id": 1, "text": "four"})
    36
    """

    def __init__(self, schema: pa.Schema) -> None:
        self._fixed = _FIXED * len(schema)
        found = ((field.name, _size(field.type)) for field in schema)
        self._varying = [(name, size) for name, size in found if size is not None]

    def of(self, row: Mapping[str, Any]) -> int:
        total = self._fixed
        for name, size in self._varying:
            value = row.get(name)
            if value is not None:
                total += size(value)
        return total


def _size(kind: pa.DataType) -> Size | None:
    """How to measure a value; None where all have one size.

    A value that does not fit its type counts as 0 bytes; the misfit is reported later.
    """
    if kinds.is_struct(kind):
        return _size_of_record(
            {kind.field(i).name: kind.field(i).type for i in range(kind.num_fields)}
        )
    if kinds.is_map(kind):
        return _size_of_pairs(_size(kind.key_type), _size(kind.item_type))
    if kinds.is_list(kind) or kinds.is_large_list(kind):
        return _size_of_items(_size(kind.value_type))
    if kinds.is_primitive(kind) or kinds.is_decimal(kind) or kinds.is_null(kind):
        return None
    return _length


def _length(value: Any) -> int:
    return len(value) if isinstance(value, str | bytes | bytearray | memoryview) else 0


def _size_of_items(size: Size | None) -> Size:
    def of_items(values: Any) -> int:
        if not hasattr(values, "__len__"):
            return 0
        inner = 0 if size is None else sum(size(v) for v in values if v is not None)
        return _FIXED * len(values) + inner

    return of_items


def _size_of_pairs(key: Size | None, item: Size | None) -> Size:
    sizes = [(place, size) for place, size in ((0, key), (1, item)) if size is not None]

    def of_pairs(values: Any) -> int:
        pairs = values.items() if isinstance(values, Mapping) else values
        if not hasattr(pairs, "__len__"):
            return 0
        total = 2 * _FIXED * len(pairs)
        for pair in pairs if sizes else ():
            if isinstance(pair, tuple | list) and len(pair) == 2:
                total += sum(size(pair[at]) for at, size in sizes if pair[at] is not None)
        return total

    return of_pairs


def _size_of_record(fields: Mapping[str, pa.DataType]) -> Size | None:
    sizes = {name: size for name, kind in fields.items() if (size := _size(kind)) is not None}
    if not sizes:
        return None

    def of_record(value: Any) -> int:
        if not isinstance(value, Mapping):
            return 0
        inner = ((size, value.get(name)) for name, size in sizes.items())
        return _FIXED * len(fields) + sum(size(v) for size, v in inner if v is not None)

    return of_record
