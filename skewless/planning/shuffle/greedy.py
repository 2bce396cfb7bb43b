"""Greedy assignment of the rows of a batch: the heaviest first, each to the least loaded."""

import numpy as np
import numpy.typing as npt
from numba import njit

from skewless.errors import bad_argument

Floats = npt.NDArray[np.float64]
Instances = npt.NDArray[np.int32]


def assign_batch(
    costs: Floats, instances: int, start_loads: Floats | None = None, offset: int = 0
) -> Instances:
    """The instance of every row, the heaviest row first (LPT).

    From equal loads the makespan is at most 4/3 − 1/(3k) times the best one (Graham).
    Partitions of a batch assign their rows independently. `offset` rotates the order in which
    equally loaded instances are filled, so that the remainder does not always go to the same ones.
    Rows of equal cost are dealt out in turn.

    >>> assign_batch(np.array([1.0, 5.0, 3.0, 3.0]), 2).tolist()
    [0, 0, 1, 1]
    >>> assign_batch(np.ones(5), 3, offset=2).tolist()
    [2, 0, 1, 2, 0]
    """
    loads = _loads(start_loads, instances)
    if not len(costs):
        return np.empty(0, np.int32)
    alike = costs.min() == costs.max()
    if alike and loads.min() == loads.max():
        return ((np.arange(len(costs)) + offset) % instances).astype(np.int32)
    order = np.arange(len(costs)) if alike else np.argsort(-costs, kind="stable")
    return _assign(costs, order, loads, np.ones(instances), offset)


def assign_in_order(
    costs: Floats,
    start_loads: Floats,
    offset: int = 0,
    slowness: Floats | None = None,
    *,
    heaviest_first: bool = False,
) -> Instances:
    """Greedy Online Scheduling: every row in turn to the instance with the least work so far.

    `costs` may have one line per instance, if the cost of a row depends on the instance. The least
    loaded instance is then chosen before the cost is looked up, as in Listing III.2. Otherwise
    `slowness` may say how much longer each instance takes; a row goes where it finishes first.
    """
    instances = len(start_loads)
    loads = _loads(start_loads, instances)
    if costs.ndim == 2:
        if costs.shape[0] != instances:
            raise bad_argument("costs", costs.shape[0], f"a line for each of {instances} instances")
        return _assign_by_instance(costs, loads, offset)
    order = np.argsort(-costs, kind="stable") if heaviest_first else np.arange(len(costs))
    slow = np.ones(instances) if slowness is None else slowness
    return _assign(costs, order, loads, slow, offset)


def loads_after(costs: Floats, assigned: Instances, start_loads: Floats) -> Floats:
    """The total load of every instance."""
    return start_loads + np.bincount(assigned, costs, len(start_loads))


def warm_up() -> None:
    """Compiles what the assignments run, or loads it from the cache."""
    costs, loads = np.array([1.0, 2.0]), np.zeros(2)
    assign_batch(costs, 2)
    assign_in_order(costs, loads, slowness=np.array([1.0, 2.0]))
    assign_in_order(np.stack([costs, costs]), loads)


def _loads(start_loads: Floats | None, instances: int) -> Floats:
    if instances < 1:
        raise bad_argument("instances", instances, "a whole number of at least 1")
    if start_loads is None:
        return np.zeros(instances)
    if len(start_loads) != instances:
        raise bad_argument("start_loads", len(start_loads), f"one load for each of {instances}")
    return start_loads.astype(np.float64)


def _assign(
    costs: Floats, order: npt.NDArray[np.int64], loads: Floats, slowness: Floats, offset: int
) -> Instances:
    target = np.empty(len(costs), np.int32)
    if (slowness == slowness[0]).all():
        _to_least_loaded(costs, order, loads, offset % len(loads), target)
    else:
        _to_first_done(costs, order, loads, slowness, offset % len(loads), target)
    return target


def _assign_by_instance(costs: Floats, loads: Floats, offset: int) -> Instances:
    target = np.empty(costs.shape[1], np.int32)
    _in_arrival_order(costs, loads, offset % len(loads), target)
    return target


@njit(cache=True, nogil=True, inline="always")
def _before(load_a, rank_a, load_b, rank_b):  # type: ignore[no-untyped-def]
    return load_a < load_b or (load_a == load_b and rank_a < rank_b)


@njit(cache=True, nogil=True)
def _sink(heap, at, loads, rank):  # type: ignore[no-untyped-def]
    size = len(heap)
    moving = heap[at]
    while True:
        child = 2 * at + 1
        if child >= size:
            break
        other = child + 1
        if other < size and _before(
            loads[heap[other]], rank[heap[other]], loads[heap[child]], rank[heap[child]]
        ):
            child = other
        if not _before(loads[heap[child]], rank[heap[child]], loads[moving], rank[moving]):
            break
        heap[at] = heap[child]
        at = child
    heap[at] = moving


@njit(cache=True, nogil=True)
def _to_least_loaded(costs, order, loads, offset, target):  # type: ignore[no-untyped-def]
    k = len(loads)
    rank = (np.arange(k) - offset) % k
    heap = np.arange(k)
    for at in range(k // 2 - 1, -1, -1):
        _sink(heap, at, loads, rank)
    for row in order:
        least = heap[0]
        target[row] = least
        loads[least] += costs[row]
        _sink(heap, 0, loads, rank)


@njit(cache=True, nogil=True)
def _to_first_done(costs, order, loads, slowness, offset, target):  # type: ignore[no-untyped-def]
    k = len(loads)
    for row in order:
        best = -1
        soonest = np.inf
        for turn in range(k):
            i = (turn + offset) % k
            done = loads[i] + costs[row] * slowness[i]
            if done < soonest:
                best, soonest = i, done
        target[row] = best
        loads[best] = soonest


@njit(cache=True, nogil=True)
def _in_arrival_order(costs, loads, offset, target):  # type: ignore[no-untyped-def]
    k = len(loads)
    rank = (np.arange(k) - offset) % k
    heap = np.arange(k)
    for at in range(k // 2 - 1, -1, -1):
        _sink(heap, at, loads, rank)
    for row in range(costs.shape[1]):
        least = heap[0]
        target[row] = least
        loads[least] += costs[least, row]
        _sink(heap, 0, loads, rank)
