"""Points and rectangles on a map: a crowd in cities, and hotspots that come and go.

Everything is in the unit square; scale it to the bounds you need.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

Reals = npt.NDArray[np.float64]
Kind = Literal["bell", "normal", "step", "two", "sequence"]
KINDS: tuple[Kind, ...] = ("bell", "normal", "step", "two", "sequence")
SIDE = 0.15  # of a hotspot
SHARE = 0.4  # of the points that go to hotspots at the peak
QUERY_SIDE = 0.0016
# A normal hotspot's deviation, as a share of its side.
_DEVIATION = 0.2
_WAVES = 3


@dataclass(frozen=True, eq=False)
class Crowd:
    """People in cities of all sizes, and a few anywhere. How busy a city is changes over time.

    A city's weight is multiplied by exp(`swing` · z(t)); z is a sum of slow waves with a variance
    of 1. Periods are in seconds.

    >>> crowd = Crowd.cities(np.random.default_rng(1))
    >>> crowd.points(np.random.default_rng(2), 5).shape
    (5, 2)
    """

    centres: Reals
    widths: Reals
    weights: Reals
    phases: Reals  # of the waves of every city, in turns
    periods_s: Reals
    swing: float = 0.7
    anywhere: float = 0.05  # share of the points that belong to no city

    @staticmethod
    def cities(
        rng: np.random.Generator,
        count: int = 300,
        *,
        exponent: float = 1.0,
        swing: float = 0.7,
        anywhere: float = 0.05,
    ) -> "Crowd":
        """Cities whose sizes follow Zipf's law; larger ones are wider."""
        sizes = np.arange(1, count + 1, dtype=np.float64) ** -exponent
        return Crowd(
            centres=rng.random((count, 2)),
            widths=0.002 + 0.02 * np.sqrt(sizes) * rng.uniform(0.5, 1.5, count),
            weights=sizes,
            phases=rng.random((count, _WAVES)),
            periods_s=rng.uniform(1_200.0, 14_400.0, (count, _WAVES)),
            swing=swing,
            anywhere=anywhere,
        )

    def shares(self, at_s: float = 0.0) -> Reals:
        """The share of every city at a time."""
        turns = self.phases + at_s / self.periods_s
        z = np.sqrt(2 / _WAVES) * np.cos(2 * np.pi * turns).sum(axis=1)
        weights = self.weights * np.exp(self.swing * z)
        shares: Reals = weights / weights.sum()
        return shares

    def points(self, rng: np.random.Generator, count: int, at_s: float = 0.0) -> Reals:
        """Points (x, y) of the crowd at a time."""
        city = rng.choice(len(self.weights), count, p=self.shares(at_s))
        points = self.centres[city] + rng.normal(size=(count, 2)) * self.widths[city, None]
        nowhere = rng.random(count) < self.anywhere
        points[nowhere] = rng.random((int(nowhere.sum()), 2))
        return reflected(points)


@dataclass(frozen=True)
class Hotspot:
    """A square that draws points from `start_s` to `end_s`, up to `share` of all of them.

    `rises` is a "bell" over that time, or a "step". Inside the square, points are "uniform" or
    "normal".

    >>> Hotspot((0.0, 0.0), start_s=0.0, end_s=60.0, rises="step").intensity(30.0)
    0.4
    """

    corner: tuple[float, float]  # the lower left one
    start_s: float
    end_s: float
    share: float = SHARE
    rises: Literal["bell", "step"] = "bell"
    inside: Literal["uniform", "normal"] = "uniform"
    side: float = SIDE

    def intensity(self, at_s: float) -> float:
        """The share of all points that it draws at a time."""
        if not self.start_s <= at_s < self.end_s:
            return 0.0
        if self.rises == "step":
            return self.share
        middle, width = (self.start_s + self.end_s) / 2, (self.end_s - self.start_s) / 6
        return self.share * float(np.exp(-0.5 * ((at_s - middle) / width) ** 2))

    def points(self, rng: np.random.Generator, count: int) -> Reals:
        """Points within the square."""
        if self.inside == "uniform":
            places = rng.random((count, 2))
        else:
            # What falls outside is reflected, so that none is lost.
            places = reflected(0.5 + _DEVIATION * rng.normal(size=(count, 2)))
        points: Reals = np.array(self.corner) + self.side * places
        return points


@dataclass(frozen=True, eq=False)
class HotMap:
    """A crowd, and hotspots in it.

    >>> crowd = Crowd.cities(np.random.default_rng(1))
    >>> city = HotMap(crowd, hotspots("step", start_s=0.0, length_s=60.0))
    >>> points = city.points(np.random.default_rng(2), 1_000, at_s=30.0)
    >>> bool(350 < ((points < SIDE).all(axis=1)).sum() < 500)
    True
    """

    crowd: Crowd
    spots: tuple[Hotspot, ...] = ()

    def intensities(self, at_s: float) -> list[float]:
        """The share of the points that every hotspot draws at a time."""
        return [spot.intensity(at_s) for spot in self.spots]

    def points(self, rng: np.random.Generator, count: int, at_s: float = 0.0) -> Reals:
        """Points (x, y) at a time, in random order."""
        shares = self.intensities(at_s)
        drawn = rng.multinomial(count, [*shares, max(0.0, 1 - sum(shares))])
        parts = [spot.points(rng, n) for spot, n in zip(self.spots, drawn[:-1], strict=True)]
        points = np.concatenate([*parts, self.crowd.points(rng, int(drawn[-1]), at_s)])
        return rng.permutation(points)

    def rectangles(
        self, rng: np.random.Generator, count: int, *, at_s: float = 0.0, side: float = QUERY_SIDE
    ) -> Reals:
        """Squares (x_min, y_min, x_max, y_max) around points of a time."""
        return around(self.points(rng, count, at_s), side)


def around(centres: Reals, side: float = QUERY_SIDE) -> Reals:
    """Squares around points, within the unit square.

    >>> around(np.array([[0.5, 1.0]]), 0.2).tolist()
    [[0.4, 0.9, 0.6, 1.0]]
    """
    return np.hstack([centres - side / 2, centres + side / 2]).clip(0.0, 1.0)


def reflected(points: Reals) -> Reals:
    """What lies outside the unit square mirrored back: clipping would pile it up on the edge."""
    inside = np.abs(points) % 2.0
    return np.minimum(inside, 2.0 - inside)


def hotspots(kind: Kind, *, start_s: float, length_s: float) -> tuple[Hotspot, ...]:
    """The schedules of the SWARM paper (Fig. 12 to 16).

    "bell" and "step" say how one uniform hotspot rises, "normal" is a bell whose points are normal
    inside the square. "two" at once have half the share each, and so have those of a "sequence",
    one after another.
    """
    end_s = start_s + length_s
    low, high = (0.0, 0.0), (1 - SIDE, 1 - SIDE)
    schedules: dict[Kind, Callable[[], tuple[Hotspot, ...]]] = {
        "bell": lambda: (Hotspot(low, start_s, end_s),),
        "normal": lambda: (Hotspot(low, start_s, end_s, inside="normal"),),
        "step": lambda: (Hotspot(low, start_s, end_s, rises="step"),),
        "two": lambda: tuple(Hotspot(c, start_s, end_s, SHARE / 2) for c in (low, high)),
        "sequence": lambda: (
            Hotspot(low, start_s, start_s + length_s / 2, SHARE / 2),
            Hotspot(high, start_s + length_s / 2, end_s, SHARE / 2),
        ),
    }
    return schedules[kind]()
