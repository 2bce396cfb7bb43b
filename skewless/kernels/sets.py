"""Sets of items, compared by merging the sorted hashes of their items."""

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from numba import njit

from skewless.kernels.groups import without_negative_zero
from skewless.kernels.intervals import _first_at_least
from skewless.kernels.ordering import HashArray, IndexArray
from skewless.kernels.runs import equal_keys

Mask = npt.NDArray[np.bool_]
ItemHashes = npt.NDArray[np.int64]
Weights = npt.NDArray[np.float64]
_Part = TypeVar("_Part")
_Offsets = npt.NDArray[np.integer]
_PairsOfHashes = tuple[_Offsets, ItemHashes, IndexArray, _Offsets, ItemHashes, IndexArray]
# Where one set is so many times as large as the other, its hashes are searched, not walked through.
_GALLOP = 16


@dataclass(frozen=True)
class ItemSets:
    """The sets of many rows, one after the other.

    The set of row r is at offsets[r]:offsets[r + 1] of the other arrays. Its hashes rise as signed
    numbers, one for every distinct item; two items may have one hash.
    """

    offsets: npt.NDArray[np.integer]
    hashes: ItemHashes
    weights: Weights | None = None
    items: pa.Array | None = None  # None: equal hashes are equal items
    signatures: HashArray | None = None  # what `signatures_of` gives, of every set

    @staticmethod
    def of(
        column: pa.Array, hash_: str, weight: str, item: str, signatures: HashArray | None = None
    ) -> "ItemSets":
        """A column of lists of hashes, or of lists of structs with fields of these names."""
        offsets, values = column.offsets.to_numpy(), column.values
        if not pa.types.is_struct(values.type):
            return ItemSets(offsets, values.to_numpy(), signatures=signatures)
        parts = {values.type.field(i).name: values.field(i) for i in range(values.type.num_fields)}
        weights = parts[weight].to_numpy() if weight in parts else None
        hashes = parts[hash_].to_numpy()
        return ItemSets(offsets, hashes, weights, parts.get(item), signatures)

    @property
    def sizes(self) -> IndexArray:
        return np.diff(self.offsets).astype(np.int64)

    def whole_hashes(self) -> HashArray:
        """One hash of every whole set.

        >>> ItemSets(np.array([0, 2, 2, 3]), np.array([1, 5, 7])).whole_hashes().tolist()
        [6, 0, 7]
        """
        upto = np.zeros(len(self.hashes) + 1, np.uint64)
        np.cumsum(self.hashes.view(np.uint64), out=upto[1:])  # wraps around, as hashes may
        return upto[self.offsets[1:]] - upto[self.offsets[:-1]]

    @property
    def owners(self) -> IndexArray:
        """The row of every item, and of nothing before the first set and after the last."""
        return np.repeat(np.arange(len(self.offsets) - 1), self.sizes)

    def postings(self, at_least: int) -> tuple[IndexArray, HashArray]:
        """Row and hash of the postings: the hashes under which every set is looked up.

        These are the first n − at_least + 1 of n (prefix filter): two sets with `at_least` common
        items have a common hash among them. The least of all their common hashes is one, for at
        least `at_least` items of either set are not below it.

        >>> ItemSets(np.array([0, 3, 4]), np.array([1, 5, 7, 5])).postings(2)[0].tolist()
        [0, 0]
        """
        sizes = np.maximum(self.sizes - (at_least - 1), 0)
        row = np.repeat(np.arange(len(sizes)), sizes)
        first = np.cumsum(sizes) - sizes
        place = self.offsets[:-1].astype(np.int64)[row] + (np.arange(len(row)) - first[row])
        hashes = self.hashes[place]
        again = np.zeros(len(row), np.bool_)
        again[1:] = (hashes[1:] == hashes[:-1]) & (row[1:] == row[:-1])
        if again.any():
            row, hashes = row[~again], hashes[~again]
        return row, hashes.view(np.uint64)


