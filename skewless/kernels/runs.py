"""Sorted runs: rows of one side in (hash, time) order, in memory or mapped from a segment."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from skewless.kernels.ordering import HashArray, IndexArray, TimeArray, order_by_hash_and_time
from skewless.kernels.pieces import ARRAY_BYTES, schema_for


@dataclass(frozen=True)
class SortedRun:
    """Rows sorted by (hash, time).

    `mixed_keys` says that some hash stands for more than one key, so that keys must be compared
    pair by pair. A 64-bit hash makes that rare; correctness does not rest on it.
    """

    hashes: HashArray
    times: TimeArray
    rows: pa.RecordBatch
    mixed_keys: bool

    def __len__(self) -> int:
        return len(self.hashes)

    @property
    def row_bytes(self) -> float:
        """Mean bytes of a row, for sizing output chunks."""
        return float(self.rows.get_total_buffer_size()) / max(1, len(self))


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
