"""The two input streams of a simulated join: how often a key occurs on each side, and when."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from skewless.errors import SkewlessError, bad_argument

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Hashes = npt.NDArray[np.uint64]

LEFT, RIGHT = 0, 1


def hash_keys(keys: Ints) -> Hashes:
    """A well mixed 64-bit hash of every key (SplitMix64).

    >>> len(set(hash_keys(np.arange(1_000)).tolist()))
    1000
    """
    mixed = keys.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


@dataclass(frozen=True)
class Arrivals:
    """Tuples in the order of their arrival."""

    time_s: Floats
    key: npt.NDArray[np.int32]
    side: npt.NDArray[np.int8]


@dataclass(frozen=True, eq=False)
class Streams:
    """Keys drawn independently from fixed probabilities; arrivals are Poisson.

    `rate` counts the tuples per second of both sides together, of which `left_share` are left.

    >>> streams = Streams(np.array([0.9, 0.1]), np.array([0.5, 0.5]), rate=1_000.0)
    >>> len(streams.between(0.0, 1.0, np.random.default_rng(7)).key) > 900
    True
    """

    left: Floats
    right: Floats
    rate: float
    left_share: float = 0.5

    def __post_init__(self) -> None:
        if self.left.ndim != 1 or self.left.shape != self.right.shape or not self.left.size:
            raise SkewlessError(
                f"left, right: got {self.left.shape} and {self.right.shape} probabilities; "
                "takes one per key on each side"
            )
        for name in ("left", "right"):
            values = getattr(self, name)
            if not np.isfinite(values).all() or (values < 0).any() or abs(values.sum() - 1) > 1e-6:
                raise SkewlessError(f"{name}: takes probabilities that add up to 1")
        if not (np.isfinite(self.rate) and self.rate > 0):
            raise bad_argument("rate", self.rate, "tuples per second above 0")
        if not 0 <= self.left_share <= 1:
            raise bad_argument("left_share", self.left_share, "a share from 0 to 1")

    @property
    def keys(self) -> int:
        return len(self.left)

    @cached_property
    def hashes(self) -> Hashes:
        """The hash of every key."""
        return hash_keys(np.arange(self.keys))

    @cached_property
    def _cumulative(self) -> tuple[Floats, Floats]:
        left, right = np.cumsum(self.left), np.cumsum(self.right)
        return left / left[-1], right / right[-1]

    def at_rate(self, rate: float) -> "Streams":
        """The same keys at another rate."""
        return Streams(self.left, self.right, rate, self.left_share)

    def between(self, start_s: float, end_s: float, rng: np.random.Generator) -> Arrivals:
        """Everything that arrives from `start_s` to `end_s`."""
        count = int(rng.poisson(self.rate * (end_s - start_s)))
        time_s = np.sort(rng.uniform(start_s, end_s, count))
        side = (rng.random(count) >= self.left_share).astype(np.int8)
        draws = rng.random(count)
        key = np.empty(count, np.int32)
        for of, cumulative in enumerate(self._cumulative):
            rows = side == of
            key[rows] = np.searchsorted(cumulative, draws[rows], side="right")
        return Arrivals(time_s, key, side)
