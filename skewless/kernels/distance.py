"""Distances of many pairs of points, in a plane and on the globe."""

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
from numba import njit

from skewless.kernels.ordering import IndexArray

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
Coordinates = tuple[Floats, ...]

# The mean radius of the earth (IUGG).
EARTH_RADIUS_M = 6_371_008.8
# Coordinates of unit vectors are off by less than 1e-15, and so is half the chord between two of
# them. A pair whose half chord is nearer to the limit than this is measured by the haversine.
_CHORD_ERROR = 1e-14


class Metric(Protocol):
    """What a distance is, and how far apart two points of a pair may be."""

    @property
    def derived(self) -> tuple[str, ...]:
        """Names of the coordinates that pairs are compared by, if not by the user's own."""
        ...

    def derive(self, x: Floats, y: Floats) -> Coordinates:
        """These coordinates of some points."""
        ...

    def within(
        self,
        left: Coordinates,
        left_rows: IndexArray,
        right: Coordinates,
        right_rows: IndexArray,
    ) -> tuple[Mask, IndexArray]:
        """Which pairs are near enough, and those that `distances` has to decide.

        The coordinates are derived ones where there are such.
        """
        ...

    def distances(self, x1: Floats, y1: Floats, x2: Floats, y2: Floats) -> Floats:
        """The distance of every pair."""
        ...

    @property
    def reach(self) -> float:
        """The largest distance of a pair, inclusive."""
        ...


@dataclass(frozen=True)
class Plane:
    """Euclidean distance: √(Δx² + Δy²)."""

    reach: float
    derived: tuple[str, ...] = ()

    def derive(self, x: Floats, y: Floats) -> Coordinates:
        return ()

    def within(
        self,
        left: Coordinates,
        left_rows: IndexArray,
        right: Coordinates,
        right_rows: IndexArray,
    ) -> tuple[Mask, IndexArray]:
        out = np.empty(len(left_rows), np.bool_)
        (ax, ay), (bx, by) = left, right
        _within(ax, ay, left_rows, bx, by, right_rows, self.reach, out)
        return out, np.empty(0, np.int64)

    def distances(self, x1: Floats, y1: Floats, x2: Floats, y2: Floats) -> Floats:
        """The distance of every pair.

        >>> nothing, three, four = np.zeros(1), np.array([3.0]), np.array([4.0])
        >>> Plane(1.0).distances(nothing, three, four, nothing).tolist()
        [5.0]
        """
        return np.sqrt((x1 - x2) ** 2 + (y1 - y2) ** 2)


@dataclass(frozen=True)
class Globe:
    """Great-circle distance in metres of (longitude, latitude) in degrees, by the haversine.

    Two points are as near as the straight chord between them is short. So most pairs are decided
    by their unit vectors, without sines and cosines for every pair.
    """

    reach: float
    derived: tuple[str, ...] = ("ux", "uy", "uz")

    def derive(self, x: Floats, y: Floats) -> Coordinates:
        longitude, latitude = np.radians(x), np.radians(y)
        level = np.cos(latitude)
        return level * np.cos(longitude), level * np.sin(longitude), np.sin(latitude)

    def within(
        self,
        left: Coordinates,
        left_rows: IndexArray,
        right: Coordinates,
        right_rows: IndexArray,
    ) -> tuple[Mask, IndexArray]:
        # The haversine of an angle is the square of half its chord.
        half = math.sin(min(self.reach / EARTH_RADIUS_M, math.pi) / 2)
        doubt = _CHORD_ERROR * (half + _CHORD_ERROR)
        least, most = half * half - doubt, half * half + doubt
        out = np.empty(len(left_rows), np.bool_)
        doubted = np.empty(len(left_rows), np.int64)
        (ax, ay, az), (bx, by, bz) = left, right
        found = _within_chord(
            ax, ay, az, left_rows, bx, by, bz, right_rows, least, most, out, doubted
        )
        return out, doubted[:found]

    def distances(self, x1: Floats, y1: Floats, x2: Floats, y2: Floats) -> Floats:
        """The distance of every pair.

        >>> zero, east, west = np.zeros(1), np.array([179.5]), np.array([-179.5])
        >>> round(Globe(1.0).distances(east, zero, west, zero)[0])
        111195
        """
        longitudes = np.radians(x2) - np.radians(x1)
        first, second = np.radians(y1), np.radians(y2)
        square = np.sin((second - first) / 2) ** 2
        square += np.cos(first) * np.cos(second) * np.sin(longitudes / 2) ** 2
        angles: Floats = 2 * np.arcsin(np.sqrt(np.minimum(square, 1.0)))
        return EARTH_RADIUS_M * angles


@njit(cache=True, nogil=True)
def _within(ax, ay, a_rows, bx, by, b_rows, reach, out):  # type: ignore[no-untyped-def]
    for k in range(len(out)):
        a = a_rows[k]
        b = b_rows[k]
        x = ax[a] - bx[b]
        y = ay[a] - by[b]
        out[k] = np.sqrt(x * x + y * y) <= reach


@njit(cache=True, nogil=True)
def _within_chord(  # type: ignore[no-untyped-def]
    ax, ay, az, a_rows, bx, by, bz, b_rows, least, most, out, doubted
):
    found = 0
    for k in range(len(out)):
        a = a_rows[k]
        b = b_rows[k]
        x = ax[a] - bx[b]
        y = ay[a] - by[b]
        z = az[a] - bz[b]
        square = 0.25 * (x * x + y * y + z * z)
        out[k] = square <= least
        # Written in any case, and kept where it counts: without a branch.
        doubted[found] = k
        found += (square > least) & (square <= most)
    return found
