"""Spark's types as the engine needs them: which can be keys, and which Arrow can carry."""

from collections.abc import Collection, Mapping, Sequence
from inspect import signature
from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import types as T
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema, to_arrow_type

from skewless.errors import bad_argument

# How Spark notes in a column's metadata that it has a watermark, or is a window.
WATERMARK = "spark.watermarkDelayMs"
_TIME_WINDOW = "spark.timeWindow"
_SESSION_WINDOW = "spark.sessionWindow"

# Spark's own conversions to Arrow, which have no public name, say it in one way or the other.
_IN_UTC: dict[str, Any] = (
    {"timezone": "UTC"}
    if "timezone" in signature(to_arrow_type).parameters
    else {"timestamp_utc": True}
)

_INTEGRAL: tuple[type[T.DataType], ...] = (T.ByteType, T.ShortType, T.IntegerType, T.LongType)
_FRACTIONAL: tuple[type[T.DataType], ...] = (T.FloatType, T.DoubleType)
_FIXED_WIDTH: tuple[type[T.DataType], ...] = (
    *_INTEGRAL,
    T.BooleanType,
    T.DateType,
    T.TimestampType,
    T.TimestampNTZType,
)
_DIGITS = {T.ByteType: 3, T.ShortType: 5, T.IntegerType: 10, T.LongType: 20}
_MAX_PRECISION = 38
_OTHER_KEYS: tuple[type[T.DataType], ...] = (
    T.StringType,
    T.BinaryType,
    T.BooleanType,
    T.DateType,
    T.TimestampType,
    T.TimestampNTZType,
    T.DayTimeIntervalType,
)


DOUBLE = T.DoubleType()
BOOLEAN = T.BooleanType()


def is_event_time(kind: T.DataType) -> bool:
    return isinstance(kind, T.TimestampType | T.TimestampNTZType)


def arrow_carries(kind: T.DataType) -> bool:
    """Whether Spark hands this type to Python as Arrow."""
    try:
        to_arrow_type(kind, **_IN_UTC)
    except (PySparkException, TypeError, ValueError):
        return False
    return True


def arrow_schema(schema: T.StructType) -> pa.Schema:
    """The columns as a task gets them, in UTC."""
    return to_arrow_schema(schema, **_IN_UTC)


def spark_schema(argument: str, schema: pa.Schema) -> T.StructType:
    """The columns as Spark has them; an error names the one that it cannot have."""
    repeated = [n for n in schema.names if schema.names.count(n) > 1]
    if repeated:
        raise bad_argument(argument, repeated[0], "each column name once")
    for field in schema:
        try:
            from_arrow_schema(pa.schema([field]))
        except (PySparkException, TypeError, ValueError) as failure:
            raise bad_argument(
                argument, f"{field.name}: {field.type}", "types that Spark has"
            ) from failure
    return from_arrow_schema(schema)


def as_arrow_schema(argument: str, given: object) -> pa.Schema:
    """A schema that a user gives: Arrow's, Spark's, or as text."""
    if isinstance(given, pa.Schema):
        return given
    if isinstance(given, str):
        try:
            given = T.StructType.fromDDL(given)
        except PySparkException as failure:
            raise bad_argument(
                argument, given, 'a schema such as "word string, total long"'
            ) from failure
    if not isinstance(given, T.StructType):
        raise bad_argument(argument, given, "a StructType, its text, or an Arrow schema")
    for field in given.fields:
        if not arrow_carries(field.dataType):
            raise bad_argument(
                argument, f"{field.name}: {field.dataType.simpleString()}", "types of Arrow"
            )
    return arrow_schema(given)


def output_schema(argument: str, given: object) -> pa.Schema:
    """What a user's function gives, as Spark takes it from Python: Arrow has more types."""
    spark = spark_schema(argument, as_arrow_schema(argument, given))
    if not spark.fields:
        raise bad_argument(argument, "no column", "at least one")
    return as_arrow_schema(argument, spark)


