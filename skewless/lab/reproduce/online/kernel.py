"""The inner loop of the shuffle simulation: tuples arrive, are assigned, served, acknowledged."""

import numpy as np
from numba import njit

from skewless.lab.reproduce.online.posg_machines import posg_assign, posg_executed
from skewless.lab.reproduce.online.work_ledger import fade, ledger_acknowledge, ledger_assign

ROUND_ROBIN, LEAST_OUTSTANDING, FULL_KNOWLEDGE, POSG, LEAST_WORK = 0, 1, 2, 3, 4


# Not cached: numba would not notice that a policy it calls, in another file, has changed.
@njit(nogil=True)
def shuffle(
    kind, arrives, items, costs, cells, factors, change, delay, posg, ledger, window, mu, decay,
    target, done,
):  # fmt: skip
    """Fills in, for every tuple, its instance and when it is done.

    Instances serve first come, first served; a tuple costs `costs` times its instance's factor, the
    first line of `factors` before tuple `change` and the second from it on. The scheduler hears of
    a tuple `delay` after it is done.
    """
    k = factors.shape[1]
    m = len(items)
    free = np.zeros(k)
    head = np.full(k, -1)
    tail = np.full(k, -1)
    following = np.full(m, -1)
    booked = np.zeros(m)  # LeastWork's estimate, or POSG's Ĉ of a request
    epoch = np.zeros(m, np.int64)
    taken = np.zeros(m)
    outstanding = np.zeros(k, np.int64)
    for j in range(m):
        now = arrives[j]
        for i in range(k):
            while head[i] >= 0 and done[head[i]] + delay <= now:
                old = head[i]
                head[i] = following[old]
                outstanding[i] -= 1
                if kind == POSG:
                    posg_executed(
                        posg,
                        i,
                        cells[items[old]],
                        taken[old],
                        epoch[old],
                        booked[old],
                        j,
                        window,
                        mu,
                    )
                elif kind == LEAST_WORK:
                    coming, begins = 0.0, done[old]
                    if head[i] >= 0:
                        coming, begins = booked[head[i]], max(begins, arrives[head[i]])
                    ledger_acknowledge(
                        ledger, i, items[old], cells[items[old]], taken[old], booked[old],
                        begins, delay, coming,
                    )  # fmt: skip
                    fade(ledger, window, decay)
        factor = factors[0] if j < change else factors[1]
        chosen = j % k
        if kind == LEAST_OUTSTANDING:
            chosen = _fewest(outstanding, j % k)
        elif kind == FULL_KNOWLEDGE:
            chosen = _first_done(free, now, costs[j], factor, j % k)
        elif kind == POSG:
            chosen, epoch[j], booked[j] = posg_assign(posg, cells[items[j]], j)
        elif kind == LEAST_WORK:
            chosen, booked[j] = ledger_assign(ledger, items[j], cells[items[j]], now, j % k)
        taken[j] = costs[j] * factor[chosen]
        free[chosen] = max(now, free[chosen]) + taken[j]
        done[j] = free[chosen]
        target[j] = chosen
        outstanding[chosen] += 1
        if head[chosen] < 0:
            head[chosen] = j
        else:
            following[tail[chosen]] = j
        tail[chosen] = j


@njit(cache=True, nogil=True)
def _fewest(outstanding, turn):
    k = len(outstanding)
    best = turn
    for step in range(1, k):
        i = (turn + step) % k
        if outstanding[i] < outstanding[best]:
            best = i
    return best


@njit(cache=True, nogil=True)
def _first_done(free, now, cost, factor, turn):
    k = len(free)
    best = -1
    soonest = np.inf
    for step in range(k):
        i = (turn + step) % k
        ends = max(now, free[i]) + cost * factor[i]
        if ends < soonest:
            best, soonest = i, ends
    return best
