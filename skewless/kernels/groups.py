"""Brings the rows of a group together: equal hash, equal key, and where asked equal time."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from skewless.kernels.ordering import HashArray, IndexArray, TimeArray, order_by_hash_and_time
from skewless.kernels.runs import SortedRun

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Groups:
    """Rows in an order in which those of a group are neighbours; no group is empty."""

    order: IndexArray  # of the rows as they were given
    begins: IndexArray  # where each group begins in that order

    def __len__(self) -> int:
        return len(self.begins)

    @property
    def rows(self) -> int:
        return len(self.order)

    @property
    def heads(self) -> IndexArray:
        """One row of each group, by its place among the rows as they were given."""
        return self.order[self.begins]

    @cached_property
    def ids(self) -> IndexArray:
        """The number of its group for every row, in the groups' order."""
        sizes = np.diff(self.begins, append=self.rows)
        return np.repeat(np.arange(len(self.begins), dtype=np.int64), sizes)


def group_rows(
    hashes: HashArray, times: TimeArray, keys: Sequence[pa.Array], hash_is_key: bool
) -> Groups:
    """Groups of equal (hash, time, key), in the order of (hash, time) that segments have.

    Keys are compared once per pair of neighbours; only where a hash stands for several keys are
    they sorted. Nulls are equal to each other, as in SQL's GROUP BY.

    >>> hashes = np.array([7, 7, 7], np.uint64)
    >>> groups = group_rows(hashes, np.array([5, 3, 5]), [pa.array(["a", "a", "b"])], False)
    >>> [sorted(part.tolist()) for part in np.split(groups.order, groups.begins[1:])]
    [[1], [0], [2]]
    """
    order = order_by_hash_and_time(hashes, times)
    changes = _changes(hashes[order]) | _changes(times[order])
    if not proves_keys(keys, hash_is_key):
        differ = _key_changes(keys, order)
        if (differ & ~changes).any():
            codes = key_codes(keys)
            order = np.lexsort((codes, times, hashes)).astype(np.int64, copy=False)
            changes = _changes(hashes[order]) | _changes(times[order]) | _changes(codes[order])
    return Groups(order, np.flatnonzero(changes))


def group_keys(
    hashes: HashArray, times: TimeArray, keys: Sequence[pa.Array], hash_is_key: bool
) -> Groups:
    """Groups of equal (hash, key), the rows of each in time order."""
    order = order_by_hash_and_time(hashes, times)
    changes = _changes(hashes[order])
    if not proves_keys(keys, hash_is_key):
        differ = _key_changes(keys, order)
        if (differ & ~changes).any():
            codes = key_codes(keys)
            order = np.lexsort((times, codes, hashes)).astype(np.int64, copy=False)
            changes = _changes(hashes[order]) | _changes(codes[order])
    return Groups(order, np.flatnonzero(changes))


def proves_keys(keys: Sequence[pa.Array], hash_is_key: bool) -> bool:
    """Whether equal hashes are equal keys in these rows.

    A hash that is one-to-one on a type still has one value whose hash is that of null.
    """
    return hash_is_key and all(key.null_count == 0 for key in keys)


def same_keys(left: Sequence[pa.Array], right: Sequence[pa.Array]) -> Mask:
    """Row by row equality of two lists of key columns; null equals null, NaN equals NaN."""
    result: Mask = np.ones(len(left[0]), np.bool_)
    for a, b in zip(left, right, strict=True):
        if a.type != b.type:
            b = b.cast(a.type)
        same = pc.fill_null(pc.equal(a, b), False).to_numpy(zero_copy_only=False)
        if pa.types.is_floating(a.type):
            both = pc.and_(pc.is_nan(a), pc.is_nan(b))
            same = same | pc.fill_null(both, False).to_numpy(zero_copy_only=False)
        if a.null_count and b.null_count:
            both = pc.and_(a.is_null(), b.is_null())
            same = same | both.to_numpy(zero_copy_only=False)
        result &= same.astype(np.bool_, copy=False)
    return result


def key_codes(keys: Sequence[pa.Array]) -> IndexArray:
    """A number for every row, equal exactly where all key columns are.

    >>> key_codes([pa.array(["x", None, "x", None]), pa.array([1, 1, 2, 1])]).tolist()
    [0, 2, 1, 2]
    """
    codes: IndexArray | None = None
    for key in keys:
        if pa.types.is_floating(key.type):
            key = without_negative_zero(key)
        encoded = pc.dictionary_encode(key, null_encoding="encode")
        column = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        if codes is None:
            codes = column
        else:
            # Made dense at every step: the product stays below the square of the rows.
            pair = codes * (len(encoded.dictionary) + 1) + column
            codes = np.unique(pair, return_inverse=True)[1].astype(np.int64)
    assert codes is not None, "a group has at least one key column"
    return codes


def without_negative_zero(column: pa.Array) -> pa.Array:
    """Floats as Spark groups them: −0.0 is 0.0."""
    return pc.add(column, pa.scalar(0.0, column.type))


def keyed_run(
    hashes: HashArray, times: TimeArray, rows: pa.RecordBatch, keys: Sequence[str], proven: bool
) -> SortedRun:
    """Rows that are sorted by (hash, time) already, as a run that knows whether keys are mixed.

    `proven`: the hash is one-to-one on the key's type.
    """
    columns = [rows.column(k) for k in keys]
    mixed = False
    if len(hashes) > 1 and not proves_keys(columns, proven):
        everything = np.arange(len(hashes), dtype=np.int64)
        mixed = bool((_key_changes(columns, everything) & ~_changes(hashes)).any())
    return SortedRun(hashes, times, rows, mixed)


def sorted_keyed_run(
    hashes: HashArray, times: TimeArray, rows: pa.RecordBatch, keys: Sequence[str], proven: bool
) -> SortedRun:
    """Rows in any order as a run."""
    order = order_by_hash_and_time(hashes, times)
    return keyed_run(hashes[order], times[order], rows.take(pa.array(order)), keys, proven)


def _changes(values: npt.NDArray[np.uint64] | npt.NDArray[np.int64]) -> Mask:
    """Where a sorted value differs from the one before it; the first always does."""
    changes = np.ones(len(values), np.bool_)
    np.not_equal(values[1:], values[:-1], out=changes[1:])
    return changes


def _key_changes(keys: Sequence[pa.Array], order: IndexArray) -> Mask:
    changes = np.ones(len(order), np.bool_)
    if len(order) > 1:
        before, after = pa.array(order[:-1]), pa.array(order[1:])
        changes[1:] = ~same_keys([k.take(before) for k in keys], [k.take(after) for k in keys])
    return changes
