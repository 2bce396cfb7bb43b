"""Compiles the kernels, or loads them from numba's cache, before the first row needs them."""

from functools import cache

import numpy as np
import pyarrow as pa

from skewless.kernels.distance import Globe, Plane
from skewless.kernels.distinct import hash_values
from skewless.kernels.groups import Groups
from skewless.kernels.hashing import xxhash64
from skewless.kernels.intervals import Pairs, cut_ranges, ranges_within, spread_of_ranges
from skewless.kernels.nearest import NearestRows
from skewless.kernels.ordering import order_by_hash_and_time
from skewless.kernels.points import Parts, stretches
from skewless.kernels.rectangles import Boxes, Extent, RectangleIndex
from skewless.kernels.sessions import chains
from skewless.kernels.sets import ItemSets, SetPairs, signatures_of


@cache
def compile_kernels() -> None:
    """Runs every compiled function once on the types that it is used with; once in a process.

    A task asks for it before it looks at the clock: in a worker that is new and was not forked from
    one that has done it, the first rows would seem to cost what loading the kernels does.
    """
    hashes = np.zeros(2, np.uint64)
    times = np.zeros(2, np.int64)
    order_by_hash_and_time(hashes, times)
    for key in (np.zeros(2, np.int32), np.zeros(2, np.int64)):
        xxhash64(key)
        key.flags.writeable = False  # as Arrow's are
        xxhash64(key)
    # Segments are mapped read-only, which numba compiles as another type.
    stored_hashes, stored_times = hashes.copy(), times.copy()
    stored_hashes.flags.writeable = False
    stored_times.flags.writeable = False
    order_by_hash_and_time(stored_hashes, stored_times)
    for stored in ((hashes, times), (stored_hashes, stored_times)):
        start, count, total = ranges_within(hashes, times, *stored, 0, 0)
        Pairs(start, count, total).take(total)
    chains(Groups(np.arange(2), np.zeros(1, np.int64)), times, times)
    hash_values(pa.array(["a", "b"]))


@cache
def compile_sets() -> None:
    """On sets as Arrow has them, read-only; those whose items collide are rare enough to wait."""
    kind = pa.struct([("h", pa.int64()), ("i", pa.string()), ("w", pa.float64())])
    column = pa.array([[{"h": 1, "i": "a", "w": 1.0}]], pa.list_(kind))
    row, first = np.zeros(1, np.int64), np.ones(1, np.int64)
    signed = signatures_of(ItemSets.of(column, "h", "w", "i"))
    signed.flags.writeable = False
    sets = ItemSets.of(column, "h", "w", "i", signed)
    pairs = SetPairs(sets, row, sets, row)
    for least in (first, None):
        pairs.overlapping(1, least)
        pairs.products(least)
    pairs.proved()


@cache
def compile_rectangles() -> None:
    """What only subscriptions need."""
    extent = Extent(0.0, 0.0, 1.0, 1.0)
    edge = np.full(1, 0.5)
    boxes = Boxes(edge, edge, edge, edge)
    keys = extent.keys(boxes)
    list(RectangleIndex(extent, keys, boxes).around(edge, edge).portions(4))
    parts = Parts(2, (0.0, 0.0, 1.0, 1.0), 62)
    stretches(keys, parts, (edge, edge, edge, edge), np.ones(4, np.bool_))


@cache
def compile_near() -> None:
    """On coordinates as Arrow has them, read-only."""
    numbers, row = np.zeros(1), np.zeros(1, np.int64)
    numbers.flags.writeable = False
    for metric, count in ((Plane(1.0), 2), (Globe(1.0), 3)):
        metric.within((numbers,) * count, row, (numbers,) * count, row)
    NearestRows(1, 1).offer(row, np.zeros(1), row, np.zeros(1, np.uint64), 0, row)


@cache
def compile_shedding() -> None:
    """What only joins that shed need, on rows in memory and on mapped ones."""
    times, ranges = np.zeros(2, np.int64), np.zeros(2, np.int64)
    mapped = times.copy()
    mapped.flags.writeable = False
    for stored in (times, mapped):
        for needles in (times, mapped):
            cut_ranges(needles, stored, ranges, ranges, 0, 0)
            spread_of_ranges(
                needles, stored, ranges, ranges, np.arange(2), ranges, np.zeros((1, 1), np.int64)
            )