@dataclass(frozen=True)
class SetPairs:
    """Pairs of sets: row numbers into two collections of sets."""

    left: ItemSets
    left_rows: IndexArray
    right: ItemSets
    right_rows: IndexArray

    def __len__(self) -> int:
        return len(self.left_rows)

    def chosen(self, at: IndexArray) -> "SetPairs":
        return SetPairs(self.left, self.left_rows[at], self.right, self.right_rows[at])

    def overlapping(self, at_least: int, first: ItemHashes | None = None) -> Mask:
        """Which pairs have `at_least` common hashes, of which `first` (if given) is the least."""
        out = np.ones(len(self), np.bool_)
        signed = self.left.signatures, self.right.signatures
        if signed[0] is not None and signed[1] is not None:
            sides = self.left.offsets, self.left_rows, self.right.offsets, self.right_rows
            _may_overlap(*sides, signed[0], signed[1], at_least, out)
        _overlapping(*self._hashes(), *_least(first), at_least, out)
        return out

    def products(self, first: ItemHashes | None = None) -> tuple[Weights, Weights]:
        """The inner product over common hashes, and the most that it can be.

        Both are −∞ where `first` (if given) is not the least common hash. They differ only if two
        items may have one hash: then a negative term may be of two items that are not the same.
        """
        product, most = np.empty(len(self)), np.empty(len(self))
        weights = _there(self.left.weights), _there(self.right.weights)
        _products(*self._hashes(), *weights, *_least(first), product, most)
        return product, most

    def proved(self) -> Mask:
        """Which pairs have the same item at every common hash."""
        counts = np.zeros(len(self), np.int64)
        _count_common(*self._hashes(), counts)
        upto = np.cumsum(counts)
        left, right = np.empty(counts.sum(), np.int64), np.empty(counts.sum(), np.int64)
        _fill_common(*self._hashes(), left, right)
        a, b = _there(self.left.items), _there(self.right.items)
        same = equal_keys([a.take(pa.array(left))], [b.take(pa.array(right))])
        if same.all():
            return np.ones(len(self), np.bool_)
        wrong = np.concatenate([[0], np.cumsum(~same)])
        alike: Mask = wrong[upto] == wrong[upto - counts]
        return alike

    def by_identity(self) -> "SetPairs":
        """The same pairs with numbers in place of hashes: equal number, equal item."""
        sides = [_gathered(s, r) for s, r in self._sides()]
        items = [_there(s.items) for s in sides]
        kind = items[0].type
        both = pa.concat_arrays([items[0], items[1].cast(kind)])
        if pa.types.is_floating(kind):
            # Spark has one NaN and one zero; Arrow tells them apart by their bits.
            nan = pa.scalar(float("nan"), kind)
            both = pc.if_else(pc.is_nan(both), nan, without_negative_zero(both))
        numbers = both.dictionary_encode().indices.to_numpy().astype(np.int64)
        cut = len(items[0])
        left = _sorted_sets(sides[0], numbers[:cut])
        right = _sorted_sets(sides[1], numbers[cut:])
        each = np.arange(len(self))
        return SetPairs(left, each, right, each)

    def _sides(self) -> tuple[tuple[ItemSets, IndexArray], ...]:
        return (self.left, self.left_rows), (self.right, self.right_rows)

    def _hashes(self) -> "_PairsOfHashes":
        """As the kernels take them: offsets, hashes and rows of the left, then of the right."""
        left, right = self.left, self.right
        rows = self.left_rows, self.right_rows
        return left.offsets, left.hashes, rows[0], right.offsets, right.hashes, rows[1]


def signatures_of(sets: ItemSets) -> HashArray:
    """A bitmap of every set: of 64 bits those that the hashes of its items name.

    A bit that one set has and the other has not is an item, at least, that they do not share. So
    two words say of most pairs that they have too little in common, without a look at their items.
    """
    out = np.zeros(len(sets.offsets) - 1, np.uint64)
    _sign(sets.offsets, sets.hashes, out)
    return out


