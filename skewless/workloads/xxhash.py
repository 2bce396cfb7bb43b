"""Spark's xxhash64 of a long in numpy, to choose keys by where Spark will send them."""

import numpy as np
import numpy.typing as npt

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
_BYTES = np.uint64(8)


def xxhash64(values: npt.NDArray[np.int64], seed: int = SPARK_SEED) -> npt.NDArray[np.uint64]:
    """The hash of every value, as `pyspark.sql.functions.xxhash64` has it for a single long.

    Spark shows the same 64 bits as a signed number.

    >>> xxhash64(np.array([0, 1], np.int64)).view(np.int64).tolist()
    [-5252525462095825812, -7001672635703045582]
    """
    mixed = values.view(np.uint64) * _P2
    mixed = _turned(mixed, 31) * _P1
    # One sum of Python's, because numpy warns when a single number runs over.
    start = np.uint64((seed + int(_P5) + int(_BYTES)) % 2**64)
    mixed = _turned(start ^ mixed, 27) * _P1 + _P4
    mixed = (mixed ^ (mixed >> np.uint64(33))) * _P2
    mixed = (mixed ^ (mixed >> np.uint64(29))) * _P3
    return mixed ^ (mixed >> np.uint64(32))


def _turned(values: npt.NDArray[np.uint64], bits: int) -> npt.NDArray[np.uint64]:
    """Rotated to the left."""
    return (values << np.uint64(bits)) | (values >> np.uint64(64 - bits))
