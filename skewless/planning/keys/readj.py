"""Readj, the baseline of Gedik's: keys home where they fit, then moves and swaps of heavy keys."""

import numpy as np
from numba import njit

from skewless.load.imbalance import imbalance
from skewless.planning.keys.plan import KeyPlan, if_it_pays
from skewless.planning.keys.planner import within_limit
from skewless.planning.keys.snapshot import Instances, KeySnapshot

# Keys from this share of the mean load up take part; each is tried and the best plan taken.
SIGMAS = (0.1, 0.01, 1e-3, 1e-4)
# So often a pair of instances exchanges keys, at most.
_STEPS = 2_000


@njit(cache=True, nogil=True)
def _exchange(cost, at, loads, ceiling, steps):  # type: ignore[no-untyped-def]
    """Relieves the straggler, again and again, by the move or swap after which the heavier of the
    two instances is lightest. Costs ascend; `at` and `loads` are kept up to date.

    All pairs of instances are weighed in the original. Only what relieves the straggler lowers the
    largest load, so only its pairs are weighed here.
    """
    n = len(cost)
    instances = len(loads)
    listed = np.empty(n, np.int64)
    for _ in range(steps):
        high = np.argmax(loads)
        if loads[high] <= ceiling:
            return
        # The keys of every instance, cheapest first.
        start = np.zeros(instances + 1, np.int64)
        for k in range(n):
            start[at[k] + 1] += 1
        for d in range(instances):
            start[d + 1] += start[d]
        filled = start[:-1].copy()
        for k in range(n):
            listed[filled[at[k]]] = k
            filled[at[k]] += 1
        best = loads[high] * (1 - 1e-12)
        give = -1
        take = -1
        to = -1
        for d in range(instances):
            if d == high:
                continue
            # The partner that would level the two costs more, the more the key does: its pointer
            # only ever goes up.
            p = start[d]
            for i in range(start[high], start[high + 1]):
                k = listed[i]
                pair = max(loads[high] - cost[k], loads[d] + cost[k])
                if pair < best:
                    best, give, take, to = pair, k, -1, d
                ideal = cost[k] - (loads[high] - loads[d]) / 2
                while p < start[d + 1] and cost[listed[p]] < ideal:
                    p += 1
                for q in (p - 1, p):
                    if start[d] <= q < start[d + 1]:
                        given = cost[k] - cost[listed[q]]
                        pair = max(loads[high] - given, loads[d] + given)
                        if pair < best:
                            best, give, take, to = pair, k, listed[q], d
        if give < 0:
            return
        given = cost[give] - (cost[take] if take >= 0 else 0.0)
        at[give] = to
        if take >= 0:
            at[take] = high
        loads[high] -= given
        loads[to] += given


def readj(snapshot: KeySnapshot, theta_max: float, *, table_limit: int | None = None) -> KeyPlan:
    """The best plan over all σ: of those that balance the one that moves least state, else the one
    that balances best."""
    tried = [_attempt(snapshot, theta_max, sigma) for sigma in SIGMAS]
    if table_limit is not None:
        tried = [within_limit(snapshot, placed, table_limit) for placed in tried]

    def merit(placed: Instances) -> tuple[float, float]:
        uneven = max(0.0, imbalance(snapshot.loads_of(placed)) - theta_max)
        return round(uneven, 9), float(snapshot.state[placed != snapshot.current].sum())

    best = min(tried, key=merit)
    reason = "heavy keys were sent home, moved and swapped in pairs"
    return if_it_pays(snapshot, best, reason, table_limit)


def _attempt(snapshot: KeySnapshot, theta_max: float, sigma: float) -> Instances:
    heavy = np.flatnonzero((snapshot.cost >= sigma * snapshot.mean) & (snapshot.cost > 0))
    heavy = heavy[np.argsort(snapshot.cost[heavy], kind="stable")]
    ceiling = (1 + theta_max) * snapshot.mean
    placed = _sent_home(snapshot, heavy, ceiling)
    at = placed[heavy]
    _exchange(snapshot.cost[heavy], at, snapshot.loads_of(placed), ceiling * (1 + 1e-9), _STEPS)
    placed[heavy] = at
    return placed


def _sent_home(snapshot: KeySnapshot, heavy: Instances, ceiling: float) -> Instances:
    """Tracked keys that are away go home as far as their homes have room, cheapest first."""
    placed = snapshot.standing.copy()
    away = heavy[placed[heavy] != snapshot.home[heavy]]
    if not away.size:
        return placed
    order = away[np.lexsort((snapshot.cost[away], snapshot.home[away]))]
    homes = snapshot.home[order]
    filled = np.cumsum(snapshot.cost[order])
    first = np.searchsorted(homes, homes)
    # The sum from the first key of the same home on.
    coming = filled - filled[first] + snapshot.cost[order[first]]
    back = order[snapshot.loads[homes] + coming <= ceiling]
    placed[back] = snapshot.home[back]
    return placed
