"""A table of explicit keys in which every row is looked up with two reads, however many keys.

SQL has no constant hash map: a map literal is searched from end to end. So the keys are laid out
by perfect hashing with displacements: the low bits of a hash choose a bucket, the bucket's
displacement turns other bits of the hash into a slot of its own.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from skewless.errors import SkewlessError

# The bits that make the slot. If two keys of a bucket share them, other bits are tried.
_SHIFTS = (24, 32, 40, 16, 56, 48)
# A larger table than this many bits would cost more to send than a search from end to end.
_MAX_BITS = 18
NOWHERE = -1


@dataclass(frozen=True)
class KeyLookup:
    """place(h) = places[((h >>> shift) ^ displacements[h & (buckets − 1)]) & (slots − 1)].

    The place is a candidate: the key itself must still be compared.
    """

    shift: int
    displacements: tuple[int, ...]
    places: tuple[int, ...]

    @staticmethod
    def of(hashes: Sequence[int]) -> "KeyLookup | None":
        """A lookup of distinct 64-bit hashes, the same one for the same keys.

        None if no lookup exists, because many keys share most bits. Good hashes never do.

        >>> KeyLookup.of([7, 9]).find(np.array([9, 7], np.uint64)).tolist()
        [1, 0]
        """
        if len(set(hashes)) != len(hashes):
            raise SkewlessError("hashes: takes each key once")
        fewest = max(1, (2 * len(hashes) - 1).bit_length())
        for bits in range(fewest, max(fewest + 2, _MAX_BITS) + 1):
            for shift in _SHIFTS:
                lookup = _laid_out(hashes, shift, bits)
                if lookup is not None:
                    return lookup
        return None

    def find(self, hashes: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
        """The candidate key of each hash; `NOWHERE` if there is none."""
        displacements = np.array(self.displacements, np.uint64)
        bucket = hashes & np.uint64(len(displacements) - 1)
        mixed = (hashes >> np.uint64(self.shift)) ^ displacements[bucket.astype(np.int64)]
        slot = mixed & np.uint64(len(self.places) - 1)
        return np.array(self.places, np.int64)[slot.astype(np.int64)]


def _laid_out(hashes: Sequence[int], shift: int, bits: int) -> KeyLookup | None:
    slots = 1 << bits
    buckets: list[list[int]] = [[] for _ in range(max(1, slots >> 2))]
    for place, h in enumerate(hashes):
        buckets[h & (len(buckets) - 1)].append(place)
    places = [NOWHERE] * slots
    displacements = [0] * len(buckets)
    # The fullest first, while there is room.
    for bucket in sorted(range(len(buckets)), key=lambda b: -len(buckets[b])):
        members = buckets[bucket]
        if not members:
            break
        starts = {(hashes[place] >> shift) & (slots - 1) for place in members}
        if len(starts) < len(members):
            return None
        found = next(
            (d for d in range(slots) if all(places[s ^ d] == NOWHERE for s in starts)), None
        )
        if found is None:
            return None
        displacements[bucket] = found
        for place in members:
            places[((hashes[place] >> shift) & (slots - 1)) ^ found] = place
    return KeyLookup(shift, tuple(displacements), tuple(places))
