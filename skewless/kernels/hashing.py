"""Spark's xxhash64 of whole numbers: a task makes it anew instead of having it sent along."""

import numpy as np
import numpy.typing as npt
from numba import njit

SPARK_SEED = 42
_P1, _P2, _P3, _P4, _P5 = (
    np.uint64(prime)
    for prime in (
        0x9E3779B185EBCA87,
        0xC2B2AE3D27D4EB4F,
        0x165667B19E3779F9,
        0x85EBCA77C2B2AE63,
        0x27D4EB2F165667C5,
    )
)


@njit(cache=True, nogil=True, inline="always")
def _turned(value, bits):  # type: ignore[no-untyped-def]
    """Rotated to the left."""
    return (value << np.uint64(bits)) | (value >> np.uint64(64 - bits))


@njit(cache=True, nogil=True, inline="always")
def _mixed(value):  # type: ignore[no-untyped-def]
    value = (value ^ (value >> np.uint64(33))) * _P2
    value = (value ^ (value >> np.uint64(29))) * _P3
    return value ^ (value >> np.uint64(32))


@njit(cache=True, nogil=True)
def _of_longs(values, seed, out):  # type: ignore[no-untyped-def]
    start = seed + _P5 + np.uint64(8)
    for i in range(len(values)):
        word = _turned(np.uint64(values[i]) * _P2, 31) * _P1
        out[i] = _mixed(_turned(start ^ word, 27) * _P1 + _P4)


@njit(cache=True, nogil=True)
def _of_integers(values, seed, out):  # type: ignore[no-untyped-def]
    start = seed + _P5 + np.uint64(4)
    for i in range(len(values)):
        word = np.uint64(np.uint32(values[i])) * _P1
        out[i] = _mixed(_turned(start ^ word, 23) * _P2 + _P3)


def xxhash64(
    values: npt.NDArray[np.signedinteger], seed: int = SPARK_SEED
) -> npt.NDArray[np.uint64]:
    """The hash of every value, as `pyspark.sql.functions.xxhash64` has it for a single column.

    Spark hashes a long as 8 bytes, every smaller whole number as 4, and shows the same 64 bits as
    a signed number.

    >>> xxhash64(np.array([0, 1], np.int64)).view(np.int64).tolist()
    [-5252525462095825812, -7001672635703045582]
    """
    out = np.empty(len(values), np.uint64)
    if values.dtype == np.int64:
        _of_longs(values, np.uint64(seed), out)
    else:
        _of_integers(values.astype(np.int32, copy=False), np.uint64(seed), out)
    return out
