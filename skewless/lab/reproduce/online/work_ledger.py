"""LeastWork's ledger: what every instance still has to do, corrected by each acknowledgement."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

Floats = npt.NDArray[np.float64]
Numbers = npt.NDArray[np.int64]

_ROUNDING = 1e-9
# Booked for a tuple before anything is known; it counts as much as the mean, once there is one.
_UNKNOWN = -1.0
# How much one acknowledgement changes what is thought of the delay of the next.
_DELAY_MEMORY = 0.9
# A tuple that outlasts its estimate is expected to go on for at least this share of it.
_OVERTIME = 0.2
# How much one round of executions changes what is thought of an instance's speed.
_SPEED_MEMORY = 0.9
_SPEED_WINDOW = 64
# What was seen so long ago weighs this little, and no less.
_FORGOTTEN = 1e-6
# With heavy-tailed costs a few giants are most of the work, and what comes behind one waits long.
# So giants wait behind each other: a tuple of this many times the mean cost goes to the instance
# with the most work among those that have it done within so many times its own cost. The idea is
# that of size intervals (Harchol-Balter, Crovella and Murta, 1999), with no intervals to find.
_GIANT = 12.0
_PATIENCE = 10.0


class Ledger(NamedTuple):
    """The scheduler's memory; written in place."""

    F: Floats  # r × c, one pair for all instances
    W: Floats
    totals: Floats  # tuples and time in F and W; no exact entry weighs less than the third
    place: Numbers  # item → its exact entry, or −1
    item: Numbers  # entry → item
    seen: Floats
    time: Floats
    weight: Floats  # what it has taken in all, as far as known, entry or not: who may stay
    counters: Numbers  # entries in use; executions since the last decay
    pending: Floats  # estimates of the tuples that each instance has not acknowledged
    outstanding: Numbers
    unknown: Numbers  # those among them that were assigned before anything was known
    head: Floats  # what was booked for the one it works on
    since: Floats  # when it began with that
    slowness: Floats  # of each instance beside the mean
    spent: Floats  # measured and estimated time of each since its slowness was judged
    foreseen: Floats
    judged: Numbers
    delay: Floats  # from a tuple's end to its acknowledgement


def new_ledger(instances: int, rows: int, columns: int, items: int, heaviest: int) -> Ledger:
    k = instances
    return Ledger(
        np.zeros((rows, columns)), np.zeros((rows, columns)), np.zeros(3),
        np.full(items, -1, np.int64), np.full(heaviest, -1, np.int64), np.zeros(heaviest),
        np.zeros(heaviest), np.zeros(heaviest), np.zeros(2, np.int64),
        np.zeros(k), np.zeros(k, np.int64), np.zeros(k, np.int64), np.zeros(k), np.zeros(k),
        np.ones(k),
        np.zeros(k), np.zeros(k), np.zeros(k, np.int64), np.zeros(1),
    )  # fmt: skip


@njit(cache=True, nogil=True)
def estimate(ledger, item, cells):
    """What an item takes on an instance of mean speed."""
    entry = ledger.place[item]
    if entry >= 0:
        return ledger.time[entry] / ledger.seen[entry]
    F, W = ledger.F, ledger.W
    best = 0
    for row in range(1, len(cells)):
        if F[row, cells[row]] < F[best, cells[best]]:
            best = row
    if F[best, cells[best]] > 0:
        return W[best, cells[best]] / F[best, cells[best]]
    return _mean(ledger)


@njit(cache=True, nogil=True)
def _mean(ledger):
    return ledger.totals[1] / ledger.totals[0] if ledger.totals[0] > 0 else 1.0


@njit(cache=True, nogil=True)
def _worth(ledger, booked):
    return booked if booked >= 0 else _mean(ledger)


@njit(cache=True, nogil=True)
def work_left(ledger, instance, now):
    """Estimated time until an instance has done all that it was given."""
    if ledger.outstanding[instance] == 0:
        return 0.0
    if ledger.totals[0] == 0:
        return float(ledger.outstanding[instance])
    age = now - ledger.since[instance]
    foreseen = _worth(ledger, ledger.head[instance])
    left = foreseen - age
    overdue = -left - ledger.delay[0]
    if overdue > _ROUNDING * age:
        # Nobody knows; but the longer it has taken already, the longer it may still take.
        left = max(_OVERTIME * foreseen, overdue)
    elif left < 0.0:
        # Done, if the estimate holds; the acknowledgement is on its way.
        left = 0.0
    waiting = ledger.pending[instance] + ledger.unknown[instance] * _mean(ledger) - foreseen
    return left + waiting


