"""Cells of a grid under which points are found that may be near to each other.

A left point is found in its own cell. A right point is found in every cell that a point within
reach of it may lie in: at most two in each direction, because a cell is as wide as the reach is
both ways, and a little wider. `skewless.runtime.cells` computes the same in SQL.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from skewless.errors import bad_argument
from skewless.routing.route import Hashes

Floats = npt.NDArray[np.float64]
Places = npt.NDArray[np.int64]

# Cells are grouped into blocks of 8 × 8. Those of a block differ in the lowest six bits of their
# hashes alone, so all of them are in one partition: most points travel to one instance.
BLOCK_BITS = 3
_IN_BLOCK = (1 << BLOCK_BITS) - 1
CELL_BITS = 2 * BLOCK_BITS
# So much wider than twice the reach is a cell. More than rounding can add to the reach.
SLACK = 1.001
# So much more than the reach is looked at: what rounding may have taken away.
MARGIN = 1e-9


class Cells(Protocol):
    """A grid; cells have two whole numbers for their place."""

    @property
    def most(self) -> tuple[float, float]:
        """The largest absolute values of the two coordinates of a point that has a cell."""
        ...

    def own(self, x: Floats, y: Floats) -> tuple[Places, Places]:
        """The cell of every point."""
        ...

    def reached(self, x: Floats, y: Floats) -> tuple[Places, Places]:
        """The cells within reach of every point: four in a line, some of which may be equal."""
        ...


def blocks(x: Places, y: Places) -> tuple[Places, Places]:
    """The places of the blocks that cells are in."""
    return x >> BLOCK_BITS, y >> BLOCK_BITS


def cell_hashes(of_block: Hashes, x: Places, y: Places) -> Hashes:
    """The hashes of cells from those of their blocks."""
    place = ((x & _IN_BLOCK) << BLOCK_BITS) | (y & _IN_BLOCK)
    return (of_block >> np.uint64(CELL_BITS) << np.uint64(CELL_BITS)) | place.astype(np.uint64)


@dataclass(frozen=True)
class PlaneCells:
    """Squares. A point that is too far from 0 has no cell: its neighbours could not be told apart.

    >>> cells = PlaneCells(1.0)
    >>> [c.tolist() for c in cells.own(np.array([2.1, -0.1]), np.array([0.0, 0.0]))]
    [[1, -1], [0, 0]]
    """

    radius: float
    least_radius: ClassVar[float] = 1e-100
    most_radius: ClassVar[float] = 1e100
    # Coordinates in radii. Doubles there are finer than a thousandth of a radius.
    farthest: ClassVar[float] = 1e12

    def __post_init__(self) -> None:
        if not self.least_radius <= self.radius <= self.most_radius:
            takes = f"a number from {self.least_radius} to {self.most_radius}"
            raise bad_argument("radius", self.radius, takes)

    @property
    def most(self) -> tuple[float, float]:
        return self.farthest * self.radius, self.farthest * self.radius

    @property
    def reach(self) -> float:
        return self.radius * (1 + MARGIN)

    @property
    def side(self) -> float:
        return 2 * self.reach * SLACK

    def own(self, x: Floats, y: Floats) -> tuple[Places, Places]:
        return _floor(x / self.side), _floor(y / self.side)

    def reached(self, x: Floats, y: Floats) -> tuple[Places, Places]:
        first = self.own(x - self.reach, y - self.reach)
        last = self.own(x + self.reach, y + self.reach)
        return (
            np.stack([first[0], first[0], last[0], last[0]], axis=1),
            np.stack([first[1], last[1], first[1], last[1]], axis=1),
        )


@dataclass(frozen=True)
class GlobeCells:
    """Bands of latitude, each of them cut into equal cells around the globe.

    Towards the poles a band has fewer cells, and near them one. Points are (longitude, latitude) in
    degrees. Neighbouring bands share a *zone*, in which all have the same number of cells.
    """

    angle: float  # the reach as seen from the centre of the globe, in degrees
    most: ClassVar[tuple[float, float]] = (180.0, 90.0)
    # Coordinates in degrees are doubles: this is what their sums are rounded by, many times over.
    rounding: ClassVar[float] = 1e-11
    least_angle: ClassVar[float] = 1e-9
    most_zones: ClassVar[int] = 512

    def __post_init__(self) -> None:
        if not self.least_angle <= self.angle <= 180.0:
            raise bad_argument("angle", self.angle, f"degrees from {self.least_angle} to 180")

    @property
    def reach(self) -> float:
        """How far north and south neighbours are looked for, in degrees."""
        return self.angle * (1 + MARGIN) + self.rounding

    @property
    def sine(self) -> float:
        """Of the reach. From a quarter of the globe on all bands have one cell, so 1 will do."""
        return math.sin(math.radians(min(self.reach, 90.0)))

    @property
    def height(self) -> float:
        """The height of a band."""
        return 2 * self.reach * SLACK

    @property
    def last_band(self) -> int:
        return math.floor(180.0 / self.height)

    @property
    def bands_per_zone(self) -> int:
        return -(-(self.last_band + 1) // self.most_zones)

    @cached_property
    def counts(self) -> tuple[int, ...]:
        """How many cells the bands of every zone have.

        Commits outlive processes, so this must be the same on every machine. Sines differ in their
        last bits: the number is rounded down to 20 significant bits, which hardly ever tells.
        """
        zones = -(-(self.last_band + 1) // self.bands_per_zone)
        return tuple(self._count(zone) for zone in range(zones))

    def _count(self, zone: int) -> int:
        south = -90.0 + zone * self.bands_per_zone * self.height
        north = south + self.bands_per_zone * self.height
        # The farthest from the equator that a point can be which reaches into this zone.
        farthest = max(abs(south), abs(north)) + self.reach
        if farthest + self.reach >= 90.0:
            return 1  # what such a point reaches may go around the pole
        count = int(360.0 / (2 * SLACK * self._widest(farthest)))
        return max(1, count - count % (1 << max(0, count.bit_length() - 20)))

    def _widest(self, latitude: float) -> float:
        """How far east and west neighbours are looked for."""
        ratio = self.sine / math.cos(math.radians(latitude))
        return math.degrees(math.asin(min(ratio, 1.0))) + self.rounding

    def own(self, x: Floats, y: Floats) -> tuple[Places, Places]:
        band = self._band(y)
        count = self._counts(band)
        return _floor((x + 180.0) * count / 360.0) % count, band

    def reached(self, x: Floats, y: Floats) -> tuple[Places, Places]:
        level = np.cos(np.radians(y))
        # At a pole the ratio is beyond 1, or huge: all bands in reach have one cell.
        ratio = np.minimum(self.sine / level, 1.0)
        east = np.degrees(np.arcsin(ratio)) + self.rounding
        cells, bands = [], []
        for north in (-self.reach, self.reach):
            band = self._band(y + north)
            count = self._counts(band)
            for edge in (x - east, x + east):
                cells.append(_floor((edge + 180.0) * count / 360.0) % count)
                bands.append(band)
        return np.stack(cells, axis=1), np.stack(bands, axis=1)

    def _band(self, latitude: Floats) -> Places:
        return np.clip(_floor((latitude + 90.0) / self.height), 0, self.last_band)

    def _counts(self, band: Places) -> Places:
        return np.array(self.counts, np.int64)[band // self.bands_per_zone]


def _floor(numbers: Floats) -> Places:
    return np.floor(numbers).astype(np.int64)
