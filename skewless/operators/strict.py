"""Brings what a user's function gives into the declared schema; what would change is refused."""

from collections.abc import Mapping, Sequence
from datetime import datetime, time, timedelta
from decimal import Decimal
from math import isfinite
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as kinds

from skewless.errors import SkewlessError

_LARGEST_FLOAT = float(np.finfo(np.float32).max)
_ARROW_ERRORS = (
    pa.ArrowInvalid,
    pa.ArrowTypeError,
    pa.ArrowNotImplementedError,
    pa.ArrowCapacityError,
    OverflowError,
    UnicodeError,
)
# What is said of values of Python that are nothing like the type.
MISFITS = (*_ARROW_ERRORS, TypeError, ValueError, AttributeError, ArithmeticError)


class OutputError(SkewlessError):
    """A user's function gave something that the declared schema has no place for.

    The text names the column. Whose function it was is known to the caller alone.
    """


def fitted(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """A batch with the declared columns, cast to their types, in their order.

    >>> fitted(pa.record_batch({"n": [5]}), pa.schema([("n", pa.timestamp("us"))]))
    Traceback (most recent call last):
    skewless.operators.strict.OutputError: column 'n': int64 cannot be cast to timestamp[us]
    """
    if batch.schema.equals(schema):
        for column, field in zip(batch.columns, schema, strict=True):
            check_nulls(column, field, field.name)
        return batch
    names = batch.schema.names
    for name in names:
        if name not in schema.names:
            raise unknown_column(name, schema)
    columns = []
    for field in schema:
        if names.count(field.name) != 1:
            problem = "no" if field.name not in names else "more than one"
            raise OutputError(f"{problem} column {field.name!r}, which the schema declares")
        column = batch.column(field.name)
        check_types(column.type, field.type, field.name)
        try:
            columns.append(column if column.type == field.type else column.cast(field.type))
        except _ARROW_ERRORS as failure:
            raise OutputError(
                f"column {field.name!r}: {column.type} cannot be cast to the declared "
                f"{field.type} ({failure})"
            ) from failure
        check_loss(column, columns[-1], field.name)
        check_nulls(columns[-1], field, field.name)
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def unknown_column(name: str, schema: pa.Schema) -> OutputError:
    return OutputError(f"unknown column {name!r}; the schema declares {', '.join(schema.names)}")


def check_values(values: Sequence[Any], kind: pa.DataType, name: str) -> None:
    """Values of Python: no fraction for a whole number, no number for a moment, no unknown field.

    >>> check_values([1, None, 2.0], pa.int32(), "visits")
    >>> check_values([2.9], pa.int32(), "visits")
    Traceback (most recent call last):
    skewless.operators.strict.OutputError: column 'visits': 2.9 does not fit the declared int32
    """
    present = [value for value in values if value is not None]
    if kinds.is_integer(kind):
        _refuse_first(present, _is_fraction, kind, name)
    elif kinds.is_float32(kind):
        _refuse_first(present, _is_too_large, kind, name)
    elif kinds.is_temporal(kind):
        _refuse_first(present, _is_number, kind, name)
        if kinds.is_date(kind):
            _refuse_first(present, _has_time_of_day, kind, name)
    elif kinds.is_struct(kind):
        records = [value for value in present if isinstance(value, Mapping)]
        declared = {kind.field(i).name for i in range(kind.num_fields)}
        for record in records:
            if unknown := [key for key in record if key not in declared]:
                raise OutputError(_unknown(name, unknown[0], declared))
        for i in range(kind.num_fields):
            field = kind.field(i)
            inner = [record.get(field.name) for record in records]
            check_values(inner, field.type, f"{name}.{field.name}")
    elif kinds.is_map(kind):
        pairs = [
            pair
            for value in present
            for pair in (value.items() if isinstance(value, Mapping) else value)
        ]
        _refuse_first(pairs, _is_no_pair, kind, name)
        check_values([key for key, _ in pairs], kind.key_type, f"{name}.key")
        check_values([item for _, item in pairs], kind.item_type, f"{name}.value")
    elif _is_list(kind):
        lists = [value for value in present if isinstance(value, list | tuple | np.ndarray)]
        check_values([item for each in lists for item in each], kind.value_type, f"{name}.element")


def check_types(given: pa.DataType, declared: pa.DataType, name: str) -> None:
    """Types of Arrow: a struct is cast field by field, and a field of another name becomes null;
    a number is cast to a moment of no certain unit, or to True."""
    numbers = kinds.is_integer(given) or kinds.is_floating(given) or kinds.is_decimal(given)
    if numbers and (kinds.is_temporal(declared) or kinds.is_boolean(declared)):
        raise OutputError(f"column {name!r}: {given} cannot be cast to {declared}")
    if kinds.is_struct(given) and kinds.is_struct(declared):
        found = {given.field(i).name: given.field(i).type for i in range(given.num_fields)}
        wanted = {
            declared.field(i).name: declared.field(i).type for i in range(declared.num_fields)
        }
        if unknown := [n for n in found if n not in wanted]:
            raise OutputError(_unknown(name, unknown[0], wanted))
        if missing := [n for n in wanted if n not in found]:
            raise OutputError(
                f"column {name!r}: no field {missing[0]!r}, which the schema declares"
            )
        for field, kind in wanted.items():
            check_types(found[field], kind, f"{name}.{field}")
    elif kinds.is_map(given) and kinds.is_map(declared):
        check_types(given.key_type, declared.key_type, f"{name}.key")
        check_types(given.item_type, declared.item_type, f"{name}.value")
    elif kinds.is_timestamp(given) and kinds.is_time(declared):
        raise OutputError(f"column {name!r}: {given} cannot be cast to {declared}")
    elif _is_list(given) and _is_list(declared):
        check_types(given.value_type, declared.value_type, f"{name}.element")


def check_loss(given: pa.Array, cast: pa.Array, name: str) -> None:
    """Values of Arrow that its cast has rounded, cut or made infinite without a word."""
    before, after = given.type, cast.type
    if before == after:
        return
    if kinds.is_struct(before):
        columns = dict(zip((f.name for f in before.fields), given.flatten(), strict=True))
        for field, column in zip(after.fields, cast.flatten(), strict=True):
            check_loss(columns[field.name], column, f"{name}.{field.name}")
    elif kinds.is_map(before):
        for place, entries in (("key", _keys), ("value", _items)):
            check_loss(entries(given), entries(cast), f"{name}.{place}")
    elif _is_list(before) and _is_list(after):
        check_loss(given.flatten(), cast.flatten(), f"{name}.element")
    elif kinds.is_floating(before) and kinds.is_float32(after):
        _refuse_lost(given, pc.and_(pc.is_finite(given), pc.is_inf(cast)), after, name)
    elif kinds.is_floating(before) and kinds.is_decimal(after):
        # By way of text: Arrow's own cast of a decimal to a fraction is off by its last bit.
        back = cast.cast(pa.string()).cast(before)
        _refuse_lost(given, pc.not_equal(given, back), after, name)
    elif kinds.is_timestamp(before) and kinds.is_date(after):
        _refuse_lost(given, pc.not_equal(given, cast.cast(before, safe=False)), after, name)


def _refuse_lost(given: pa.Array, lost: pa.BooleanArray, kind: pa.DataType, name: str) -> None:
    first = pc.index(lost, True).as_py()
    if first >= 0:
        value = given[first].as_py()
        raise OutputError(f"column {name!r}: {value!r} does not fit the declared {kind}")


def check_nulls(column: pa.Array, field: pa.Field, name: str) -> None:
    """No null where the schema allows none, at any depth: Spark would read a zero there."""
    if column.null_count and not field.nullable:
        raise OutputError(f"column {name!r}: a null, but the schema allows none")
    kind = field.type
    if not _forbids_nulls(kind):
        return
    present = column.drop_null()
    if kinds.is_struct(kind):
        for inner, values in zip(kind.fields, present.flatten(), strict=True):
            check_nulls(values, inner, f"{name}.{inner.name}")
    elif kinds.is_map(kind):
        for inner, values in ((kind.key_field, _keys(present)), (kind.item_field, _items(present))):
            check_nulls(values, inner, f"{name}.{inner.name}")
    elif _is_list(kind):
        check_nulls(present.flatten(), kind.value_field, f"{name}.element")


def _forbids_nulls(kind: pa.DataType) -> bool:
    """Whether a value inside of one of this type may not be null."""
    if kinds.is_struct(kind):
        inner = list(kind.fields)
    elif kinds.is_map(kind):
        inner = [kind.key_field, kind.item_field]
    elif _is_list(kind):
        inner = [kind.value_field]
    else:
        return False
    return any(not field.nullable or _forbids_nulls(field.type) for field in inner)


def _keys(maps: pa.MapArray) -> pa.Array:
    return _entries(maps, maps.keys)


def _items(maps: pa.MapArray) -> pa.Array:
    return _entries(maps, maps.items)


def _entries(maps: pa.MapArray, values: pa.Array) -> pa.Array:
    """Keys and items are those of the whole array that this one may be a slice of."""
    first, last = maps.offsets[0].as_py(), maps.offsets[-1].as_py()
    return values.slice(first, last - first)


def _is_list(kind: pa.DataType) -> bool:
    return kinds.is_list(kind) or kinds.is_large_list(kind) or kinds.is_fixed_size_list(kind)


def _refuse_first(values: list[Any], is_wrong: Any, kind: pa.DataType, name: str) -> None:
    for value in values:
        if is_wrong(value):
            raise OutputError(f"column {name!r}: {value!r} does not fit the declared {kind}")


def _is_no_pair(value: Any) -> bool:
    return not isinstance(value, tuple | list) or len(value) != 2


def _is_fraction(value: Any) -> bool:
    if isinstance(value, int):
        return False
    if isinstance(value, Decimal):
        return not value.is_finite() or value != value.to_integral_value()
    return isinstance(value, float | np.floating) and value != value // 1


def _is_too_large(value: Any) -> bool:
    is_float = isinstance(value, float | np.floating)
    return is_float and isfinite(value) and abs(value) > _LARGEST_FLOAT


def _is_number(value: Any) -> bool:
    numbers = (int, float, np.integer, np.floating, Decimal)
    return isinstance(value, numbers) and not isinstance(value, timedelta)


def _has_time_of_day(value: Any) -> bool:
    return isinstance(value, datetime) and value.time() != time()


def _unknown(name: str, field: str, declared: Any) -> str:
    return f"column {name!r}: unknown field {field!r}; the schema declares {', '.join(declared)}"