def added_up(sets: ItemSets) -> ItemSets | None:
    """Sets in which every item is there once, its weights added up, and no weight is 0.

    None where that is so already.
    """
    owner = sets.owners
    begin, end = int(sets.offsets[0]), int(sets.offsets[-1])
    hashes, weights = sets.hashes[begin:end], _there(sets.weights)[begin:end]
    again = np.zeros(len(hashes), np.bool_)
    again[1:] = (hashes[1:] == hashes[:-1]) & (owner[1:] == owner[:-1])
    if again.any() and sets.items is not None:
        at = np.flatnonzero(again)
        here, before = (sets.items.take(pa.array(begin + at - n)) for n in (0, 1))
        again[at] = equal_keys([here], [before])
    if not again.any() and weights.all():
        return None
    heads = np.flatnonzero(~again)
    total = np.add.reduceat(weights, heads) if len(heads) else weights
    heads, total = heads[total != 0], total[total != 0]
    counts = np.bincount(owner[heads], minlength=len(sets.offsets) - 1)
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(sets.offsets.dtype)
    items = None if sets.items is None else sets.items.take(pa.array(begin + heads))
    return ItemSets(offsets, hashes[heads], total, items)


def _there(part: _Part | None) -> _Part:
    """A part of the sets that what is asked of them needs."""
    assert part is not None, "sets have weights if these are compared, and items if hashes collide"
    return part


def _least(first: ItemHashes | None) -> tuple[ItemHashes, bool]:
    return (np.empty(0, np.int64), False) if first is None else (first, True)


def _gathered(sets: ItemSets, rows: IndexArray) -> ItemSets:
    """The sets of some rows, one after the other, the first at 0."""
    sizes = sets.sizes[rows]
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    owner = np.repeat(np.arange(len(rows)), sizes)
    place = sets.offsets[:-1].astype(np.int64)[rows][owner] + np.arange(len(owner)) - offsets[owner]
    weights = None if sets.weights is None else sets.weights[place]
    items = _there(sets.items).take(pa.array(place))
    return ItemSets(offsets, sets.hashes[place], weights, items)


def _sorted_sets(sets: ItemSets, numbers: ItemHashes) -> ItemSets:
    order = np.lexsort((numbers, sets.owners))
    weights = None if sets.weights is None else sets.weights[order]
    return ItemSets(sets.offsets, numbers[order], weights)


@njit(cache=True, nogil=True, inline="always")
def _next_common(a, i, i_end, b, j, j_end):  # type: ignore[no-untyped-def]
    """Where the next common hash is in both; at the end of one of them where there is none."""
    if (i_end - i) > _GALLOP * (j_end - j):
        while j < j_end:
            i = _first_at_least(a, b[j], i, i_end)
            if i == i_end or a[i] == b[j]:
                break
            j += 1
    elif (j_end - j) > _GALLOP * (i_end - i):
        while i < i_end:
            j = _first_at_least(b, a[i], j, j_end)
            if j == j_end or b[j] == a[i]:
                break
            i += 1
    else:
        while i < i_end and j < j_end:
            x = a[i]
            y = b[j]
            if x == y:
                break
            # Without a branch: which of the two is smaller nobody can foresee.
            i += x < y
            j += y < x
    return i, j


@njit(cache=True, nogil=True)
def _sign(offsets, hashes, out):  # type: ignore[no-untyped-def]
    for row in range(len(out)):
        word = np.uint64(0)
        for i in range(offsets[row], offsets[row + 1]):
            # The lowest bits: rows that meet at a posting may have the highest in common.
            word |= np.uint64(1) << (np.uint64(hashes[i]) & np.uint64(63))
        out[row] = word


@njit(cache=True, nogil=True, inline="always")
def _ones(word):  # type: ignore[no-untyped-def]
    """How many bits are set."""
    word = word - ((word >> np.uint64(1)) & np.uint64(0x5555555555555555))
    pairs = np.uint64(0x3333333333333333)
    word = (word & pairs) + ((word >> np.uint64(2)) & pairs)
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((word * np.uint64(0x0101010101010101)) >> np.uint64(56))


