"""Aggregates that can be added up in parts: rows to partials, partials to one, one to a result.

Types and nulls are Spark's: nulls are left out, a sum of nothing but nulls is null, NaN is above
every number, and a sum that does not fit its type is an error (as with ANSI mode on).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from skewless.errors import SkewlessError, bad_argument
from skewless.kernels.distinct import entries_of, estimates, hash_values, highest, list_groups
from skewless.kernels.groups import Groups, without_negative_zero
from skewless.kernels.ordering import TimeArray

MAX_PRECISION = 38
FUNCTIONS = (
    "count",
    "sum",
    "min",
    "max",
    "mean",
    "approx_count_distinct",
    "collect_list",
    "collect_set",
)
Numbers = npt.NDArray[Any]
Mask = npt.NDArray[np.bool_]
State = list[pa.Array]


class Aggregate(Protocol):
    """One aggregate function over one type. Columns come in the order of the groups."""

    @property
    def state(self) -> tuple[pa.DataType, ...]:
        """The columns that a partial is stored in."""
        ...

    def partial(self, values: pa.Array | None, times: TimeArray, groups: Groups) -> State: ...
    def merge(self, state: Sequence[pa.Array], groups: Groups) -> State: ...
    def finish(self, state: Sequence[pa.Array]) -> pa.Array: ...


def result_type(function: str, kind: pa.DataType | None) -> pa.DataType:
    """The type of an aggregate, as Spark has it; `kind` None stands for `count(*)`.

    >>> result_type("sum", pa.int32()), result_type("mean", pa.decimal128(10, 2))
    (DataType(int64), Decimal128Type(decimal128(14, 6)))
    """
    if function not in FUNCTIONS:
        raise bad_argument("process", function, f"one of {', '.join(FUNCTIONS)}")
    if function == "count":
        return pa.int64()
    if kind is None:
        raise bad_argument("process", (function, "*"), 'a column; only "count" takes "*"')
    if function in ("sum", "mean"):
        if pa.types.is_integer(kind):
            return pa.int64() if function == "sum" else pa.float64()
        if pa.types.is_floating(kind):
            return pa.float64()
        if pa.types.is_decimal128(kind):
            digits, scale = (10, 0) if function == "sum" else (4, 4)
            return pa.decimal128(
                min(kind.precision + digits, MAX_PRECISION), min(kind.scale + scale, MAX_PRECISION)
            )
        raise bad_argument("process", f"{function} of {kind}", "a numeric column")
    if function == "collect_list":
        return pa.list_(kind)
    if pa.types.is_nested(kind):
        raise bad_argument("process", f"{function} of {kind}", "a column that is not nested")
    if function in ("min", "max"):
        return kind
    return pa.int64() if function == "approx_count_distinct" else pa.list_(kind)


def aggregate_of(function: str, kind: pa.DataType | None) -> Aggregate:
    """The aggregate of this name for values of this type."""
    result = result_type(function, kind)
    if function == "count":
        return Count()
    assert kind is not None, "only a count takes no column"
    if function == "sum":
        return Sum(result)
    if function in ("min", "max"):
        return Extreme(result, function)
    if function == "mean":
        return Mean(kind, result)
    if function == "approx_count_distinct":
        return Distinct()
    return CollectList(kind) if function == "collect_list" else CollectSet(kind)


@dataclass(frozen=True)
class Count:
    """Rows, or the values that are not null."""

    state: tuple[pa.DataType, ...] = (pa.int64(),)

    def partial(self, values: pa.Array | None, times: TimeArray, groups: Groups) -> State:
        if values is None or not values.null_count:
            return [pa.array(np.diff(groups.begins, append=groups.rows))]
        valid = values.is_valid().to_numpy(zero_copy_only=False)
        return [pa.array(np.add.reduceat(valid.astype(np.int64), groups.begins))]

    def merge(self, state: Sequence[pa.Array], groups: Groups) -> State:
        return [pa.array(np.add.reduceat(state[0].to_numpy(), groups.begins))]

    def finish(self, state: Sequence[pa.Array]) -> pa.Array:
        return state[0]


@dataclass(frozen=True)
class Sum:
    """bigint, double or decimal; null where there was no value."""

    result: pa.DataType

    @property
    def state(self) -> tuple[pa.DataType, ...]:
        return (self.result,)

    def partial(self, values: pa.Array | None, times: TimeArray, groups: Groups) -> State:
        assert values is not None, "a sum has a column"
        if pa.types.is_decimal(self.result):
            # Twice the digits: Arrow's sums of 128 bits run over without a word.
            wide = values.cast(pa.decimal256(2 * MAX_PRECISION, self.result.scale))
            return [_fitting(_by_arrow(wide, "sum", groups), self.result)]
        # A bigint past 2^53 has no exact double, and Spark rounds it without a word.
        exact = not pa.types.is_floating(self.result)
        numbers, valid = _numbers(values.cast(self.result, safe=exact))
        if pa.types.is_integer(self.result):
            _refuse_overflow(numbers, groups)
        return [_per_group(np.add, numbers, valid, groups, self.result)]

    def merge(self, state: Sequence[pa.Array], groups: Groups) -> State:
        return self.partial(state[0], groups.begins, groups)

    def finish(self, state: Sequence[pa.Array]) -> pa.Array:
        return state[0]


@dataclass(frozen=True)
class Extreme:
    """The least or the largest value."""

    kind: pa.DataType
    function: str

    @property
    def state(self) -> tuple[pa.DataType, ...]:
        return (self.kind,)

    def partial(self, values: pa.Array | None, times: TimeArray, groups: Groups) -> State:
        assert values is not None, "an extreme has a column"
        if not _is_fixed(self.kind):
            return [_by_arrow(values, self.function, groups)]
        numbers, valid = _numbers(values)
        # NaN is the largest value: `maximum` passes it on, `fmin` looks past it.
        reduce = np.maximum if self.function == "max" else np.fmin
        return [_per_group(reduce, numbers, valid, groups, self.kind)]

    def merge(self, state: Sequence[pa.Array], groups: Groups) -> State:
        return self.partial(state[0], groups.begins, groups)

    def finish(self, state: Sequence[pa.Array]) -> pa.Array:
        return state[0]


@dataclass(frozen=True)
class Mean:
    """A sum and a count; of decimals the quotient is rounded half up, as in Spark."""

    kind: pa.DataType
    result: pa.DataType

    @property
    def _sum(self) -> Sum:
        if pa.types.is_decimal(self.kind):
            return Sum(result_type("sum", self.kind))
        return Sum(pa.float64())

    @property
    def state(self) -> tuple[pa.DataType, ...]:
        return (self._sum.result, pa.int64())

    def partial(self, values: pa.Array | None, times: TimeArray, groups: Groups) -> State:
        count = Count().partial(values, times, groups)
        return [*self._sum.partial(values, times, groups), *count]

    def merge(self, state: Sequence[pa.Array], groups: Groups) -> State:
        return [*self._sum.merge(state[:1], groups), *Count().merge(state[1:], groups)]

    def finish(self, state: Sequence[pa.Array]) -> pa.Array:
        total, count = state
        # A sum is null where the count is zero, so the quotient is, too.
        if not pa.types.is_decimal(self.kind):
            return pc.divide(total, count.cast(pa.float64()))
        wide = total.cast(pa.decimal256(MAX_PRECISION, self.kind.scale))
        one = pa.scalar(1, pa.int64())
        quotient = pc.divide(wide, pc.max_element_wise(count, one).cast(pa.decimal256(20, 0)))
        rounded = pc.round(quotient, self.result.scale, "half_towards_infinity")
        return rounded.cast(self.result)


@dataclass(frozen=True)
class Distinct:
    """About how many different values; see `skewless.kernels.distinct`."""

    state: tuple[pa.DataType, ...] = (pa.list_(pa.uint16()),)

    def partial(self, values: pa.Array | None, times: TimeArray, groups: Groups) -> State:
        assert values is not None, "distinct values have a column"
        values, ids = _present(values, groups)
        return [self._sketches(ids, entries_of(hash_values(values)), len(groups))]

    def merge(self, state: Sequence[pa.Array], groups: Groups) -> State:
        entries = state[0].flatten().to_numpy()
        return [self._sketches(list_groups(state[0], groups.ids), entries, len(groups))]

    def finish(self, state: Sequence[pa.Array]) -> pa.Array:
        sketches = state[0]
        ids = list_groups(sketches, np.arange(len(sketches), dtype=np.int64))
        return pa.array(estimates(ids, sketches.flatten().to_numpy(), len(sketches)))

    def _sketches(
        self, ids: npt.NDArray[np.int64], entries: npt.NDArray[np.uint16], groups: int
    ) -> pa.Array:
        ids, entries = highest(ids, entries)
        return _lists(ids, pa.array(entries), groups)


@dataclass(frozen=True)
class CollectList:
    """Every value that is not null, by event time; the times are kept to merge by."""

    kind: pa.DataType

    @property
    def state(self) -> tuple[pa.DataType, ...]:
        return (pa.list_(self.kind), pa.list_(pa.int64()))

    def partial(self, values: pa.Array | None, times: TimeArray, groups: Groups) -> State:
        assert values is not None, "a list has a column"
        ids = groups.ids
        if values.null_count:
            valid = values.is_valid().to_numpy(zero_copy_only=False)
            values, times, ids = values.filter(pa.array(valid)), times[valid], ids[valid]
        return self._ordered(ids, times, values, len(groups))

    def merge(self, state: Sequence[pa.Array], groups: Groups) -> State:
        ids = list_groups(state[0], groups.ids)
        return self._ordered(ids, state[1].flatten().to_numpy(), state[0].flatten(), len(groups))

    def finish(self, state: Sequence[pa.Array]) -> pa.Array:
        return state[0]

    def _ordered(
        self, ids: npt.NDArray[np.int64], times: TimeArray, values: pa.Array, groups: int
    ) -> State:
        order = np.lexsort((times, ids))
        taken = values.take(pa.array(order))
        return [_lists(ids, taken, groups), _lists(ids, pa.array(times[order]), groups)]


@dataclass(frozen=True)
class CollectSet:
    """Every different value that is not null."""

    kind: pa.DataType

    @property
    def state(self) -> tuple[pa.DataType, ...]:
        return (pa.list_(self.kind),)

    def partial(self, values: pa.Array | None, times: TimeArray, groups: Groups) -> State:
        assert values is not None, "a set has a column"
        values, ids = _present(values, groups)
        return [self._distinct(ids, values, len(groups))]

    def merge(self, state: Sequence[pa.Array], groups: Groups) -> State:
        ids = list_groups(state[0], groups.ids)
        return [self._distinct(ids, state[0].flatten(), len(groups))]

    def finish(self, state: Sequence[pa.Array]) -> pa.Array:
        return state[0]

    def _distinct(self, ids: npt.NDArray[np.int64], values: pa.Array, groups: int) -> pa.Array:
        if pa.types.is_floating(self.kind):
            numbers = without_negative_zero(values).to_numpy(zero_copy_only=False)
            values = pa.array(np.where(np.isnan(numbers), np.nan, numbers), self.kind)
        encoded = values.dictionary_encode()
        codes = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        _, first = np.unique(ids * (len(encoded.dictionary) + 1) + codes, return_index=True)
        return _lists(ids[first], values.take(pa.array(first)), groups)


def _per_group(
    reduce: np.ufunc, numbers: Numbers, valid: Mask | None, groups: Groups, kind: pa.DataType
) -> pa.Array:
    if valid is None:
        return _as_type(reduce.reduceat(numbers, groups.begins), None, kind)
    kept = np.flatnonzero(valid)
    ids = groups.ids[kept]
    found = np.zeros(len(groups), numbers.dtype)
    empty = np.ones(len(groups), np.bool_)
    if len(kept):
        begins = np.flatnonzero(np.concatenate([[True], ids[1:] != ids[:-1]]))
        found[ids[begins]] = reduce.reduceat(numbers[kept], begins)
        empty[ids[begins]] = False
    return _as_type(found, empty, kind)


def _numbers(values: pa.Array) -> tuple[Numbers, Mask | None]:
    """Fixed-width values as numpy has them, and which are not null; None: all are."""
    valid = None
    if values.null_count:
        valid = values.is_valid().to_numpy(zero_copy_only=False)
    if pa.types.is_boolean(values.type):
        return values.fill_null(False).to_numpy(zero_copy_only=False).astype(np.uint8), valid
    carried = values.view(_carrier(values.type))
    return (carried if valid is None else carried.fill_null(0)).to_numpy(), valid


def _as_type(numbers: Numbers, empty: Mask | None, kind: pa.DataType) -> pa.Array:
    if pa.types.is_boolean(kind):
        return pa.array(numbers.astype(np.bool_), mask=empty)
    return pa.array(numbers, _carrier(kind), mask=empty).view(kind)


def _is_fixed(kind: pa.DataType) -> bool:
    return any(
        is_kind(kind)
        for is_kind in (
            pa.types.is_boolean,
            pa.types.is_integer,
            pa.types.is_floating,
            pa.types.is_date,
            pa.types.is_timestamp,
            pa.types.is_duration,
        )
    )


def _carrier(kind: pa.DataType) -> pa.DataType:
    """The number that a fixed-width type is stored as."""
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return kind
    return pa.int32() if kind.bit_width == 32 else pa.int64()


def _present(values: pa.Array, groups: Groups) -> tuple[pa.Array, npt.NDArray[np.int64]]:
    """The values that are not null, and their groups."""
    if not values.null_count:
        return values, groups.ids
    valid = values.is_valid()
    return values.filter(valid), groups.ids[valid.to_numpy(zero_copy_only=False)]


def _lists(ids: npt.NDArray[np.int64], values: pa.Array, groups: int) -> pa.Array:
    """One list per group of values that stand group by group."""
    offsets = np.zeros(groups + 1, np.int32)
    np.cumsum(np.bincount(ids, minlength=groups), out=offsets[1:])
    return pa.ListArray.from_arrays(pa.array(offsets), values)


def _by_arrow(values: pa.Array, function: str, groups: Groups) -> pa.Array:
    """For types that numpy does not have."""
    table = pa.table({"group": groups.ids, "value": values})
    found = table.group_by("group", use_threads=False).aggregate([("value", function)])
    column = found.column(f"value_{function}").combine_chunks()
    return column.chunk(0) if isinstance(column, pa.ChunkedArray) else column


def _fitting(sums: pa.Array, kind: pa.DataType) -> pa.Array:
    try:
        return sums.cast(kind)
    except pa.ArrowInvalid as failure:
        raise SkewlessError(f"process: a sum does not fit {kind}: {failure}") from failure


def _refuse_overflow(numbers: Numbers, groups: Groups) -> None:
    """Refuses a bigint sum that would run over, exactly.

    The upper and lower halves are added apart; only large values get that far.
    """
    if not len(numbers):
        return
    largest = max(abs(int(numbers.min())), abs(int(numbers.max())))
    if largest * len(numbers) < 2**63:
        return
    upper = np.add.reduceat(numbers >> 32, groups.begins)
    lower = np.add.reduceat(numbers & 0xFFFFFFFF, groups.begins)
    upper = upper + (lower >> 32)
    if (upper >= 2**31).any() or (upper < -(2**31)).any():
        raise SkewlessError("process: a sum does not fit a bigint; cast the column to a decimal")
