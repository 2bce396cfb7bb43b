"""Chance that a replay repeats: numbers drawn from the row itself and the batch."""

import numpy as np
import numpy.typing as npt

Hashes = npt.NDArray[np.uint64]
Times = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def uniform(hashes: Hashes, times: Times, batch: int, use: int, instance: int = 0) -> Floats:
    """A uniform number in [0, 1) for every row, the same whenever the batch is replayed.

    Numbers of different batches, `use`s and instances are independent. Rows of the same hash and
    time share theirs.
    """
    place = _mixed(np.array([(instance << 8) + use], np.uint64))
    seed = _mixed(place ^ np.uint64(batch))[0]
    with np.errstate(over="ignore"):
        mixed = _mixed(_mixed(hashes + seed) ^ times.view(np.uint64))
    return (mixed >> np.uint64(11)).astype(np.float64) * 2.0**-53


def _mixed(numbers: Hashes) -> Hashes:
    """The finaliser of splitmix64: every bit of the input moves half the bits of the output."""
    with np.errstate(over="ignore"):
        x = numbers + _GOLDEN
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        mixed: Hashes = x ^ (x >> np.uint64(31))
    return mixed