def common_key_type(left: T.DataType, right: T.DataType) -> T.DataType | None:
    """The type in which two key columns are compared, as Spark widens them; None: they cannot be.

    Text is never compared with numbers, nor dates with timestamps: Spark would cast one of them
    silently, and a failed cast would look like a key that never matches. Collated text is refused,
    because its hash is that of its bytes.
    """
    if isinstance(left, _INTEGRAL) and isinstance(right, _INTEGRAL):
        return max(left, right, key=lambda t: _INTEGRAL.index(type(t)))
    if isinstance(left, _FRACTIONAL) or isinstance(right, _FRACTIONAL):
        numeric = (*_INTEGRAL, *_FRACTIONAL, T.DecimalType)
        if not isinstance(left, numeric) or not isinstance(right, numeric):
            return None
        return left if left == right else T.DoubleType()
    if isinstance(left, T.DecimalType) or isinstance(right, T.DecimalType):
        return _wider_decimal(left, right)
    if isinstance(left, T.StringType) and not left.isUTF8BinaryCollation():
        return None
    return left if left == right and isinstance(left, _OTHER_KEYS) else None


def items_of(kind: T.DataType, *, weighted: bool) -> tuple[T.DataType, T.DataType | None] | None:
    """The types of the items of a set and of their weights; None: it is not such a set.

    Weighted sets are maps from item to number, or arrays of structs (item, number).
    """
    if not weighted:
        return (kind.elementType, None) if isinstance(kind, T.ArrayType) else None
    if isinstance(kind, T.MapType):
        item, weight = kind.keyType, kind.valueType
    elif isinstance(kind, T.ArrayType) and isinstance(kind.elementType, T.StructType):
        if len(kind.elementType.fields) != 2:
            return None
        item, weight = (f.dataType for f in kind.elementType.fields)
    else:
        return None
    numeric = (*_INTEGRAL, *_FRACTIONAL, T.DecimalType)
    return (item, weight) if isinstance(weight, numeric) else None


def is_map(kind: T.DataType) -> bool:
    return isinstance(kind, T.MapType)


def entry_fields(kind: T.DataType) -> tuple[str, str] | None:
    """The names of item and weight in an entry of a weighted set; None: items have no weights."""
    if isinstance(kind, T.MapType):
        return "key", "value"
    element = kind.elementType if isinstance(kind, T.ArrayType) else None
    if not isinstance(element, T.StructType):
        return None
    return element.names[0], element.names[1]


def hashes_one_to_one(kinds: Sequence[T.DataType]) -> bool:
    """Whether xxhash64 maps these keys one to one, so that equal hashes prove equal keys.

    For a single value of 4 or 8 bytes XXH64 is a chain of bijections of 64-bit numbers (multiply
    by an odd prime, rotate, xor with a shift of itself, add a constant).
    """
    if len(kinds) != 1:
        return False
    return isinstance(kinds[0], _FIXED_WIDTH)


def is_one_whole_number(kinds: Sequence[T.DataType]) -> bool:
    """Whether `skewless.kernels.hashing` can make the hash of such a key."""
    return len(kinds) == 1 and isinstance(kinds[0], _INTEGRAL)


def has_fixed_width(schema: T.StructType) -> bool:
    """Whether no row can be larger than another."""
    kinds = (*_FIXED_WIDTH, *_FRACTIONAL, T.DecimalType)
    return all(isinstance(f.dataType, kinds) for f in schema.fields)


def _wider_decimal(left: T.DataType, right: T.DataType) -> T.DataType | None:
    parts = []
    for kind in (left, right):
        if isinstance(kind, T.DecimalType):
            parts.append((kind.precision - kind.scale, kind.scale))
        elif isinstance(kind, _INTEGRAL):
            parts.append((_DIGITS[type(kind)], 0))  # type: ignore[index]
        else:
            return None
    whole = max(p[0] for p in parts)
    scale = max(p[1] for p in parts)
    if whole + scale > _MAX_PRECISION:
        return None
    return T.DecimalType(whole + scale, scale)


def struct(fields: Sequence[tuple[str, T.StructField]]) -> T.StructType:
    """A schema of given fields under new names; a watermark of an input is not that of a result."""
    return T.StructType(
        [
            T.StructField(name, f.dataType, f.nullable, _without_watermark(f.metadata))
            for name, f in fields
        ]
    )


def _without_watermark(metadata: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in metadata.items() if key != WATERMARK}


def with_window(schema: T.StructType, column: str, *, is_session: bool) -> T.StructType:
    """The schema with a column marked as a window, so that Spark's `window_time` takes it."""
    mark = {_SESSION_WINDOW if is_session else _TIME_WINDOW: True}
    return T.StructType(
        [
            T.StructField(f.name, f.dataType, f.nullable, mark) if f.name == column else f
            for f in schema.fields
        ]
    )


