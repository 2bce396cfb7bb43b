"""Windows in memory, and how a tuple finds its matches in a part of one, compiled.

A window is a log of tuples in the order of their times: positions grow, expiry moves the head. A
basic window is a range of positions, so that the newest part of it is one too.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from skewless.errors import bad_argument
from skewless.lab.reproduce.windowed.streams import Tuples

Ints = npt.NDArray[np.int64]
Ints32 = npt.NDArray[np.int32]
Bytes = npt.NDArray[np.uint8]

# The loops allocate nothing. Without reference counts a look-up takes a fifth of the time.
compiled = njit(cache=True, nogil=True, forceinline=True, _nrt=False)  # type: ignore[call-overload]

# How matches are found: by comparing tuple with tuple, or by posting lists.
SCAN, BY_TIME, BY_IDENTIFIER = 0, 1, 2
_IDENTIFIERS = 2**31
_POSITION = 2**32 - 1
# A set that is found by posting lists has fewer items than this.
_MOST_ITEMS = 64
# A list sorted by identifier is cut into parts of about so many entries.
_PART = 16


class Windows(NamedTuple):
    """The windows of both sides; [side, ...]."""

    of: Ints  # position -> tuple
    first: Ints  # position -> its items
    items: Ints32
    ends: Ints  # [side]: head, tail
    slot_start: Ints  # slot of time -> first position
    last_slot: Ints
    present: Bytes  # item -> whether the probing tuple has it


class Lists(NamedTuple):
    """Posting lists per side, slot and item; those by identifier in parts of equal range.

    An entry is a position, below the identifier where that is what the list is sorted by. Where
    the lists lie is laid out beforehand; what is in them comes and goes with the tuples.
    """

    begin: Ints
    length: Ints
    entry: Ints
    parts: int
    slots: int
    items: int
    seen: Ints  # [side, position]: probe · _MOST_ITEMS + how many items it shares
    probe: Ints  # the number of the last probe


class Pairs(NamedTuple):
    """Matches as pairs of tuples, if there is room for them."""

    first: Ints
    second: Ints
    found: Ints


def new_windows(tuples: Tuples, items: int, slots: int) -> Windows:
    """Empty windows with room for all tuples."""
    longest = tuples.of_side.shape[1]
    sizes = np.diff(tuples.first)
    most = max(int(sizes[tuples.side == side].sum()) for side in (0, 1))
    return Windows(
        np.zeros((2, longest), np.int64),
        np.zeros((2, longest + 1), np.int64),
        np.zeros((2, most), np.int32),
        np.zeros((2, 2), np.int64),
        np.zeros((2, slots + 1), np.int64),
        np.full(2, -1),
        np.zeros(items, np.uint8),
    )


def new_lists(tuples: Tuples, items: int, slots: int, slot_of: Ints, kind: int) -> Lists:
    """Empty posting lists; none at all for a scan."""
    if kind == SCAN:
        nothing = np.zeros(1, np.int64)
        return Lists(
            nothing, nothing, nothing, 1, slots, items, np.zeros((2, 1), np.int64), nothing
        )
    sizes = np.diff(tuples.first)
    if sizes.max(initial=0) >= _MOST_ITEMS:
        raise bad_argument("tuples", int(sizes.max()), f"sets of fewer than {_MOST_ITEMS} items")
    parts = 1
    if kind == BY_IDENTIFIER:
        per_list = len(tuples.items) / (2 * slots * items)
        parts = 1 << max(0, int(np.ceil(np.log2(max(1.0, per_list / _PART)))))
    owner = np.repeat(np.arange(len(sizes)), sizes)
    part = tuples.identifier[owner] * parts // _IDENTIFIERS if parts > 1 else 0
    key = (tuples.side[owner].astype(np.int64) * slots + slot_of[owner]) * items + tuples.items
    counts = np.bincount(key * parts + part, minlength=2 * slots * items * parts)
    begin = np.concatenate([[0], np.cumsum(counts)[:-1]])
    return Lists(
        begin,
        np.zeros(len(begin), np.int64),
        np.zeros(len(tuples.items), np.int64),
        parts,
        slots,
        items,
        np.zeros((2, tuples.of_side.shape[1]), np.int64),
        np.zeros(1, np.int64),
    )


def new_pairs(room: int) -> Pairs:
    return Pairs(np.zeros(room, np.int64), np.zeros(room, np.int64), np.zeros(1, np.int64))


@compiled
def insert(kind, tuples, windows, lists, i, slot):
    """Puts tuple i at the end of its window."""
    side = tuples.side[i]
    position = windows.ends[side, 1]
    while windows.last_slot[side] < slot:
        windows.last_slot[side] += 1
        windows.slot_start[side, windows.last_slot[side]] = position
    windows.of[side, position] = i
    at = windows.first[side, position]
    for k in range(tuples.first[i], tuples.first[i + 1]):
        windows.items[side, at] = tuples.items[k]
        at += 1
    windows.first[side, position + 1] = at
    windows.ends[side, 1] = position + 1
    if kind != SCAN:
        for k in range(tuples.first[i], tuples.first[i + 1]):
            _post(kind, lists, side, slot, tuples.items[k], tuples.identifier[i], position)


@compiled
def _list_of(lists, side, slot, item, identifier):
    key = (side * lists.slots + slot) * lists.items + item
    return key * lists.parts + identifier * lists.parts // _IDENTIFIERS


@compiled
def _post(kind, lists, side, slot, item, identifier, position):
    if kind == BY_TIME:
        key = (side * lists.slots + slot) * lists.items + item
        lists.entry[lists.begin[key] + lists.length[key]] = position
    else:
        key = _list_of(lists, side, slot, item, identifier)
        entry = (identifier << 32) | position
        at = lists.begin[key] + lists.length[key]
        while at > lists.begin[key] and lists.entry[at - 1] > entry:
            lists.entry[at] = lists.entry[at - 1]
            at -= 1
        lists.entry[at] = entry
    lists.length[key] += 1


@compiled
def expire(kind, tuples, windows, lists, side, before_s, remove):
    """Moves the head past tuples that are too old; takes them out of their lists if asked to.

    With basic windows nothing needs to be taken out: a slot goes as a whole.
    """
    head, tail = windows.ends[side, 0], windows.ends[side, 1]
    while head < tail and tuples.time_s[windows.of[side, head]] < before_s:
        if remove and kind == BY_IDENTIFIER:
            i = windows.of[side, head]
            for k in range(tuples.first[i], tuples.first[i + 1]):
                _remove(lists, side, tuples.items[k], tuples.identifier[i], head)
        head += 1
    windows.ends[side, 0] = head


@compiled
def _remove(lists, side, item, identifier, position):
    key = _list_of(lists, side, 0, item, identifier)
    entry = (identifier << 32) | position
    end = lists.begin[key] + lists.length[key]
    at = lists.begin[key]
    while lists.entry[at] != entry:
        at += 1
    while at + 1 < end:
        lists.entry[at] = lists.entry[at + 1]
        at += 1
    lists.length[key] -= 1


@compiled
def begin_probe(kind, tuples, windows, lists, i):
    """Gets ready to look for the matches of tuple i."""
    if kind == SCAN:
        for k in range(tuples.first[i], tuples.first[i + 1]):
            windows.present[tuples.items[k]] = 1
    else:
        lists.probe[0] += 1


@compiled
def end_probe(kind, tuples, windows, i):
    if kind == SCAN:
        for k in range(tuples.first[i], tuples.first[i + 1]):
            windows.present[tuples.items[k]] = 0


@compiled
def probe_part(kind, tuples, windows, lists, pairs, i, slot, low, high, share, threshold):
    """How many tuples at the positions from low to high share enough items with tuple i.

    The positions lie in one slot. Lists by identifier cannot be cut by time: they are read up to
    the identifier that a `share` of all have, and of what they hold only what is expired is left
    out.
    """
    if kind == SCAN:
        return _scan(windows, pairs, tuples.side[i], i, low, high, threshold)
    side = 1 - tuples.side[i]
    base = lists.probe[0] * _MOST_ITEMS
    matches = 0
    for k in range(tuples.first[i], tuples.first[i + 1]):
        if kind == BY_TIME:
            key = (side * lists.slots + slot) * lists.items + tuples.items[k]
            at = lists.begin[key]
            end = at + lists.length[key]
            if at < end and lists.entry[at] < low:
                at = _first_from(lists.entry, at, end, low)
            matches += _count(lists, pairs, windows, side, i, at, end, base, low, threshold)
            continue
        bound = int(share * _IDENTIFIERS)
        key = _list_of(lists, side, slot, tuples.items[k], 0)
        for part in range(lists.parts):
            at = lists.begin[key + part]
            end = at + lists.length[key + part]
            if (part + 1) * (_IDENTIFIERS // lists.parts) > bound:
                end = _first_from(lists.entry, at, end, bound << 32)
            matches += _count(lists, pairs, windows, side, i, at, end, base, low, threshold)
            if (part + 1) * (_IDENTIFIERS // lists.parts) >= bound:
                break
    return matches


@compiled
def _scan(windows, pairs, probing, i, low, high, threshold):
    side = 1 - probing
    matches = 0
    for position in range(low, high):
        shared = 0
        for k in range(windows.first[side, position], windows.first[side, position + 1]):
            shared += windows.present[windows.items[side, k]]
        if shared >= threshold:
            matches += 1
            _note(pairs, windows, side, i, position)
    return matches


@compiled
def _count(lists, pairs, windows, side, i, at, end, base, low, threshold):
    """Counts one more shared item for each entry, and those that now have enough."""
    matches = 0
    for e in range(at, end):
        position = lists.entry[e] & _POSITION
        if position < low:
            continue
        shared = max(lists.seen[side, position], base) + 1
        lists.seen[side, position] = shared
        if shared == base + threshold:
            matches += 1
            _note(pairs, windows, side, i, position)
    return matches


@compiled
def _note(pairs, windows, side, i, position):
    at = pairs.found[0]
    if at < len(pairs.first):
        other = windows.of[side, position]
        pairs.first[at] = other if side == 0 else i
        pairs.second[at] = i if side == 0 else other
        pairs.found[0] = at + 1


@compiled
def _first_from(entries, begin, end, value):
    """The first place from begin to end whose entry is not below the value."""
    while begin < end:
        middle = (begin + end) // 2
        if entries[middle] < value:
            begin = middle + 1
        else:
            end = middle
    return begin
