"""Sorted runs: rows of one side by (hash, time), in memory or mapped from a segment."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from skewless.kernels.ordering import HashArray, IndexArray, TimeArray, order_by_hash_and_time
from skewless.kernels.pieces import ARRAY_BYTES, schema_for

RowNumbers = npt.NDArray[np.int32]


@dataclass(frozen=True)
class SortedRun:
    """Rows sorted by (hash, time), or an inverted index over rows in any order.

    An index has a posting (hash, time, row number) for every item under which a row is found; its
    postings are sorted by (hash, time), and `at` has their row numbers. Without `at` every row is
    its own posting: rows have one key, and stand in the order of their hashes.

    `mixed_keys` says that some hash stands for more than one key, so that keys must be compared
    pair by pair. A 64-bit hash makes that rare; correctness does not rest on it.
    """

    hashes: HashArray
    times: TimeArray
    rows: pa.RecordBatch
    mixed_keys: bool
    at: RowNumbers | None = None
    present: IndexArray | None = None  # the partitions that it has rows of; None: hashes tell

    def __len__(self) -> int:
        """How many postings there are."""
        return len(self.hashes)

    @property
    def row_bytes(self) -> float:
        """Mean bytes of a row, for sizing output chunks."""
        return float(self.rows.get_total_buffer_size()) / max(1, self.rows.num_rows)

    def rows_of(self, postings: IndexArray) -> IndexArray:
        """The row numbers of some postings."""
        return postings if self.at is None else self.at[postings].astype(np.int64)

    def kept(self, mask: npt.NDArray[np.bool_]) -> "SortedRun":
        """Some of the postings, and the rows that have any of them."""
        if mask.all():
            return self
        hashes, times = self.hashes[mask], self.times[mask]
        if self.at is None:
            return SortedRun(hashes, times, self.rows.filter(pa.array(mask)), self.mixed_keys)
        rows, at = _with_postings(self.rows, self.at[mask])
        return SortedRun(hashes, times, rows, self.mixed_keys, at)


def sort_run(
    hashes: HashArray,
    times: TimeArray,
    rows: pa.RecordBatch,
    keys: Sequence[str],
    chosen: IndexArray | None = None,
    hash_is_key: bool = False,
) -> SortedRun:
    """Sorts the chosen rows (all by default) into a run, in one gather.

    `hash_is_key`: the hash is one-to-one on the key's type, so equal hashes are equal keys.
    """
    if chosen is not None:
        order = order_by_hash_and_time(hashes[chosen], times[chosen])
        order = chosen[order]
    else:
        order = order_by_hash_and_time(hashes, times)
    taken = rows.take(pa.array(order))
    sorted_hashes = hashes[order]
    mixed = not hash_is_key and _has_mixed_keys(sorted_hashes, [taken.column(k) for k in keys])
    return SortedRun(sorted_hashes, times[order], taken, mixed)


def index_rows(
    hashes: HashArray, times: TimeArray, rows: pa.RecordBatch, at: npt.NDArray[np.integer]
) -> SortedRun:
    """The inverted index of the rows that have postings: hash, time and row number of each.

    >>> rows = pa.record_batch({"v": ["a", "b", "c"]})
    >>> run = index_rows(np.array([9, 3, 4], np.uint64), np.zeros(3, np.int64), rows, np.arange(3))
    >>> run.hashes.tolist(), run.at.tolist()
    ([3, 4, 9], [1, 2, 0])
    """
    order = order_by_hash_and_time(hashes, times)
    rows, at = _with_postings(rows, at)
    return SortedRun(hashes[order], times[order], rows, False, at[order])


def _with_postings(
    rows: pa.RecordBatch, at: npt.NDArray[np.integer]
) -> tuple[pa.RecordBatch, RowNumbers]:
    """The rows that have postings, and the row numbers of these among them."""
    used = np.zeros(rows.num_rows, np.bool_)
    used[at] = True
    if used.all():
        return rows, at.astype(np.int32, copy=False)
    return rows.filter(pa.array(used)), (np.cumsum(used, dtype=np.int32) - 1)[at].astype(np.int32)


def merged(runs: Sequence[SortedRun], keys: Sequence[str], hash_is_key: bool) -> SortedRun:
    """Several runs as one; all of them are indexes, or none is."""
    hashes = np.concatenate([run.hashes for run in runs])
    times = np.concatenate([run.times for run in runs])
    rows = concatenate([run.rows for run in runs])
    at: list[npt.NDArray[np.int64]] = []
    before = 0
    for run in runs:
        if run.at is not None:
            at.append(run.at + np.int64(before))
        before += run.rows.num_rows
    if at:
        return index_rows(hashes, times, rows, np.concatenate(at))
    return sort_run(hashes, times, rows, keys, hash_is_key=hash_is_key)


def equal_keys(left: Sequence[pa.Array], right: Sequence[pa.Array]) -> npt.NDArray[np.bool_]:
    """Row by row equality of two lists of key columns (nulls already removed)."""
    result: npt.NDArray[np.bool_] | None = None
    for a, b in zip(left, right, strict=True):
        if pa.types.is_floating(a.type):
            # As Spark joins: NaN equals NaN, and -0.0 equals 0.0.
            x, y = a.to_numpy(zero_copy_only=False), b.to_numpy(zero_copy_only=False)
            same = (x == y) | (np.isnan(x) & np.isnan(y))
        else:
            same = pc.equal(a, b).to_numpy(zero_copy_only=False)
        result = same if result is None else result & same
    assert result is not None, "a join has at least one key column"
    return result.astype(np.bool_, copy=False)


def equal_at_rows(
    left: SortedRun,
    right: SortedRun,
    left_rows: IndexArray,
    right_rows: IndexArray,
    keys: Sequence[str],
) -> npt.NDArray[np.bool_]:
    """Whether pairs of rows, by their numbers in two runs, have equal keys."""
    if not len(left_rows):
        return np.zeros(0, np.bool_)
    at_left, at_right = pa.array(left_rows), pa.array(right_rows)
    return equal_keys(
        [left.rows.column(k).take(at_left) for k in keys],
        [right.rows.column(k).take(at_right) for k in keys],
    )


def _has_mixed_keys(hashes: HashArray, keys: Sequence[pa.Array]) -> bool:
    if len(hashes) < 2:
        return False
    neighbours = np.flatnonzero(hashes[1:] == hashes[:-1])
    if len(neighbours) == 0:
        return False
    first = pa.array(neighbours)
    second = pa.array(neighbours + 1)
    return not equal_keys([k.take(first) for k in keys], [k.take(second) for k in keys]).all()


def concatenate(
    batches: Sequence[pa.RecordBatch], array_bytes: int = ARRAY_BYTES
) -> pa.RecordBatch:
    """Several batches as one, in the schema of the first; with large offsets where it needs them.

    Stored rows may differ from new ones in how a type is written (the session's time zone, large
    or small text offsets), never in what it means.
    """
    schema = schema_for(sum(b.nbytes for b in batches), batches[0].schema, array_bytes)
    return pa.concat_batches([b if b.schema.equals(schema) else b.cast(schema) for b in batches])
