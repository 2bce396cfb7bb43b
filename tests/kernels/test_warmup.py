"""The warm-up compiles every function the tasks use, so that no batch waits for a compiler."""

import numpy as np
import pyarrow as pa

from skewless.kernels import intervals, ordering, sets
from skewless.kernels.intervals import Pairs, ranges_within
from skewless.kernels.ordering import order_by_hash_and_time
from skewless.kernels.warmup import compile_kernels, compile_sets


def signatures() -> int:
    compiled = (
        *(ordering._sort_ties, intervals._ranges, intervals._fill),
        *(sets._overlapping, sets._products, sets._count_common, sets._fill_common),
        *(sets._sign, sets._may_overlap),
    )
    return sum(len(function.signatures) for function in compiled)


def test_a_batch_after_the_warm_up_compiles_nothing() -> None:
    compile_kernels()
    compile_sets()
    compiled = signatures()
    hashes, times = np.array([1, 1], np.uint64), np.array([0, 1], np.int64)
    mapped_hashes, mapped_times = hashes.copy(), times.copy()
    mapped_hashes.flags.writeable = False
    mapped_times.flags.writeable = False
    order_by_hash_and_time(mapped_hashes, mapped_times)
    for stored in ((hashes, times), (mapped_hashes, mapped_times)):
        start, count, total = ranges_within(hashes, times, *stored, -1, 1)
        pairs = Pairs(start, count, total)
        pairs.take(1)
        pairs.take(1)
    column = pa.array([[1, 2], [2]], pa.list_(pa.int64()))
    plain = sets.ItemSets.of(column, "h", "w", "i")
    signed = pa.array(sets.signatures_of(plain)).to_numpy()
    plain = sets.ItemSets.of(column, "h", "w", "i", signed)
    sets.SetPairs(plain, np.arange(2), plain, np.arange(2)).overlapping(1, np.array([1, 2]))
    assert signatures() == compiled
