"""The inner loops of the simulation: where a tuple goes, what it costs, when it is done.

Every instance serves its tuples first come, first served, and routing delays all tuples alike. So
the end of a tuple's service follows from the tuple before it (Lindley's recursion):
`end = max(arrival, end of the one before) + service`, and a stored row is seen by exactly those
probes that arrived after it. One pass in order of arrival therefore gives the very numbers that a
queue of events would give, without the queue; a test compares the two.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from skewless.simulate.streams import LEFT, RIGHT

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Ints32 = npt.NDArray[np.int32]
Flags = npt.NDArray[np.bool_]


class Routes(NamedTuple):
    """Where the tuples of every key go.

    A key has a route. For each side a route has `sets` of `size` instances; a tuple goes to all
    instances of one set, taken at random. Every set of one side meets every set of the other on
    exactly one instance: the j-th instance of a set holds the j-th set of the other side.
    """

    of_key: Ints32
    single_key: Flags  # the route belongs to one key, which is split
    first: Ints  # [route, side] into members
    sets: Ints
    size: Ints
    set_id: Ints  # [route]: number of the right side's first set among those of all routes
    members: Ints


class Stored(NamedTuple):
    """How many rows of the right side are stored."""

    by_key: Ints
    by_partition: Ints  # without the rows of split keys
    by_instance: Ints  # a row counts on every instance that holds it
    by_set: Ints  # of split keys only
    partition_rows: Ints  # with split keys; each row once


class Log(NamedTuple):
    """The stored rows in order of arrival; `ends` = [oldest that lives, one past the newest]."""

    time_s: Floats
    key: Ints32
    chosen: Ints32  # the set the row was sent to
    ends: Ints


class Work(NamedTuple):
    """What was measured since the controller looked last."""

    by_key: Floats  # seconds of service
    by_partition: Floats
    by_instance: Floats
    rows_by_key: Ints  # [side, key]
    rows_by_partition: Ints
    rows_by_instance: Ints


class Prices(NamedTuple):
    """The cost model as the kernel reads it."""

    by_index: bool
    scan_instance: bool
    tuple_s: float
    compare_s: float
    match_s: float


@njit(cache=True, nogil=True)
def _count(stored, routes, partition_of, key, chosen, change):  # type: ignore[no-untyped-def]
    route = routes.of_key[key]
    partition = partition_of[key]
    stored.by_key[key] += change
    stored.partition_rows[partition] += change
    if routes.single_key[route]:
        stored.by_set[routes.set_id[route] + chosen] += change
    else:
        stored.by_partition[partition] += change
    size = routes.size[route, RIGHT]
    begin = routes.first[route, RIGHT] + chosen * size
    for at in range(begin, begin + size):
        stored.by_instance[routes.members[at]] += change


@njit(cache=True, nogil=True)
def _forget(log, stored, routes, partition_of, before_s):  # type: ignore[no-untyped-def]
    oldest = log.ends[0]
    while oldest < log.ends[1] and log.time_s[oldest] < before_s:
        _count(stored, routes, partition_of, log.key[oldest], log.chosen[oldest], -1)
        oldest += 1
    log.ends[0] = oldest


@njit(cache=True, nogil=True)
def _store(log, stored, routes, partition_of, time_s, key, chosen):  # type: ignore[no-untyped-def]
    newest = log.ends[1]
    log.time_s[newest] = time_s
    log.key[newest] = key
    log.chosen[newest] = chosen
    log.ends[1] = newest + 1
    _count(stored, routes, partition_of, key, chosen, 1)


@njit(cache=True, nogil=True)
def fill(log, stored, routes, partition_of, time_s, key, side, draw):  # type: ignore[no-untyped-def]
    """Store the right side's tuples without serving anything."""
    for i in range(len(key)):
        if side[i] == RIGHT:
            chosen = draw[i] % routes.sets[routes.of_key[key[i]], RIGHT]
            _store(log, stored, routes, partition_of, time_s[i], key[i], chosen)


@njit(cache=True, nogil=True)
def _probe_s(stored, routes, prices, route, partition, key, position, instance):  # type: ignore[no-untyped-def]
    """Seconds that a probe takes on one instance, beyond those of any tuple."""
    if routes.single_key[route]:
        matches = float(stored.by_set[routes.set_id[route] + position])
        in_partition = matches
    else:
        # Replicating routers deal the rows of a key out evenly, so its share is known.
        share = 1.0 / routes.sets[route, RIGHT]
        matches = stored.by_key[key] * share
        in_partition = stored.by_partition[partition] * share
    if prices.by_index:
        looked_at = np.log2(1.0 + stored.by_instance[instance])
    elif prices.scan_instance:
        looked_at = float(stored.by_instance[instance])
    else:
        looked_at = in_partition
    return prices.compare_s * looked_at + prices.match_s * matches


