"""Auto's search: units leave overloaded instances for light ones, as few stored rows as will do."""

import heapq
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from skewless.load.resources import per_instance
from skewless.planning.snapshot import Loads

Owners = npt.NDArray[np.int64]
Units = npt.NDArray[np.int64]

_SHEDDING_PASSES = 4
# How many of the lightest instances are asked before a straggler counts as stuck.
_PARTNERS = 4


@dataclass(frozen=True)
class Balance:
    """How near the instances are to the best that whole units allow.

    `level` is what an instance comes to that has no unit heavier than that, and `excess` how far
    each is above what it could have, as a share of the level.
    """

    level: float
    excess: Loads


def standing(loads: Loads, owners: Owners, fixed: Loads) -> Balance:
    """Compare the instances with the best that units of these sizes allow.

    A unit heavier than everyone's level fills an instance alone; the rest is shared by the others,
    so the level is theirs. An instance with such a unit is in excess by what it has besides.

    >>> standing(np.array([9.0, 1.0, 1.0, 2.0]), np.array([0, 0, 1, 2]), np.zeros(3))
    Balance(level=2.0, excess=array([0.5, 0. , 0. ]))
    """
    instances = len(fixed)
    total = float(loads.sum() + fixed.sum())
    level = total / instances
    heaviest = -np.partition(-loads, min(instances, len(loads)) - 1)[:instances]
    others = instances - 1
    for load in np.sort(heaviest)[::-1].tolist():
        # Without the last unit there would be nothing to share, and no level to compare with.
        if load <= level or not others or total - load <= 1e-9 * total:
            break
        total -= load
        level = total / others
        others -= 1
    if level <= 0:
        return Balance(0.0, np.zeros(instances))
    by_instance = per_instance(loads, owners, instances) + fixed
    reachable = np.maximum(level, _largest(loads, owners, instances))
    return Balance(level, np.maximum(by_instance - reachable, 0.0) / level)


def _largest(loads: Loads, owners: Owners, instances: int) -> Loads:
    """The load of every instance's heaviest unit."""
    largest = np.zeros(instances)
    np.maximum.at(largest, owners, loads)
    return largest


def rebalance(
    loads: Loads,
    rows: Loads,
    owners: Owners,
    fixed: Loads,
    *,
    tolerance: float,
    max_moves: int | None = None,
) -> Owners:
    """New owners of units, such that no instance is more than `tolerance` above the level that can
    be reached, as far as whole units allow.

    `loads` and `rows` are per unit (a partition, or a key), `fixed` is what an instance has to do
    besides. Units that can stay do; of those that can go, those go first that shed most load per
    stored row. Every change takes load from a heavier to a lighter instance and leaves both between
    what they were, so the result never is worse, and asked again it changes nothing.

    >>> rebalance(np.ones(4), np.ones(4), np.zeros(4, int), np.zeros(2), tolerance=0.1).tolist()
    [1, 1, 0, 0]
    """
    level = standing(loads, owners, fixed).level
    if level <= 0:
        return owners.copy()
    new = _shed_and_place(loads, rows, owners, fixed, level, tolerance)
    new = _polish(loads, rows, new, fixed, level, tolerance)
    changed = int((new != owners).sum())
    if max_moves is not None and changed > max_moves:
        new = _first_moves(loads, owners, new, fixed, max_moves)
    return new


def _shed_and_place(
    loads: Loads, rows: Loads, owners: Owners, fixed: Loads, level: float, tolerance: float
) -> Owners:
    """The bulk: overloaded instances shed what they must, and it goes largest first to whichever
    instance is the lightest then."""
    instances = len(fixed)
    new = owners.copy()
    by_instance = per_instance(loads, owners, instances) + fixed
    density = loads / (rows + 1.0)
    shed = np.zeros(len(loads), np.bool_)
    # A unit above the level has to fill some instance, and may as well fill the one it is on.
    fills = (loads > level) & (loads == _largest(loads, owners, instances)[owners])
    for _ in range(_SHEDDING_PASSES):
        excess = np.where(by_instance > level * (1 + tolerance), by_instance - level, 0.0)
        can_go = np.flatnonzero((loads > 0) & (loads <= excess[owners]) & ~shed & ~fills)
        if not can_go.size:
            break
        order = can_go[np.lexsort((-density[can_go], owners[can_go]))]
        gone = loads[order].cumsum()
        first = np.flatnonzero(np.diff(owners[order], prepend=-1))
        sizes = np.diff(np.append(first, len(order)))
        gone -= np.repeat(gone[first] - loads[order][first], sizes)
        # No more than brings the instance below the ceiling, and never below the level.
        ample = gone - loads[order] >= by_instance[owners[order]] - level * (1 + tolerance)
        go = order[(gone <= excess[owners[order]]) & ~ample]
        shed[go] = True
        by_instance -= per_instance(loads[go], owners[go], instances)
    units = np.flatnonzero(shed)
    units = units[np.argsort(-loads[units], kind="stable")]
    heap = list(zip(by_instance.tolist(), range(instances), strict=True))
    heapq.heapify(heap)
    targets = []
    for load in loads[units].tolist():
        lightest, target = heap[0]
        targets.append(target)
        heapq.heapreplace(heap, (lightest + load, target))
    new[units] = targets
    return new