@njit(cache=True, nogil=True)
def _may_overlap(a_offsets, a_rows, b_offsets, b_rows, a_signed, b_signed, at_least, out):  # type: ignore[no-untyped-def]
    for k in range(len(a_rows)):
        a = a_rows[k]
        b = b_rows[k]
        x = a_signed[a]
        y = b_signed[b]
        of_a = np.int64(a_offsets[a + 1]) - np.int64(a_offsets[a]) - _ones(x & ~y)
        of_b = np.int64(b_offsets[b + 1]) - np.int64(b_offsets[b]) - _ones(y & ~x)
        out[k] = (of_a >= at_least) & (of_b >= at_least)


@njit(cache=True, nogil=True)
def _overlapping(a_offsets, a, a_rows, b_offsets, b, b_rows, first, is_told, at_least, out):  # type: ignore[no-untyped-def]
    for k in range(len(a_rows)):
        if not out[k]:
            continue
        out[k] = False
        i = np.int64(a_offsets[a_rows[k]])
        i_end = np.int64(a_offsets[a_rows[k] + 1])
        j = np.int64(b_offsets[b_rows[k]])
        j_end = np.int64(b_offsets[b_rows[k] + 1])
        missing = at_least
        while missing <= i_end - i and missing <= j_end - j:
            i, j = _next_common(a, i, i_end, b, j, j_end)
            if i == i_end or j == j_end:
                break
            if is_told and missing == at_least and a[i] != first[k]:
                break
            missing -= 1
            if missing == 0:
                out[k] = True
                break
            i += 1
            j += 1


@njit(cache=True, nogil=True)
def _products(  # type: ignore[no-untyped-def]
    a_offsets, a, a_rows, b_offsets, b, b_rows, a_weights, b_weights, first, is_told, product, most
):
    for k in range(len(a_rows)):
        i = np.int64(a_offsets[a_rows[k]])
        i_end = np.int64(a_offsets[a_rows[k] + 1])
        j = np.int64(b_offsets[b_rows[k]])
        j_end = np.int64(b_offsets[b_rows[k] + 1])
        total = 0.0
        upper = 0.0
        looking = is_told
        while i < i_end and j < j_end:
            i, j = _next_common(a, i, i_end, b, j, j_end)
            if i == i_end or j == j_end:
                break
            if looking:
                if a[i] != first[k]:
                    break
                looking = False
            term = a_weights[i] * b_weights[j]
            total += term
            upper += max(term, 0.0)
            # Two items of one hash: any of them may be the common one.
            if (i + 1 < i_end and a[i + 1] == a[i]) or (j + 1 < j_end and b[j + 1] == b[j]):
                upper = np.inf
            i += 1
            j += 1
        product[k] = -np.inf if looking else total
        most[k] = -np.inf if looking else upper


@njit(cache=True, nogil=True)
def _count_common(a_offsets, a, a_rows, b_offsets, b, b_rows, counts):  # type: ignore[no-untyped-def]
    for k in range(len(a_rows)):
        i = np.int64(a_offsets[a_rows[k]])
        i_end = np.int64(a_offsets[a_rows[k] + 1])
        j = np.int64(b_offsets[b_rows[k]])
        j_end = np.int64(b_offsets[b_rows[k] + 1])
        while i < i_end and j < j_end:
            i, j = _next_common(a, i, i_end, b, j, j_end)
            if i == i_end or j == j_end:
                break
            counts[k] += 1
            i += 1
            j += 1


@njit(cache=True, nogil=True)
def _fill_common(a_offsets, a, a_rows, b_offsets, b, b_rows, a_out, b_out):  # type: ignore[no-untyped-def]
    filled = 0
    for k in range(len(a_rows)):
        i = np.int64(a_offsets[a_rows[k]])
        i_end = np.int64(a_offsets[a_rows[k] + 1])
        j = np.int64(b_offsets[b_rows[k]])
        j_end = np.int64(b_offsets[b_rows[k] + 1])
        while i < i_end and j < j_end:
            i, j = _next_common(a, i, i_end, b, j, j_end)
            if i == i_end or j == j_end:
                break
            a_out[filled] = i
            b_out[filled] = j
            filled += 1
            i += 1
            j += 1
