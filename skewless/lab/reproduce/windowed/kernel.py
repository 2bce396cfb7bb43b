"""The inner loop of the join: input buffers, a CPU with a budget, insert, expire, probe."""

import time
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit, types

from skewless.lab.reproduce.windowed.probing import (
    BY_IDENTIFIER,
    begin_probe,
    compiled,
    end_probe,
    expire,
    insert,
    probe_part,
)
from skewless.lab.reproduce.windowed.streams import Tuples

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

# Of this thread alone: what else runs on the machine does not count.
_CLOCK = int(time.CLOCK_THREAD_CPUTIME_ID)
# Not cached: numba would not notice that what is called in another file has changed.
compiled_anew = njit(nogil=True, _nrt=False)  # type: ignore[call-overload]
_GOLDEN = 0.6180339887498949
_clock_gettime = types.ExternalFunction(
    "clock_gettime", types.int32(types.int32, types.CPointer(types.int64))
)


class Buffers(NamedTuple):
    """The input buffers of both sides, in front of the join; [side, ...]."""

    waiting: Ints  # tuples in the order of their arrival
    ends: Ints  # [side]: first that waits, one past the last
    arrived: Ints  # how many tuples ever
    recent: Ints  # the first number of those that arrived within the buffer's time
    following: Ints  # the next tuple of both sides to arrive


class Counts(NamedTuple):
    """What was done in every second, and what full processing found since the last adaptation."""

    matches: Ints
    comparisons: Ints
    fetched: Ints
    dropped: Ints
    compared: Floats  # [side of the window, basic window]
    matched: Floats
    clock: Ints  # where it is read into


class Settings(NamedTuple):
    """What does not change in the course of a run."""

    kind: int
    threshold: int
    window_s: Floats  # [side]
    per_slot_s: float  # 1 ÷ seconds of a basic window; 0: there are none
    buffer_s: float
    sampling: float
    comparisons_per_s: float  # 0: time is measured instead
    measured_s_per_s: float


class Knobs(NamedTuple):
    """What the adaptations set."""

    fraction: float  # r, which also scales the sampling
    fractions: Floats  # r_i of each window
    order: Ints  # [side of the window, rank]: basic windows, the best first; empty: newest first


def new_buffers(tuples: Tuples) -> Buffers:
    longest = tuples.of_side.shape[1]
    return Buffers(
        np.zeros((2, longest), np.int64),
        np.zeros((2, 2), np.int64),
        np.zeros(2, np.int64),
        np.zeros(2, np.int64),
        np.zeros(1, np.int64),
    )


def new_counts(seconds: int, basic_windows: int) -> Counts:
    return Counts(
        np.zeros(seconds, np.int64),
        np.zeros(seconds, np.int64),
        np.zeros(seconds, np.int64),
        np.zeros(seconds, np.int64),
        np.zeros((2, basic_windows)),
        np.zeros((2, basic_windows)),
        np.zeros(2, np.int64),
    )


@compiled
def _now_ns(spot):
    _clock_gettime(_CLOCK, spot.ctypes)  # type: ignore[call-overload]
    return spot[0] * 1_000_000_000 + spot[1]


@compiled
def _reading_ns(spot):
    """How long it takes to read the clock."""
    least = 1_000_000
    for _ in range(8):
        began = _now_ns(spot)
        least = min(least, _now_ns(spot) - began)
    return least


@compiled
def _admit(tuples, buffers, counts, buffer_s, now):
    """Takes in what has arrived by now; from a buffer that is too full tuples go at random."""
    while buffers.following[0] < len(tuples.time_s):
        i = buffers.following[0]
        arrives = tuples.time_s[i]
        if arrives > now:
            return
        buffers.following[0] += 1
        side = tuples.side[i]
        ends = buffers.ends[side]
        buffers.waiting[side, ends[1]] = i
        ends[1] += 1
        buffers.arrived[side] += 1
        recent = buffers.recent[side]
        while tuples.time_s[tuples.of_side[side, recent]] <= arrives - buffer_s:
            recent += 1
        buffers.recent[side] = recent
        draw = tuples.victim[i]
        while ends[1] - ends[0] > buffers.arrived[side] - recent:
            _drop(buffers.waiting[side], ends, draw)
            draw = (draw + _GOLDEN) % 1.0
            counts.dropped[min(int(arrives), len(counts.dropped) - 1)] += 1


@compiled
def _drop(waiting, ends, draw):
    victim = ends[0] + int(draw * (ends[1] - ends[0]))
    for at in range(victim, ends[0], -1):
        waiting[at] = waiting[at - 1]
    ends[0] += 1


@compiled
def _fetch(buffers):
    """The oldest tuple that waits, or -1."""
    found = -1
    for side in range(2):
        if buffers.ends[side, 0] < buffers.ends[side, 1]:
            i = buffers.waiting[side, buffers.ends[side, 0]]
            if found < 0 or i < found:
                found = i
    return found