def _polish(
    loads: Loads, rows: Loads, owners: Owners, fixed: Loads, level: float, tolerance: float
) -> Owners:
    """The fine work: the straggler gives a unit to a light instance, or exchanges two."""
    new = owners.copy()
    instances = len(fixed)
    by_instance = per_instance(loads, new, instances) + fixed
    ceiling = level * (1 + tolerance)
    stuck = np.zeros(instances, np.bool_)
    with_load = np.flatnonzero(loads > 0)
    order = with_load[new[with_load].argsort(kind="stable")]
    owned = np.split(order, np.searchsorted(new[order], np.arange(1, instances)))
    for _ in range(4 * instances + 64):
        high = int(np.where(stuck, -np.inf, by_instance).argmax())
        if stuck[high] or by_instance[high] <= ceiling:
            break
        partners = min(_PARTNERS, instances - 1)
        lightest = by_instance.argpartition(partners)[: partners + 1]
        lightest = lightest[by_instance[lightest].argsort(kind="stable")]
        exchange = None
        for low in lightest[lightest != high].tolist():
            exchange = _best_exchange(
                loads,
                rows,
                owned[high],
                owned[low],
                by_instance[high],
                by_instance[low],
                level,
                tolerance,
            )
            if exchange is not None:
                break
        if exchange is None:
            stuck[high] = True
            continue
        given, taken = exchange
        owned[high] = np.append(owned[high][owned[high] != given], taken)
        owned[low] = np.append(owned[low][~np.isin(owned[low], taken)], given)
        new[given], new[taken] = low, high
        passed = float(loads[given] - loads[taken].sum())
        by_instance[high] -= passed
        by_instance[low] += passed
    return new


def _best_exchange(
    loads: Loads,
    rows: Loads,
    units: Units,
    others: Units,
    high: float,
    low: float,
    level: float,
    tolerance: float,
) -> tuple[int, Units] | None:
    """The unit that the straggler gives, and the one or none that it takes back.

    If some exchange brings both below the ceiling, the one with the fewest rows; else the one that
    comes nearest to halving the gap. What would relieve the straggler by next to nothing is left.
    """
    gap = high - low
    ceiling = level * (1 + tolerance)
    # One row per unit of the straggler: given alone, and against the other's best match for it.
    given = np.concatenate((units, units))
    taken = np.full(len(given), -1)
    passed = loads[given].copy()
    carried = rows[given] + 1.0
    if others.size:
        ordered = others[loads[others].argsort(kind="stable")]
        wanted = loads[units] - gap / 2
        after = np.searchsorted(loads[ordered], wanted).clip(0, len(ordered) - 1)
        before = (after - 1).clip(0)
        nearer = np.abs(loads[ordered[before]] - wanted) < np.abs(loads[ordered[after]] - wanted)
        match = ordered[np.where(nearer, before, after)]
        taken[len(units) :] = match
        passed[len(units) :] -= loads[match]
        carried[len(units) :] += rows[match] + 1.0
    least = tolerance * level / 8
    useful = (passed >= least) & (gap - passed >= least)
    if not useful.any():
        return None
    enough = useful & (high - passed <= ceiling) & (low + passed <= ceiling)
    if enough.any():
        best = int(np.where(enough, carried, np.inf).argmin())
    else:
        best = int(np.where(useful, np.abs(passed - gap / 2), np.inf).argmin())
    return int(given[best]), taken[best : best + 1][taken[best : best + 1] >= 0]


def _first_moves(
    loads: Loads, owners: Owners, wanted: Owners, fixed: Loads, max_moves: int
) -> Owners:
    """Of the moves wanted, those that may be made now: the largest first, each for the better."""
    new = owners.copy()
    by_instance = (per_instance(loads, owners, len(fixed)) + fixed).tolist()
    left = max_moves
    changed = np.flatnonzero(wanted != owners)
    changed = changed[np.argsort(-loads[changed], kind="stable")]
    for unit, load in zip(changed.tolist(), loads[changed].tolist(), strict=True):
        source, target = int(owners[unit]), int(wanted[unit])
        if load < by_instance[source] - by_instance[target]:
            new[unit] = target
            by_instance[source] -= load
            by_instance[target] += load
            left -= 1
            if not left:
                break
    return new
