"""Sets of items whose popularity rotates, for joins of streams of which one follows the other."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from skewless.errors import bad_argument

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Items = npt.NDArray[np.int32]

_COLUMNS = 16


@dataclass(frozen=True, eq=False)
class ItemSets:
    """Sets of items, one after the other: set i is `items[first[i] : first[i + 1]]`."""

    first: Ints
    items: Items

    def __len__(self) -> int:
        return len(self.first) - 1


@dataclass(frozen=True)
class Rotating:
    """Items 1 to `items` with Zipf popularity; each is the most popular one once in a cycle.

    At time T the most popular item is a = 1 + ⌊items·(T mod cycle)/cycle⌋, then a + 1, and so on;
    after the last item comes the first. A set has a normally distributed number of items, at least
    one, which are drawn one after the other without replacement.

    >>> stream = Rotating(exponent=0.8, cycle_s=40.0)
    >>> len(stream.draw(np.array([0.0, 1.0]), np.random.default_rng(1)))
    2
    >>> stream.most_popular(np.array([0.0, 10.0, 40.0])).tolist()
    [1, 26, 1]
    """

    exponent: float
    cycle_s: float
    items: int = 100
    mean_size: float = 5.0
    deviation: float = 1.0

    def __post_init__(self) -> None:
        if not (np.isfinite(self.exponent) and self.exponent >= 0):
            raise bad_argument("exponent", self.exponent, "a finite number of at least 0")
        if not self.cycle_s > 0:
            raise bad_argument("cycle_s", self.cycle_s, "a number above 0")
        if self.items < 1:
            raise bad_argument("items", self.items, "at least 1")
        if not 1 <= self.mean_size <= self.items:
            raise bad_argument("mean_size", self.mean_size, f"a number from 1 to {self.items}")
        if not self.deviation >= 0:
            raise bad_argument("deviation", self.deviation, "a number of at least 0")

    @staticmethod
    def values(exponent: float, cycle_s: float, items: int = 5_000) -> "Rotating":
        """Single values instead of sets, for joins by equality."""
        return Rotating(exponent, cycle_s, items, mean_size=1.0, deviation=0.0)

    def most_popular(self, time_s: Floats) -> Ints:
        """The most popular item at each time; times before 0 are of an earlier cycle."""
        turned = np.mod(time_s, self.cycle_s) / self.cycle_s
        # Rounding may give a whole turn.
        return 1 + np.minimum(np.floor(self.items * turned).astype(np.int64), self.items - 1)

    def draw(self, time_s: Floats, rng: np.random.Generator, *, lag_s: float = 0.0) -> ItemSets:
        """One set per time; with a lag, of the popularity that was in force so long before."""
        normal = rng.normal(self.mean_size, self.deviation, len(time_s))
        sizes = np.clip(np.rint(normal), 1, self.items).astype(np.int64)
        weights = np.arange(1, self.items + 1, dtype=np.float64) ** -self.exponent
        cdf = np.cumsum(weights)
        cdf /= cdf[-1]
        row, rank = _distinct(cdf, sizes, rng)
        a = self.most_popular(time_s - lag_s)
        item = (a[row] - 1 + rank) % self.items + 1
        order = np.lexsort((item, row))
        first = np.concatenate([[0], np.cumsum(sizes)])
        return ItemSets(first, item[order].astype(np.int32))


def _distinct(cdf: Floats, sizes: Ints, rng: np.random.Generator) -> tuple[Ints, Ints]:
    """(row, rank) of as many different ranks per row as its size, in the order of their draws."""
    open_rows = np.arange(len(sizes))
    drawn = np.empty((len(sizes), 0), np.int64)
    rows, ranks = [], []
    while len(open_rows):
        more = rng.random((len(open_rows), _COLUMNS))
        drawn = np.hstack([drawn, np.searchsorted(cdf, more, side="right")])
        is_new = np.ones(drawn.shape, bool)
        for column in range(1, drawn.shape[1]):
            is_new[:, column] = (drawn[:, :column] != drawn[:, column : column + 1]).all(axis=1)
        number = np.cumsum(is_new, axis=1)
        wanted = sizes[open_rows]
        done = number[:, -1] >= wanted
        chosen = is_new & (number <= wanted[:, None]) & done[:, None]
        row, column_of = np.nonzero(chosen)
        rows.append(open_rows[row])
        ranks.append(drawn[row, column_of])
        open_rows, drawn = open_rows[~done], drawn[~done]
    return np.concatenate(rows), np.concatenate(ranks)


def even_arrivals(phases: Sequence[tuple[float, float]], *, shift: float = 0.0) -> Floats:
    """Times at even distances: so many rows per second for so many seconds, phase by phase.

    `shift` moves every row by a part of the distance to the next one.

    >>> even_arrivals([(2.0, 1.0), (1.0, 2.0)], shift=0.5).tolist()
    [0.25, 0.75, 1.5, 2.5]
    """
    times, start = [], 0.0
    for rate, seconds in phases:
        if not (rate > 0 and seconds > 0):
            raise bad_argument("phases", (rate, seconds), "rates and seconds above 0")
        times.append(start + (np.arange(round(rate * seconds)) + shift) / rate)
        start += seconds
    return np.concatenate(times)
