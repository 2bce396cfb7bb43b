"""POSG's two state machines, as the paper draws them (Fig. 2 and 3), for one tuple at a time."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

Floats = npt.NDArray[np.float64]
Numbers = npt.NDArray[np.int64]

# States of an instance (Fig. 2).
START, STABILIZING = 0, 1
# States of the scheduler (Fig. 3).
ROUND_ROBIN, SEND_ALL, WAIT_ALL, RUN = 0, 1, 2, 3
# Places in `PosgState.scheduler`.
# For the record: messages so far, the first tuple in RUN, and the first at which matrices came in
# after the tuple `CHANGE`.
STATE, TURN, SENT, EPOCH, MESSAGES, FIRST_RUN, CHANGE, RENEWED = 0, 1, 2, 3, 4, 5, 6, 7


class PosgState(NamedTuple):
    """Everything that the instances and the scheduler remember; written in place."""

    # Of every instance.
    F: Floats  # k × r × c
    W: Floats
    S: Floats  # the snapshot; NaN where F was 0
    phase: Numbers
    executed: Numbers  # tuples since the last transition or check
    true: Floats  # cumulated execution time
    # Of the scheduler.
    known_f: Floats  # the last matrices of every instance
    known_w: Floats
    known: npt.NDArray[np.bool_]
    estimated: Floats  # Ĉ
    delta: Floats
    replied: npt.NDArray[np.bool_]
    scheduler: Numbers


def new_posg(instances: int, rows: int, columns: int) -> PosgState:
    cells = (instances, rows, columns)
    scheduler = np.zeros(8, np.int64)
    scheduler[FIRST_RUN] = scheduler[RENEWED] = -1
    return PosgState(
        np.zeros(cells), np.zeros(cells), np.full(cells, np.nan),
        np.zeros(instances, np.int64), np.zeros(instances, np.int64), np.zeros(instances),
        np.zeros(cells), np.zeros(cells), np.zeros(instances, np.bool_),
        np.zeros(instances), np.zeros(instances), np.zeros(instances, np.bool_),
        scheduler,
    )  # fmt: skip


@njit(cache=True, nogil=True)
def _estimate(F, W, cells):
    """W/F of the row with the smallest F cell; the mean for what was never seen."""
    best = 0
    for row in range(1, len(cells)):
        if F[row, cells[row]] < F[best, cells[best]]:
            best = row
    count = F[best, cells[best]]
    if count > 0:
        return W[best, cells[best]] / count
    total = F[0].sum()
    return W[0].sum() / total if total > 0 else 0.0


@njit(cache=True, nogil=True)
def posg_assign(posg, cells, number):
    """(instance, epoch of the request that goes with the tuple or 0, Ĉ in the request)."""
    s = posg.scheduler
    k = len(posg.estimated)
    if s[STATE] == ROUND_ROBIN:
        target = s[TURN] % k
        s[TURN] += 1
        return target, 0, 0.0
    epoch = 0
    if s[STATE] == SEND_ALL:
        target = s[SENT]
        s[SENT] += 1
        epoch = s[EPOCH]
        if s[SENT] == k:
            s[STATE] = WAIT_ALL
    else:
        target = 0
        for i in range(1, k):
            if posg.estimated[i] < posg.estimated[target]:
                target = i
        if s[STATE] == RUN and s[FIRST_RUN] < 0:
            s[FIRST_RUN] = number
    posg.estimated[target] += _estimate(posg.known_f[target], posg.known_w[target], cells)
    return target, epoch, posg.estimated[target]


@njit(cache=True, nogil=True)
def posg_executed(posg, instance, cells, time, epoch, sent, number, window, mu):
    """An instance has executed a tuple: it learns, and its messages reach the scheduler.

    `epoch` and `sent` are what came with the tuple; `number` is the newest tuple's, for the record.
    """
    F, W, S = posg.F[instance], posg.W[instance], posg.S[instance]
    posg.true[instance] += time
    for row in range(len(cells)):
        F[row, cells[row]] += 1
        W[row, cells[row]] += time
    if epoch > 0:
        posg.scheduler[MESSAGES] += 1
        _receive_reply(posg, instance, epoch, posg.true[instance] - sent)
    posg.executed[instance] += 1
    if posg.executed[instance] < window:
        return
    posg.executed[instance] = 0
    if posg.phase[instance] == STABILIZING and _instability(F, W, S) <= mu:
        posg.scheduler[MESSAGES] += 1
        if posg.scheduler[RENEWED] < 0 and number > posg.scheduler[CHANGE]:
            posg.scheduler[RENEWED] = number
        _receive_matrices(posg, instance)
        F[:] = 0.0
        W[:] = 0.0
        posg.phase[instance] = START
        return
    posg.phase[instance] = STABILIZING
    for row in range(F.shape[0]):
        for column in range(F.shape[1]):
            count = F[row, column]
            S[row, column] = W[row, column] / count if count > 0 else np.nan


@njit(cache=True, nogil=True)
def _instability(F, W, S):
    """η of eq. 1 over the cells that the snapshot had seen."""
    change = 0.0
    total = 0.0
    for row in range(F.shape[0]):
        for column in range(F.shape[1]):
            if not np.isnan(S[row, column]):
                change += abs(S[row, column] - W[row, column] / F[row, column])
                total += S[row, column]
    return change / total if total > 0 else 0.0


@njit(cache=True, nogil=True)
def _receive_matrices(posg, instance):
    s = posg.scheduler
    posg.known_f[instance] = posg.F[instance]
    posg.known_w[instance] = posg.W[instance]
    posg.known[instance] = True
    if s[STATE] == ROUND_ROBIN and not posg.known.all():
        return
    # Also from WAIT_ALL and RUN (Fig. 3.F): replies of the epoch before are of no use any more.
    s[STATE] = SEND_ALL
    s[SENT] = 0
    s[EPOCH] += 1
    posg.replied[:] = False


@njit(cache=True, nogil=True)
def _receive_reply(posg, instance, epoch, delta):
    s = posg.scheduler
    if epoch != s[EPOCH]:
        return
    posg.delta[instance] = delta
    posg.replied[instance] = True
    if s[STATE] == WAIT_ALL and posg.replied.all():
        for i in range(len(posg.estimated)):
            posg.estimated[i] += posg.delta[i]
        s[STATE] = RUN