@njit(cache=True, nogil=True)
def ledger_assign(ledger, item, cells, now, turn):
    """(instance, the estimate that was booked): where the tuple would be done first.

    A giant goes where most is left to do, within its patience, but not past an idle instance.
    """
    cost = estimate(ledger, item, cells)
    k = len(ledger.pending)
    patience = _PATIENCE * cost if cost > _GIANT * _mean(ledger) else 0.0
    best = -1
    soonest = np.inf
    fullest = -1
    most = 0.0
    idle = False
    for step in range(k):
        i = (turn + step) % k
        left = work_left(ledger, i, now)
        done = left + cost * ledger.slowness[i]
        if done < soonest:
            best, soonest = i, done
        if done <= patience and left > most:
            fullest, most = i, left
        idle = idle or ledger.outstanding[i] == 0
    if fullest >= 0 and not idle:
        best = fullest
    booked = cost * ledger.slowness[best] if ledger.totals[0] > 0 else _UNKNOWN
    if ledger.outstanding[best] == 0:
        ledger.head[best] = booked
        ledger.since[best] = now
    ledger.outstanding[best] += 1
    if booked >= 0:
        ledger.pending[best] += booked
    else:
        ledger.unknown[best] += 1
    return best, booked


@njit(cache=True, nogil=True)
def ledger_acknowledge(ledger, instance, item, cells, time, booked, begins, delay, following):
    """A tuple is done: strike its estimate, learn its time.

    `following` is the estimate of the next one, which `begins` when this one is done, or when it
    comes.
    """
    ledger.outstanding[instance] -= 1
    if booked >= 0:
        ledger.pending[instance] -= booked
        _judge_speed(ledger, instance, time, booked)
    else:
        ledger.unknown[instance] -= 1
    if ledger.outstanding[instance] == 0:
        ledger.pending[instance] = 0.0  # no rounding stays behind
    ledger.head[instance] = following
    ledger.since[instance] = begins
    # The first is taken as it is, and later ones move it.
    memory = _DELAY_MEMORY if ledger.totals[0] > 0 else 0.0
    ledger.delay[0] = memory * ledger.delay[0] + (1 - memory) * delay
    neutral = time / ledger.slowness[instance]
    for row in range(len(cells)):
        ledger.F[row, cells[row]] += 1.0
        ledger.W[row, cells[row]] += neutral
    ledger.totals[0] += 1.0
    ledger.totals[1] += neutral
    _note_heavy(ledger, item, cells, neutral)


@njit(cache=True, nogil=True)
def _judge_speed(ledger, instance, time, booked):
    """Compares measured with estimated time, once every so many tuples of an instance."""
    ledger.spent[instance] += time
    ledger.foreseen[instance] += booked / ledger.slowness[instance]
    ledger.judged[instance] += 1
    if ledger.judged.min() < _SPEED_WINDOW:
        return
    ratios = ledger.spent / np.maximum(ledger.foreseen, 1e-12)
    ratios = ratios / ratios.mean()
    for i in range(len(ratios)):
        fresh = ratios[i]
        ledger.slowness[i] = _SPEED_MEMORY * ledger.slowness[i] + (1 - _SPEED_MEMORY) * fresh
    ledger.spent[:] = 0.0
    ledger.foreseen[:] = 0.0
    ledger.judged[:] = 0


@njit(cache=True, nogil=True)
def _note_heavy(ledger, item, cells, time):
    """Keeps exact entries for the items with the longest time in all."""
    most = len(ledger.item)
    if most == 0:
        return
    entry = ledger.place[item]
    if entry < 0:
        claim = np.inf
        for row in range(len(cells)):
            claim = min(claim, ledger.W[row, cells[row]])
        entry = ledger.counters[0]
        if entry < most:
            ledger.counters[0] += 1
        else:
            if claim <= ledger.totals[2]:
                return
            entry = ledger.weight.argmin()
            ledger.totals[2] = ledger.weight[entry]
            if claim <= ledger.weight[entry]:
                return
            ledger.place[ledger.item[entry]] = -1
        ledger.item[entry] = item
        ledger.place[item] = entry
        ledger.seen[entry] = 0.0
        ledger.time[entry] = 0.0
        ledger.weight[entry] = claim - time
    ledger.seen[entry] += 1.0
    ledger.time[entry] += time
    ledger.weight[entry] += time


@njit(cache=True, nogil=True)
def fade(ledger, window, decay):
    """After every `window` executions the past weighs `decay` times as much."""
    ledger.counters[1] += 1
    if ledger.counters[1] < window:
        return
    ledger.counters[1] = 0
    ledger.totals[:] *= decay
    ledger.weight[:] *= decay
    _fade_pair(ledger.F.ravel(), ledger.W.ravel(), decay)
    _fade_pair(ledger.seen, ledger.time, decay)


@njit(cache=True, nogil=True)
def _fade_pair(counts, times, decay):
    for i in range(len(counts)):
        # What is left is a mean of long ago; counted no further down, it stays one.
        factor = decay if counts[i] * decay > _FORGOTTEN else 1.0
        counts[i] *= factor
        times[i] *= factor
