"""Partial key grouping: every key has two instances to choose from, and may use both.

Only where partial results can be combined further down: a key's rows are in two places. So no
state moves, and the choice is made anew from where the hash sends the keys.
"""

import numpy as np
from numba import njit

from skewless.load.imbalance import falls
from skewless.planning.keys.descending import descending
from skewless.planning.keys.plan import WHOLE, KeyPlan, loads_after, plan_of
from skewless.planning.keys.snapshot import Hashes, Instances, KeySnapshot


def second_choice(hashes: Hashes, home: Instances, instances: int) -> Instances:
    """Another instance for every key, by a second hash; -1 where there is no other.

    >>> second_choice(np.array([1, 2], np.uint64), np.array([0, 1]), 2).tolist()
    [1, 0]
    """
    if instances == 1:
        return np.full(len(hashes), WHOLE)
    mixed = (hashes ^ (hashes >> np.uint64(33))) * np.uint64(0xFF51AFD7ED558CCD)
    mixed = (mixed ^ (mixed >> np.uint64(33))) * np.uint64(0xC4CEB9FE1A85EC53)
    away = 1 + ((mixed >> np.uint64(33)) % np.uint64(instances - 1)).astype(np.int64)
    return (home + away) % instances


@njit(cache=True, nogil=True)
def _choose(cost, home, second, order, loads, ceiling, placed, partner):  # type: ignore[no-untyped-def]
    for i in range(len(order)):
        u = order[i]
        a, b, c = home[u], second[u], cost[u]
        # A key is taken from home only to relieve it: a table of every key would gain nothing.
        if b < 0 or c <= 0.0 or loads[a] <= ceiling or loads[b] >= loads[a]:
            continue
        shared = max(loads[a] - c / 2, loads[b] + c / 2)
        whole = max(loads[a] - c, loads[b] + c)
        if min(shared, whole) >= loads[a]:
            continue
        if whole <= shared:
            placed[u] = b
            loads[a] -= c
            loads[b] += c
        else:
            partner[u] = b
            loads[a] -= c / 2
            loads[b] += c / 2


def partial_key_grouping(snapshot: KeySnapshot, theta_max: float) -> KeyPlan:
    """Keys of overloaded homes, highest cost first: at home, at their second choice, or half at
    each, whichever leaves the heavier of the two instances lightest."""
    placed = snapshot.home.copy()
    partner = np.full(snapshot.keys, WHOLE)
    second = second_choice(snapshot.hashes, snapshot.home, snapshot.instances)
    loads = snapshot.loads_of(placed)
    order = descending(snapshot.cost)
    ceiling = (1 + theta_max) * snapshot.mean
    _choose(snapshot.cost, snapshot.home, second, order, loads, ceiling, placed, partner)
    after = loads_after(snapshot, placed, partner)
    if not falls(snapshot.loads_of(snapshot.home), after):
        return plan_of(snapshot, snapshot.home, "every key is at home", combinable=True)
    return plan_of(
        snapshot,
        placed,
        "keys of overloaded instances are at their second choice, or at both",
        seconds=partner,
        combinable=True,
    )
