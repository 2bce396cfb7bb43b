"""Streams whose tuples cost differently, as POSG's evaluation draws them (§V-A)."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from skewless.errors import bad_argument
from skewless.lab.workloads.zipf import Zipf
from skewless.planning.checks import check_number, check_whole

Floats = npt.NDArray[np.float64]

# 'even' and 'geometric' steps are the paper's; 'pareto' has a heavy tail (exponent 1.1).
Spacing = Literal["even", "geometric", "pareto"]
_PARETO = 1.1
# Execution times of tweets that mention media, politicians and others (§V-C).
TWEET_MS = (25.0, 5.0, 1.0)


@dataclass(frozen=True)
class CostlyStream:
    """Which item every tuple is, and what every item costs in milliseconds."""

    items: npt.NDArray[np.int64]
    cost_of_item: Floats

    def __post_init__(self) -> None:
        if not len(self.items):
            raise bad_argument("items", 0, "at least one tuple")
        if len(self.cost_of_item) <= self.items.max() or (self.cost_of_item <= 0).any():
            raise bad_argument("cost_of_item", self.cost_of_item, "a cost above 0 for every item")

    @property
    def costs(self) -> Floats:
        """The cost of every tuple."""
        costs: Floats = self.cost_of_item[self.items]
        return costs

    @property
    def hashes(self) -> npt.NDArray[np.uint64]:
        """What the sketches take for every item; they hash by themselves, so its number will do."""
        return np.arange(len(self.cost_of_item), dtype=np.uint64)


def draw_stream(
    zipf: float,
    rng: np.random.Generator,
    *,
    tuples: int = 32_768,
    items: int = 4_096,
    values: int = 64,
    longest_ms: float = 64.0,
    spacing: Spacing = "even",
) -> CostlyStream:
    """Zipf-distributed items, each with one of `values` costs, equally often and at random.

    >>> draw_stream(1.0, np.random.default_rng(1)).cost_of_item.mean().item()
    32.5
    """
    check_whole("tuples", tuples, 1, 2**31)
    check_whole("values", values, 1, items)
    check_number("longest_ms", longest_ms, 1.0)
    if spacing == "even":
        steps = np.linspace(1.0, longest_ms, values)
    elif spacing == "geometric":
        steps = np.geomspace(1.0, longest_ms, values)
    elif spacing == "pareto":
        quantiles = (np.arange(values) + 0.5) / values
        steps = np.minimum((1 - quantiles) ** (-1 / _PARETO), longest_ms)
    else:
        raise bad_argument("spacing", spacing, "'even', 'geometric' or 'pareto'")
    drawn = Zipf(zipf, items, rng).sample(tuples)
    costs = np.resize(steps, items)
    return CostlyStream(drawn, rng.permutation(costs))


def draw_tweets(
    rng: np.random.Generator, *, tuples: int = 500_000, entities: int = 35_000
) -> CostlyStream:
    """A stand-in for the paper's tweets: as many entities, the most frequent as frequent (6.5 %).

    What the paper does not give is assumed: one entity in twenty is a medium, three are
    politicians, and frequency falls by a power of the rank. The most frequent is a politician, as
    in the paper.
    """
    ranks = np.arange(1, entities + 1, dtype=np.float64)
    weights = ranks ** -_exponent_for(0.065, ranks)
    drawn = rng.choice(entities, tuples, p=weights / weights.sum())
    kinds = rng.choice(3, entities, p=[0.05, 0.15, 0.80])
    kinds[0] = 1
    return CostlyStream(drawn, np.array(TWEET_MS)[kinds])


def _exponent_for(share: float, ranks: Floats) -> float:
    """The Zipf exponent at which the most frequent item has this share."""
    low, high = 0.0, 8.0
    for _ in range(60):
        middle = (low + high) / 2
        if 1 / (ranks**-middle).sum() < share:
            low = middle
        else:
            high = middle
    return high
