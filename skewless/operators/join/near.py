"""Conditions on distances, for `match=` of `sk.join`."""

import math
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

from skewless.errors import SkewlessError, bad_argument
from skewless.kernels.distance import EARTH_RADIUS_M, Globe, Plane
from skewless.routing.blocks import GlobeCells, PlaneCells

LEAST_METRES = 0.001
MOST_METRES = math.floor(math.pi * EARTH_RADIUS_M)  # no two points are farther apart
# The choice of the nearest keeps so many rows in memory for every left row.
_MOST_NEAREST = 10_000


@dataclass(frozen=True, kw_only=True)
class ByDistance:
    """Two points, one of either side, and how far apart they may be."""

    left: tuple[str, str]
    right: tuple[str, str] | None = None  # None: as on the left
    radius: float | None = None
    metres: float | None = None
    distance: str | None = None

    def __post_init__(self) -> None:
        _check_columns("left", self.left)
        if self.right is not None:
            _check_columns("right", self.right)
        if (self.radius is None) == (self.metres is None):
            got = "both" if self.radius is not None else "neither"
            raise SkewlessError(
                f"radius, metres: got {got}; takes one of them: radius in the units of the "
                "columns, metres for (longitude, latitude) in degrees"
            )
        if self.radius is not None:
            _check_number("radius", self.radius)
            PlaneCells(float(self.radius))
        else:
            _check_number("metres", self.metres)
            if not LEAST_METRES <= float(self.metres or 0) <= MOST_METRES:
                takes = f"a number from {LEAST_METRES} to {MOST_METRES:,}"
                raise bad_argument("metres", self.metres, takes)
        if self.distance is not None and (not isinstance(self.distance, str) or not self.distance):
            raise bad_argument("distance", self.distance, "the name of a new column, or None")

    @property
    def metric(self) -> Plane | Globe:
        if self.radius is not None:
            return Plane(float(self.radius))
        return Globe(float(self.metres or 0))

    @property
    def cells(self) -> PlaneCells | GlobeCells:
        if self.radius is not None:
            return PlaneCells(float(self.radius))
        return GlobeCells(min(180.0, math.degrees(float(self.metres or 0) / EARTH_RADIUS_M)))

    @property
    def points(self) -> tuple[tuple[str, str], tuple[str, str]]:
        """The names of the coordinates on the left and on the right."""
        left, right = self.left, self.right or self.left
        return (left[0], left[1]), (right[0], right[1])


@dataclass(frozen=True, kw_only=True)
class Near(ByDistance):
    """Two rows match if their points are at most `radius` or `metres` apart, inclusive.

    With `radius` the points are in a plane, in whatever unit the columns have. With `metres` they
    are (longitude, latitude) in degrees, and distances are those on the globe, by the haversine.
    `right` names the right side's columns where they have other names. `distance` names a new
    column for the distance, the last one of the result.

        sk.join(orders, drivers, match=sk.Near(metres=500, left=("lon", "lat")),
                time=("ordered_at", "seen_at"), within=("-30 seconds", "0 seconds"))
    """


@dataclass(frozen=True, kw_only=True)
class Nearest(ByDistance):
    """The `k` nearest right rows of every left row, of those that `sk.Near` would match.

    A left row is given once, when the watermark has passed all that it may match. Of right rows
    that are equally near the latest are chosen, and a hash of the row settles what is left.

        sk.join(orders, drivers, match=sk.Nearest(k=3, metres=500, left=("lon", "lat")),
                time=("ordered_at", "seen_at"), within=("-30 seconds", "0 seconds"))
    """

    k: int

    def __post_init__(self) -> None:
        if not is_number(self.k, Integral) or not 1 <= self.k <= _MOST_NEAREST:
            raise bad_argument("k", self.k, f"a whole number from 1 to {_MOST_NEAREST:,}")
        super().__post_init__()


def is_number(value: Any, kind: type) -> bool:
    """Whether a value is of a kind of numbers, of which truth values are none."""
    return isinstance(value, kind) and not isinstance(value, bool)


def _check_columns(argument: str, columns: Any) -> None:
    listed = isinstance(columns, list | tuple) and all(isinstance(c, str) for c in columns)
    if not listed or len(columns) != 2 or columns[0] == columns[1]:
        takes = 'two columns, such as ("x", "y") or ("lon", "lat")'
        raise bad_argument(argument, columns, takes)


def _check_number(argument: str, value: Any) -> None:
    if not is_number(value, Real) or not 0 < float(value) < math.inf:
        raise bad_argument(argument, value, "a number above 0")
