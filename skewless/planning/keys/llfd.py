"""Least-Load Fit Decreasing (Alg. 1): takes keys off overloaded instances and packs them anew.

Candidates go by cost, highest first, to the least loaded instance. Where one would overload it,
cheaper keys of that instance are evicted and become candidates themselves; so a single pass over
the keys by cost places every candidate, those evicted on the way included.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from numba import njit

from skewless.planning.keys.descending import Order
from skewless.planning.keys.plan import KeyPlan, if_it_pays
from skewless.planning.keys.reach import Reach, reach_of
from skewless.planning.keys.snapshot import Floats, Instances, KeySnapshot
from skewless.planning.keys.units import Units, units_of

# Sums of the same numbers in another order differ in their last digits.
_ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class Packing:
    """Where units are: `placed`, but for some of their keys, one entry for each: key of unit
    `unit[i]` goes to instance `target[i]`."""

    placed: Instances
    unit: npt.NDArray[np.int64]
    target: Instances

    def loads(self, units: Units) -> Floats:
        """L(d) of every instance."""
        cost = units.cost[self.unit]
        came = np.bincount(self.target, cost, units.instances)
        left = np.bincount(self.placed[self.unit], cost, units.instances)
        return units.loads_of(self.placed) + came - left

    def table_size(self, units: Units) -> int:
        """How many keys are not at home."""
        away = int(units.count[self.placed != units.home].sum())
        home = units.home[self.unit]
        was_away = np.count_nonzero(self.placed[self.unit] != home)
        return away + int(np.count_nonzero(self.target != home)) - int(was_away)

    def migration(self, units: Units) -> float:
        """Σ S over the keys whose instance changes (eq. 2)."""
        rows = units.state * units.count
        moved = float(rows[self.placed != units.current].sum())
        current, state = units.current[self.unit], units.state[self.unit]
        moves = (self.target != current).astype(np.float64)
        moved_anyway = (self.placed[self.unit] != current).astype(np.float64)
        return moved + float((state * (moves - moved_anyway)).sum())

    def instances(self) -> Instances:
        """Where every unit is, when each is a single key."""
        placed = self.placed.copy()
        placed[self.unit] = self.target
        return placed


@njit(cache=True, nogil=True)
def _by_instance(order, placed, instances):  # type: ignore[no-untyped-def]
    """The units of every instance, one instance after the other, each in the given order."""
    start = np.zeros(instances + 1, np.int64)
    for u in range(len(placed)):
        start[placed[u] + 1] += 1
    for d in range(instances):
        start[d + 1] += start[d]
    filled = start[:-1].copy()
    listed = np.empty(len(placed), np.int64)
    for i in range(len(order)):
        u = order[i]
        d = placed[u]
        listed[filled[d]] = u
        filled[d] += 1
    return start, listed


@njit(cache=True, nogil=True)
def _enough(over, cost, most):  # type: ignore[no-untyped-def]
    """How many keys of a cost it takes to be rid of `over`, and at most so many."""
    # Compared as floats: the quotient may be too large for a whole number.
    return most if over >= cost * most else np.int64(np.ceil(over / cost))


@njit(cache=True, nogil=True)
def _pack(cost, placed, stays, free, by_cost, start, listed, loads, rest, ceiling, pull_to, giant):  # type: ignore[no-untyped-def]
    """Phases II and III. `stays` and `free` count the keys of a unit that are left on its
    instance, and those that are candidates; `loads` is kept up to date."""
    instances = len(rest)
    n = len(cost)
    slack = _ROUNDING * ceiling
    waiting = np.int64(0)
    everything = np.int64(0)
    for u in range(n):
        waiting += free[u]
        everything += free[u] + stays[u]

    # Phase II: in the order ψ, what an instance has above `pull_to` becomes a candidate. One giant
    # may stay: it fits nowhere better.
    for d in range(instances):
        if loads[d] <= pull_to + slack:
            continue
        keep = np.int64(-1)
        for i in range(start[d], start[d + 1]):
            u = listed[i]
            if cost[u] > giant and stays[u] > 0 and (keep < 0 or cost[u] > cost[keep]):
                keep = u
        target = pull_to
        if keep >= 0:
            target = max(target, rest[d] + cost[keep])
        for i in range(start[d], start[d + 1]):
            if loads[d] <= target + slack:
                break
            u = listed[i]
            can = stays[u] - 1 if u == keep else stays[u]
            if can <= 0 or cost[u] <= 0.0:
                continue
            take = _enough(loads[d] - target - slack, cost[u], can)
            stays[u] -= take
            free[u] += take
            loads[d] -= take * cost[u]
            waiting += take

    # Phase III. `fixed` is what cannot be evicted any more: keys that cost at least as much as the
    # candidate in hand (condition ii).
    fixed = rest.copy()
    settled = np.zeros(n, np.bool_)
    next_listed = start[:-1].copy()
    unit_out = np.empty(everything, np.int64)
    target_out = np.empty(everything, np.int64)
    emitted = 0
    i = 0
    while i < n and waiting > 0:
        c = cost[by_cost[i]]
        end = i
        while end < n and cost[by_cost[end]] == c:
            u = by_cost[end]
            fixed[placed[u]] += stays[u] * c
            settled[u] = True
            end += 1
        for g in range(i, end):
            u = by_cost[g]
            for _ in range(free[u]):
                # The least loaded instance that it fits on, evicting or not; otherwise the one
                # that is left with least when everything cheaper has been evicted.
                least = 0
                fits = -1
                barest = 0
                for d in range(instances):
                    if loads[d] < loads[least]:
                        least = d
                    if fixed[d] + c <= ceiling + slack and (fits < 0 or loads[d] < loads[fits]):
                        fits = d
                    if fixed[d] < fixed[barest]:
                        barest = d
                if loads[least] + c <= ceiling + slack:
                    to = least
                elif fits >= 0:
                    to = fits
                else:
                    to = barest
                # The exchangeable set E, in the order ψ. What is passed over here is settled, and
                # stays so: no entry of the list is looked at twice.
                at = next_listed[to]
                while loads[to] + c > ceiling + slack and at < start[to + 1]:
                    e = listed[at]
                    if settled[e] or stays[e] == 0 or cost[e] <= 0.0:
                        at += 1
                        continue
                    take = _enough(loads[to] + c - ceiling - slack, cost[e], stays[e])
                    stays[e] -= take
                    free[e] += take
                    loads[to] -= take * cost[e]
                    waiting += take
                    if stays[e] == 0:
                        at += 1
                next_listed[to] = at
                loads[to] += c
                fixed[to] += c
                unit_out[emitted] = u
                target_out[emitted] = to
                emitted += 1
                waiting -= 1
            free[u] = 0
        i = end
    return unit_out[:emitted], target_out[:emitted]


def pack(units: Units, placed: Instances, order: Order, theta_max: float) -> Packing:
    """Phases II and III from a placement: `order` is ψ, which key of an instance goes first.

    >>> from skewless.planning.keys.units import Units
    >>> cost, home = np.array([5.0, 4.0, 1.0]), np.zeros(3, np.int64)
    >>> units = Units(cost, cost, home, home, home, np.ones(3, np.int64), np.zeros(2))
    >>> pack(units, home, units.by_cost, theta_max=0.0).instances().tolist()
    [1, 0, 0]
    """
    reach = reach_of(units.cost, units.work, units.rest, placed)
    loads = units.loads_of(placed)
    ceiling = (1 + theta_max) * reach.level
    packing = _packed(units, placed, order, ceiling, _pull_to(loads, reach, theta_max))
    # Theorem 1 is proved for the plain rule that places every key anew. Large keys that were left
    # where they are can stand in the way of it; then, and only then, everything is placed anew.
    bound = (4 - 1 / units.instances) / 3 * reach.level
    worst = np.maximum(bound, reach.least)
    if (packing.loads(units) > worst + _ROUNDING * bound).any() and bound > ceiling:
        anew = _packed(units, placed, order, ceiling, None)
        if anew.loads(units).max() < packing.loads(units).max():
            return anew
    return packing


def _packed(
    units: Units, placed: Instances, order: Order, ceiling: float, pull_to: float | None
) -> Packing:
    """`pull_to` None: every key is a candidate."""
    stays = units.count.copy()
    free = np.zeros_like(stays)
    loads = units.loads_of(placed)
    if pull_to is None:
        stays, free, loads = free, stays, units.rest.copy()
        pull_to = np.inf
    start, listed = _by_instance(order, placed, units.instances)
    unit, target = _pack(
        units.cost, placed, stays, free, units.by_cost, start, listed, loads, units.rest,
        ceiling, pull_to, ceiling,
    )  # fmt: skip
    return Packing(placed, unit, target)


def _pull_to(loads: Floats, reach: Reach, theta_max: float) -> float:
    """Down to where instances are relieved: Lmax, or as far below it as it takes to fill those
    that have less than (1 − θmax)·L̄. The paper stops at Lmax, and an instance that joins many
    others would stay empty, because none of them is above it."""
    highest = (1 + theta_max) * reach.level
    wanted = float(np.maximum((1 - theta_max) * reach.level - loads, 0.0).sum())
    can_give = np.sort(loads - np.maximum(reach.least - reach.level, 0.0))[::-1]
    levels = (np.cumsum(can_give) - wanted) / np.arange(1, len(loads) + 1)
    # The level at which the m heaviest give what is wanted; the next one must not be above it.
    nexts = np.append(can_give[1:], -np.inf)
    level = float(levels[np.argmax(nexts <= levels)])
    return max(min(highest, level), reach.level)


def llfd(snapshot: KeySnapshot, theta_max: float) -> KeyPlan:
    """LLFD by itself: nothing is cleaned, keys of the highest cost go first."""
    units = units_of(snapshot)
    packing = pack(units, units.standing, units.by_cost, theta_max)
    return if_it_pays(snapshot, packing.instances(), "overloaded instances give keys away")