def retyped(schema: T.StructType, kinds: Mapping[str, T.DataType]) -> T.StructType:
    """The schema with other types for some columns."""
    return T.StructType(
        [T.StructField(f.name, kinds.get(f.name, f.dataType), f.nullable) for f in schema.fields]
    )


def chosen(schema: T.StructType, names: Collection[str]) -> T.StructType:
    """Some of the columns, in their order."""
    return T.StructType([f for f in schema.fields if f.name in names])


def with_nulls(
    schema: T.StructType, names: Collection[str], kinds: Mapping[str, T.DataType] | None = None
) -> T.StructType:
    """The schema with these columns declared as null at times, and other types for some."""
    kinds = kinds or {}
    return T.StructType(
        [
            T.StructField(
                f.name, kinds.get(f.name, f.dataType), f.nullable or f.name in names, f.metadata
            )
            for f in schema.fields
        ]
    )


def with_watermarks(schema: T.StructType, delays: Mapping[str, Any]) -> T.StructType:
    """The schema with these delays noted on its columns, as withWatermark does."""
    noted = {name: {WATERMARK: delay} for name, delay in delays.items()}
    return T.StructType(
        [
            T.StructField(f.name, f.dataType, f.nullable, {**f.metadata, **noted.get(f.name, {})})
            for f in schema.fields
        ]
    )


def without_nulls(schema: T.StructType, names: Collection[str]) -> T.StructType:
    """The schema with these columns declared as never null."""
    return T.StructType(
        [
            T.StructField(f.name, f.dataType, f.nullable and f.name not in names, f.metadata)
            for f in schema.fields
        ]
    )


def with_double(schema: T.StructType, name: str) -> T.StructType:
    """The schema with one more column, of doubles that are never null."""
    return T.StructType([*schema.fields, T.StructField(name, T.DoubleType(), nullable=False)])


def is_double(kind: T.DataType) -> bool:
    return isinstance(kind, T.DoubleType)


def is_hashable(kind: T.DataType) -> bool:
    """Whether Spark can hash it."""
    if isinstance(kind, T.ArrayType):
        return is_hashable(kind.elementType)
    if isinstance(kind, T.StructType):
        return all(is_hashable(f.dataType) for f in kind.fields)
    return not isinstance(kind, T.MapType | T.VariantType)


def is_number(kind: T.DataType) -> bool:
    """Whether values of a column can be added up."""
    return isinstance(kind, T.NumericType)


def is_text(kind: T.DataType) -> bool:
    return isinstance(kind, T.StringType)


def identifies(kind: T.DataType) -> bool:
    """Whether values of a column tell things apart for good: NaN and −0.0 do not."""
    return common_key_type(kind, kind) is not None and not isinstance(kind, _FRACTIONAL)


def is_text_or_binary(kind: T.DataType) -> bool:
    return isinstance(kind, T.StringType | T.BinaryType)


def is_boolean(kind: T.DataType) -> bool:
    return isinstance(kind, T.BooleanType)


def is_null(kind: T.DataType) -> bool:
    return isinstance(kind, T.NullType)


def is_decimal(kind: T.DataType) -> bool:
    return isinstance(kind, T.DecimalType)


def is_temporal(kind: T.DataType) -> bool:
    moments = T.DateType | T.TimestampType | T.TimestampNTZType
    return isinstance(kind, moments | T.DayTimeIntervalType | T.YearMonthIntervalType)


def compares_in_tasks(kind: T.DataType) -> bool:
    """Whether a task compares two values of this type as Spark does."""
    return common_key_type(kind, kind) is not None


def widens(kind: T.DataType, target: T.DataType) -> bool:
    """Whether a task can cast as Spark does: numbers to a type that has room for all of them."""
    numeric = (*_INTEGRAL, *_FRACTIONAL)
    if isinstance(kind, numeric) and isinstance(target, numeric):
        return numeric.index(type(kind)) <= numeric.index(type(target))
    if isinstance(kind, _INTEGRAL) and isinstance(target, T.DecimalType):
        return target.precision - target.scale >= _DIGITS[type(kind)]  # type: ignore[index]
    if isinstance(kind, T.DecimalType) and isinstance(target, T.DecimalType):
        whole = target.precision - target.scale >= kind.precision - kind.scale
        return whole and target.scale >= kind.scale
    return False


def arrow_type(kind: T.DataType) -> pa.DataType:
    """The type in which a task has values of a type of Spark, in UTC."""
    return to_arrow_type(kind, **_IN_UTC)