@compiled
def slots_range(windows, side, slot):
    """The positions of a basic window that are not expired."""
    head, tail = windows.ends[side, 0], windows.ends[side, 1]
    last = windows.last_slot[side]
    if slot < 0 or slot > last:
        return tail, tail
    low = windows.slot_start[side, slot]
    high = tail if slot == last else windows.slot_start[side, slot + 1]
    return max(low, head), max(high, head)


@compiled_anew
def _probe(tuples, windows, lists, pairs, counts, settings, knobs, i, slot):
    """(comparisons, matches) of tuple i with the opposite window (Algorithm 3)."""
    side = 1 - tuples.side[i]
    kind, threshold = settings.kind, settings.threshold
    head, tail = windows.ends[side, 0], windows.ends[side, 1]
    size = tail - head
    share = knobs.fractions[side]
    budget = int(share * size + 0.5)
    ranks = knobs.order.shape[1]
    begin_probe(kind, tuples, windows, lists, i)
    used = 0
    matches = 0
    if ranks == 0:
        used = budget
        if budget > 0:
            # What is sorted by identifier cannot be cut by time.
            low = head if kind == BY_IDENTIFIER else tail - budget
            matches = probe_part(
                kind, tuples, windows, lists, pairs, i, 0, low, tail, share, threshold
            )
    elif tuples.sample[i] < settings.sampling * knobs.fraction:
        for j in range(ranks):
            low, high = slots_range(windows, side, slot - j)
            if low < high:
                found = probe_part(
                    kind, tuples, windows, lists, pairs, i, slot - j, low, high, 1.0, threshold
                )
                matches += found
                used += high - low
                counts.compared[side, j] += high - low
                counts.matched[side, j] += found
    else:
        for rank in range(ranks):
            if used >= budget:
                break
            j = knobs.order[side, rank]
            low, high = slots_range(windows, side, slot - j)
            if low >= high:
                continue
            rows = min(high - low, budget - used)
            part = rows / (high - low)
            if kind != BY_IDENTIFIER:
                low = high - rows
            matches += probe_part(
                kind, tuples, windows, lists, pairs, i, slot - j, low, high, part, threshold
            )
            used += rows
    end_probe(kind, tuples, windows, i)
    return used, matches


@compiled_anew
def fill(tuples, buffers, windows, lists, settings, until_s):
    """Puts all that arrives by then into the windows, without looking for matches."""
    while buffers.following[0] < len(tuples.time_s):
        i = buffers.following[0]
        if tuples.time_s[i] >= until_s:
            break
        buffers.following[0] += 1
        side = tuples.side[i]
        buffers.arrived[side] += 1
        insert(
            settings.kind, tuples, windows, lists, i, int(tuples.time_s[i] * settings.per_slot_s)
        )
    for side in range(2):
        before_s = until_s - settings.window_s[side]
        expire(settings.kind, tuples, windows, lists, side, before_s, settings.per_slot_s == 0)


@compiled_anew
def run_until(
    tuples, buffers, windows, lists, pairs, counts, settings, knobs, now, until_s
):  # fmt: skip
    """Fetches and joins tuples from `now` on; gives the time at which the last one was done.

    A tuple takes as long as its comparisons, or as it took in fact, at so much time of this
    machine per second of the stream.
    """
    kind = settings.kind
    without_slots = settings.per_slot_s == 0
    reading_ns = _reading_ns(counts.clock)
    while now < until_s:
        _admit(tuples, buffers, counts, settings.buffer_s, now)
        i = _fetch(buffers)
        if i < 0:
            following = buffers.following[0]
            # What arrives at the very end is of the next period.
            if following == len(tuples.time_s) or tuples.time_s[following] >= until_s:
                return until_s
            now = tuples.time_s[following]
            continue
        side = tuples.side[i]
        buffers.ends[side, 0] += 1
        second = min(int(now), len(counts.fetched) - 1)
        began = 0 if settings.comparisons_per_s > 0 else _now_ns(counts.clock)
        slot = int(tuples.time_s[i] * settings.per_slot_s)
        used, matches = 0, 0
        if settings.window_s[side] > 0:
            insert(kind, tuples, windows, lists, i, slot)
        if settings.window_s[1 - side] > 0:
            before_s = tuples.time_s[i] - settings.window_s[1 - side]
            expire(kind, tuples, windows, lists, 1 - side, before_s, without_slots)
            used, matches = _probe(tuples, windows, lists, pairs, counts, settings, knobs, i, slot)
        counts.fetched[second] += 1
        counts.comparisons[second] += used
        counts.matches[second] += matches
        if settings.comparisons_per_s > 0:
            now += used / settings.comparisons_per_s
        else:
            took_ns = max(0, _now_ns(counts.clock) - began - reading_ns)
            now += took_ns * 1e-9 / settings.measured_s_per_s
    _admit(tuples, buffers, counts, settings.buffer_s, now)
    return now
