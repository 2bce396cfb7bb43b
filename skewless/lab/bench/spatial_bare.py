"""Subscriptions in one process, without Spark: our index of rectangles, and shapely's STRtree."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from skewless.kernels.rectangles import Boxes, Extent, Needles, RectangleIndex
from skewless.lab.bench.spatial_engines import STRTREE, tree_of
from skewless.lab.bench.spatial_scenes import BOUNDS, SEED, SIDE, query_table
from skewless.lab.workloads.hotspots import around

INDEX = "index"
# Pairs at a time, as in a task.
PORTION = 65_536

# How many pairs the points have with the subscriptions.
Search = Callable[[], int]


def searches(subscriptions: int, points: int) -> dict[str, Search]:
    """Both contenders with the same points and the same subscriptions, built already."""
    rng = np.random.default_rng(SEED)
    queries = query_table(around(rng.random((subscriptions, 2)), SIDE))
    x, y = rng.random((2, points))
    index = index_of(queries)
    tree, _ = tree_of(queries)
    return {INDEX: lambda: in_index(index, x, y), STRTREE: lambda: in_tree(tree, x, y)}


def index_of(queries: pa.Table) -> RectangleIndex:
    edges = [queries[name].to_numpy() for name in ("x_min", "y_min", "x_max", "y_max")]
    extent, boxes = Extent(*BOUNDS), Boxes(*edges)
    keys = extent.keys(boxes)
    order = np.argsort(keys)
    return RectangleIndex(extent, keys[order], boxes.among(order))


def in_index(index: RectangleIndex, x: Any, y: Any) -> int:
    search = index.around(Needles(index.extent, x, y))
    return sum(len(found.points) for found in search.portions(PORTION))


def in_tree(tree: Any, x: Any, y: Any) -> int:
    import shapely

    point, _ = tree.query(shapely.points(x, y))
    return len(point)


def measure(
    contenders: dict[str, Search],
    repeats: int,
    clock: Callable[[], float] = time.perf_counter,
) -> tuple[dict[str, list[float]], dict[str, int]]:
    """The seconds of every contender, in turn, after one turn to warm up; and their pairs."""
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    pairs: dict[str, int] = {}
    for turn in range(repeats + 1):
        for name, search in contenders.items():
            began = clock()
            pairs[name] = search()
            if turn:
                seconds[name].append(clock() - began)
    return seconds, pairs
