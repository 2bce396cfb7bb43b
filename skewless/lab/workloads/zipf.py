"""Zipf-distributed keys over a finite key space, drawn by inverting the cumulative distribution."""

import numpy as np
import numpy.typing as npt


class Zipf:
    """A sampler in which the key of rank r (from 1) has a probability proportional to r^-exponent.

    An exponent of 0 is uniform. Ranks are mapped to keys by a random permutation: real keys are
    not sorted by popularity, and a hash or range router must not profit from it if ours were.

    >>> Zipf(1.0, 1_000, np.random.default_rng(7)).sample(3).dtype
    dtype('int64')
    """

    def __init__(self, exponent: float, keys: int, rng: np.random.Generator) -> None:
        if keys < 1:
            raise ValueError(f"keys must be at least 1, got {keys}")
        if not (np.isfinite(exponent) and exponent >= 0):
            raise ValueError(f"exponent must be a finite number of at least 0, got {exponent}")
        self.exponent = exponent
        self.keys = keys
        self._rng = rng
        # Equally likely keys need no tables, which for 100 million of them would take gigabytes.
        self._is_uniform = exponent == 0
        if self._is_uniform:
            return
        self._key_of_rank: npt.NDArray[np.int64] = rng.permutation(keys)
        # Negative powers of a float64: an integer base would refuse a negative exponent.
        weights = np.arange(1, keys + 1, dtype=np.float64) ** -exponent
        cumulative = np.cumsum(weights)
        # Dividing by the last element makes it exactly 1, so a draw from [0, 1) never runs over.
        self._cdf: npt.NDArray[np.float64] = cumulative / cumulative[-1]

    def sample(self, size: int) -> npt.NDArray[np.int64]:
        """Draw `size` keys in [0, keys)."""
        if self._is_uniform:
            return self._rng.integers(0, self.keys, size)
        draws = self._rng.random(size)
        ranks = np.searchsorted(self._cdf, draws, side="right")
        return self._key_of_rank[ranks]

    def probabilities(self) -> npt.NDArray[np.float64]:
        """The probability of each key, indexed by key."""
        if self._is_uniform:
            return np.full(self.keys, 1 / self.keys)
        by_rank = np.diff(self._cdf, prepend=0.0)
        by_key = np.empty_like(by_rank)
        by_key[self._key_of_rank] = by_rank
        return by_key
