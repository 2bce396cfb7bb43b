"""Sorts by a number, largest first, in a time that does not depend on how many there are alike."""

import numpy as np
import numpy.typing as npt
from numba import njit

Order = npt.NDArray[np.int64]

_DIGIT = 11
_DIGITS = 6  # of 11 bits each cover the 64 of a float
# Below this size numpy's sort is as fast and needs no tables.
_SMALL = 4_096


@njit(cache=True, nogil=True)
def _radix(bits, order):  # type: ignore[no-untyped-def]
    """Least significant digit first, each pass stable; digits that are all alike are skipped."""
    n = len(bits)
    size = 1 << _DIGIT
    mask = np.uint64(size - 1)
    counts = np.zeros((_DIGITS, size), np.int32)
    for i in range(n):
        value = bits[i]
        for digit in range(_DIGITS):
            counts[digit, (value >> np.uint64(_DIGIT * digit)) & mask] += 1
    keys = bits
    other_keys = np.empty_like(bits)
    other = np.empty_like(order)
    for digit in range(_DIGITS):
        shift = np.uint64(_DIGIT * digit)
        places = counts[digit]
        if places[(keys[0] >> shift) & mask] == n:
            continue
        total = 0
        for d in range(size):
            here = places[d]
            places[d] = total
            total += here
        for i in range(n):
            value = keys[i]
            d = (value >> shift) & mask
            to = places[d]
            places[d] = to + 1
            other_keys[to] = value
            other[to] = order[i]
        keys, other_keys = other_keys, keys
        order, other = other, order
    return order


def descending(values: npt.NDArray[np.float64]) -> Order:
    """The indices that sort values of at least 0, largest first; equal ones keep their order.

    >>> descending(np.array([1.0, 3.0, 0.0, 3.0])).tolist()
    [1, 3, 0, 2]
    """
    if len(values) < _SMALL:
        return np.argsort(-values, kind="stable")
    # The bits of a positive float sort like the float; turned over, they sort the other way.
    # Adding 0.0 makes -0.0 a plain 0.
    bits = ~(values + 0.0).view(np.uint64)
    # Half the memory of 64-bit indices, which is what the passes wait for.
    order: Order = _radix(bits, np.arange(len(values), dtype=np.int32)).astype(np.int64)
    return order
