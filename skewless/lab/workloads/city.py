"""A ride-hailing city: drivers and orders that follow rush hours and wandering hotspots."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from skewless.lab.workloads import hilbert

Floats = npt.NDArray[np.float64]

MIDNIGHT_US = 1_709_510_400_000_000  # 2024-03-04T00:00:00Z, a Monday
HOUR_US = 3_600_000_000
RUSH_HOURS = (8.25, 18.0)
RUSH_WIDTH_H = 0.8

TIMESTAMP = pa.timestamp("us", tz="UTC")
ORDERS = pa.schema(
    [
        ("order_id", pa.int64()),
        ("cell", pa.int64()),
        ("ordered_at", TIMESTAMP),
        ("x", pa.float64()),
        ("y", pa.float64()),
    ]
)
DRIVERS = pa.schema(
    [
        ("driver_id", pa.int64()),
        ("cell", pa.int64()),
        ("seen_at", TIMESTAMP),
        ("x", pa.float64()),
        ("y", pa.float64()),
    ]
)


class Step(NamedTuple):
    """What happened in the city from `start_us` (inclusive) to `end_us` (exclusive)."""

    start_us: int
    end_us: int
    orders: pa.Table
    drivers: pa.Table


def rush(hour: float) -> float:
    """How much of a rush hour it is, from 0 (none) to 1 (its peak), at an hour of the day."""
    # The distance is taken around the clock, so that 23:59 and 00:01 are neighbours.
    distances = [abs((hour - peak + 12) % 24 - 12) for peak in RUSH_HOURS]
    return max(float(np.exp(-0.5 * (distance / RUSH_WIDTH_H) ** 2)) for distance in distances)


def heat(cells: npt.ArrayLike, order: int) -> npt.NDArray[np.int64]:
    """Rows per cell as a map: element [y, x] counts the rows of that place.

    >>> int(heat([0, 0, 3], order=1)[0, 0])
    2
    """
    side = 1 << order
    counts = np.bincount(np.asarray(cells, dtype=np.int64), minlength=side * side)
    x, y = hilbert.point(np.arange(side * side), order)
    grid = np.zeros((side, side), dtype=np.int64)
    grid[y, x] = counts
    return grid


@dataclass(eq=False)
class City:
    """A square city, advanced one step at a time; equal generators and arguments, equal cities.

    In every step each driver reports a position once and orders arrive at random (Poisson).
    Coordinates are metres; `cell` is the Hilbert index of the position on a grid of 2^order cells a
    side. The more rush hour it is, the more orders there are and the more of them come from the
    hotspots (stations, offices, arenas), which gain and lose weight over the day and drift. Every
    `jump_minutes`, if given, the crowd at the largest hotspot is suddenly elsewhere, as when a
    concert begins: orders follow at once, drivers as fast as they can drive.

    >>> city = City(np.random.default_rng(7), drivers=100)
    >>> city.step().drivers.num_rows
    100
    """

    rng: np.random.Generator
    drivers: int = 4_000
    orders_per_second: float = 8.0  # at the peak of a rush hour; about a third of it at other times
    order: int = 5
    size_m: float = 16_000.0
    hotspots: int = 8
    hot_share: tuple[float, float] = (0.25, 0.65)  # of what goes on at hotspots: quiet, at the peak
    start_hour: float = 6.5
    step_seconds: float = 10.0
    jump_minutes: float | None = None
    now_us: int = field(init=False)
    jumps: int = field(init=False, default=0)  # so far

    def __post_init__(self) -> None:
        if self.drivers < 1:
            raise ValueError(f"drivers must be at least 1, got {self.drivers}")
        if self.hotspots < 1:
            raise ValueError(f"hotspots must be at least 1, got {self.hotspots}")
        if not all(0 <= share <= 1 for share in self.hot_share):
            raise ValueError(f"hot_share must be two shares of 1, got {self.hot_share}")
        if not self.orders_per_second >= 0:
            raise ValueError(f"orders_per_second must be at least 0, got {self.orders_per_second}")
        if not self.step_seconds > 0:
            raise ValueError(f"step_seconds must be above 0, got {self.step_seconds}")
        if self.jump_minutes is not None and not self.jump_minutes > 0:
            raise ValueError(f"jump_minutes must be above 0, got {self.jump_minutes}")
        rng = self.rng
        self.now_us = MIDNIGHT_US + round(self.start_hour * HOUR_US)
        self._step_us = round(self.step_seconds * 1e6)
        self._next_order_id = 0
        self._start_us = self.now_us
        self._home = self._somewhere(self.hotspots)
        self._centre = self._home.copy()
        self._width_m = rng.uniform(120.0, 350.0, self.hotspots)
        self._peak_hour = rng.uniform(0.0, 24.0, self.hotspots)
        self._base_weight = 1.0 / np.arange(1, self.hotspots + 1)
        self._position = self._places(self.drivers)
        self._target = self._places(self.drivers)
        self._speed_m_s = np.clip(rng.normal(8.0, 2.0, self.drivers), 3.0, 15.0)
        # Sorted phases: the drivers' reports of a step come out in time order without a sort.
        self._phase = np.sort(rng.random(self.drivers))
        self._driver_id = rng.permutation(self.drivers).astype(np.int64)

    @property
    def hour(self) -> float:
        """The hour of the day, 0 to 24."""
        return (self.now_us - MIDNIGHT_US) / HOUR_US % 24

    def step(self) -> Step:
        """Advance the city by `step_seconds`; returns what was reported meanwhile."""
        start_us = self.now_us
        self._wander()
        self._jump()
        orders = self._orders(start_us)
        drivers = self._drive(start_us)
        self.now_us = start_us + self._step_us
        return Step(start_us, self.now_us, orders, drivers)

    def steps(self, count: int) -> Iterator[Step]:
        """Advance the city `count` times."""
        return (self.step() for _ in range(count))

    def _reflect(self, places: Floats) -> Floats:
        """Mirror what lies outside back in: clipping would pile it up on the edge."""
        inside = np.abs(places) % (2 * self.size_m)
        return np.minimum(inside, 2 * self.size_m - inside)

    def _cells(self, places: Floats) -> npt.NDArray[np.int64]:
        side = 1 << self.order
        grid = np.minimum((places * (side / self.size_m)).astype(np.int64), side - 1)
        return hilbert.index(grid[:, 0], grid[:, 1], self.order)

    def _hot_share(self) -> float:
        quiet, peak = self.hot_share
        return quiet + (peak - quiet) * rush(self.hour)

    def _wander(self) -> None:
        """Let the hotspots drift: an Ornstein-Uhlenbeck walk of 400 m around home, over an hour."""
        keep = np.exp(-self.step_seconds / 3_600.0)
        noise = self.rng.normal(0.0, 400.0, self._home.shape) * np.sqrt(1 - keep**2)
        self._centre = self._reflect(self._home + (self._centre - self._home) * keep + noise)

    def _jump(self) -> None:
        """Put the largest hotspot elsewhere, if that is due."""
        elapsed_s = (self.now_us - self._start_us) / 1e6
        if self.jump_minutes is not None and elapsed_s >= (self.jumps + 1) * self.jump_minutes * 60:
            self.jumps += 1
            self._home[0] = self._centre[0] = self._somewhere(1)

    def _somewhere(self, count: int) -> Floats:
        """Homes for hotspots, the nearer to the centre the likelier."""
        return self._reflect(self.rng.normal(self.size_m / 2, self.size_m / 6, (count, 2)))

    def _places(self, count: int) -> Floats:
        """Places people want to be at now: near a hotspot, or anywhere around the centre."""
        rng, size = self.rng, self.size_m
        daily = 1.0 + 0.6 * np.cos((self.hour - self._peak_hour) * (2 * np.pi / 24))
        weight = self._base_weight * daily
        which = rng.choice(self.hotspots, size=count, p=weight / weight.sum())
        noise = rng.normal(size=(count, 2))
        hot = self._centre[which] + noise * self._width_m[which, None]
        anywhere = size / 2 + noise * (size / 5)
        chosen = rng.random(count) < self._hot_share()
        return self._reflect(np.where(chosen[:, None], hot, anywhere))

    def _orders(self, start_us: int) -> pa.Table:
        rate = self.orders_per_second * (0.3 + 0.7 * rush(self.hour))
        count = int(self.rng.poisson(rate * self.step_seconds))
        places = self._places(count)
        times_us = start_us + np.sort(self.rng.integers(0, self._step_us, count))
        ids = np.arange(self._next_order_id, self._next_order_id + count, dtype=np.int64)
        self._next_order_id += count
        return _table(ORDERS, ids, self._cells(places), times_us, places)

    def _drive(self, start_us: int) -> pa.Table:
        to_go = self._target - self._position
        distance = np.hypot(to_go[:, 0], to_go[:, 1])
        reach = self._speed_m_s * self.step_seconds
        arrived = distance <= reach
        # Where the target is within reach the whole way is driven, also one of length zero.
        share = np.where(arrived, 1.0, reach / np.maximum(distance, reach))
        moved = to_go * share[:, None]
        seen = self._position + moved * self._phase[:, None]
        self._position = self._position + moved
        # A driver who has arrived waits there for the next ride, five minutes on average.
        leaving = arrived & (self.rng.random(self.drivers) < self.step_seconds / 300.0)
        self._target[leaving] = self._places(int(leaving.sum()))
        times_us = start_us + (self._phase * self._step_us).astype(np.int64)
        return _table(DRIVERS, self._driver_id, self._cells(seen), times_us, seen)


def _table(
    schema: pa.Schema,
    ids: npt.NDArray[np.int64],
    cells: npt.NDArray[np.int64],
    times_us: npt.NDArray[np.int64],
    places: Floats,
) -> pa.Table:
    x, y = np.ascontiguousarray(places.T)
    columns = [pa.array(ids), pa.array(cells), pa.array(times_us).cast(TIMESTAMP)]
    return pa.table([*columns, pa.array(x), pa.array(y)], schema=schema)