@njit(cache=True, nogil=True)
def offer(  # type: ignore[no-untyped-def]
    time_s, key, side, draw, log, stored, routes, partition_of, work, prices, window_s,
    copy_of, copy_instance, copy_s,
):  # fmt: skip
    """Route the tuples, store and probe; gives the number of copies and fills the copy arrays."""
    copies = 0
    for i in range(len(key)):
        _forget(log, stored, routes, partition_of, time_s[i] - window_s)
        k = key[i]
        d = side[i]
        route = routes.of_key[k]
        partition = partition_of[k]
        sets = routes.sets[route, d]
        chosen = draw[i] % sets if sets > 1 else 0
        size = routes.size[route, d]
        begin = routes.first[route, d] + chosen * size
        for j in range(size):
            instance = routes.members[begin + j]
            cost = prices.tuple_s
            if d == LEFT:
                cost += _probe_s(stored, routes, prices, route, partition, k, j, instance)
            copy_of[copies] = i
            copy_instance[copies] = instance
            copy_s[copies] = cost
            copies += 1
            work.by_key[k] += cost
            work.by_partition[partition] += cost
            work.by_instance[instance] += cost
            work.rows_by_instance[instance] += 1
        work.rows_by_key[d, k] += 1
        work.rows_by_partition[partition] += 1
        if d == RIGHT:
            _store(log, stored, routes, partition_of, time_s[i], k, chosen)
    return copies


@njit(cache=True, nogil=True)
def serve(arrived_s, copy_of, copy_instance, copy_s, factor, free_s, done_s):  # type: ignore[no-untyped-def]
    """Lindley's recursion, for the copies in order of arrival."""
    for c in range(len(copy_of)):
        i = copy_of[c]
        instance = copy_instance[c]
        start = max(arrived_s[i], free_s[instance])
        end = start + copy_s[c] * factor[instance]
        free_s[instance] = end
        done_s[i] = max(done_s[i], end)


@njit(cache=True, nogil=True)
def relocate(log, old, new, partition_of, draw, moved_out, moved_in, source_of):  # type: ignore[no-untyped-def]
    """Choose new sets where a route changed, and count the rows that change their place."""
    moved = 0
    for at in range(log.ends[0], log.ends[1]):
        key = log.key[at]
        before, after = old.of_key[key], new.of_key[key]
        old_size = old.size[before, RIGHT]
        old_first = old.first[before, RIGHT] + log.chosen[at] * old_size
        if new.sets[after, RIGHT] != old.sets[before, RIGHT]:
            log.chosen[at] = draw[at] % new.sets[after, RIGHT]
        size = new.size[after, RIGHT]
        first = new.first[after, RIGHT] + log.chosen[at] * size
        for target in new.members[first : first + size]:
            known = False
            for source in old.members[old_first : old_first + old_size]:
                known |= source == target
            if not known:
                moved += 1
                moved_out[old.members[old_first]] += 1
                moved_in[target] += 1
                source_of[partition_of[key]] = old.members[old_first]
    return moved


@njit(cache=True, nogil=True)
def recount(log, stored, routes, partition_of):  # type: ignore[no-untyped-def]
    """Count the rows that live, into counts that are empty."""
    for at in range(log.ends[0], log.ends[1]):
        _count(stored, routes, partition_of, log.key[at], log.chosen[at], 1)


def empty_stored(keys: int, partitions: int, routes: Routes, instances: int) -> Stored:
    """Nothing stored yet."""
    sets = int(routes.set_id[-1] + routes.sets[-1, RIGHT])
    return Stored(
        np.zeros(keys, np.int64),
        np.zeros(partitions, np.int64),
        np.zeros(instances, np.int64),
        np.zeros(sets, np.int64),
        np.zeros(partitions, np.int64),
    )


def empty_work(keys: int, partitions: int, instances: int) -> Work:
    """Nothing measured yet."""
    return Work(
        np.zeros(keys),
        np.zeros(partitions),
        np.zeros(instances),
        np.zeros((2, keys), np.int64),
        np.zeros(partitions, np.int64),
        np.zeros(instances, np.int64),
    )


def with_room(log: Log | None, rows: int) -> Log:
    """The rows that live, with room for so many more."""
    live = 0 if log is None else int(log.ends[1] - log.ends[0])
    grown = Log(
        np.empty(live + rows, np.float64),
        np.empty(live + rows, np.int32),
        np.empty(live + rows, np.int32),
        np.array([0, live]),
    )
    if log is not None:
        begin, end = log.ends
        grown.time_s[:live] = log.time_s[begin:end]
        grown.key[:live] = log.key[begin:end]
        grown.chosen[:live] = log.chosen[begin:end]
    return grown
