"""The demo's city on a globe: coordinates in degrees, and which drivers are free."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from skewless.kernels.distance import EARTH_RADIUS_M
from skewless.lab.demo.feed import Feed
from skewless.lab.workloads.city import City, Step

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
METRES_PER_DEGREE = EARTH_RADIUS_M * np.pi / 180
CENTRE = (13.4, 52.5)  # longitude and latitude
AREA_M = 150.0  # the side of what somebody subscribes to


@dataclass(frozen=True)
class Projection:
    """From the metres of a square city to degrees: its centre is at CENTRE, north is up."""

    size_m: float

    @property
    def _per_degree(self) -> tuple[float, float]:
        return METRES_PER_DEGREE * float(np.cos(np.radians(CENTRE[1]))), METRES_PER_DEGREE

    def degrees(self, x: Any, y: Any) -> tuple[Floats, Floats]:
        """Longitudes and latitudes."""
        half, (east, north) = self.size_m / 2, self._per_degree
        return CENTRE[0] + (np.asarray(x) - half) / east, CENTRE[1] + (np.asarray(y) - half) / north

    @property
    def bounds(self) -> tuple[float, float, float, float]:
        """Of the city, and a metre around it: west, south, east, north."""
        (west, east), (south, north) = self.degrees(
            [-1.0, self.size_m + 1.0], [-1.0, self.size_m + 1.0]
        )
        return float(west), float(south), float(east), float(north)


@dataclass(frozen=True, eq=False)
class Moment:
    """What a picture of the city needs of a file: its orders, and where drivers were at its end."""

    hour: float
    order_ids: Ints
    orders: Floats  # longitude, latitude
    drivers: Floats
    free: npt.NDArray[np.bool_]


class GlobeFeed(Feed):
    """A feed in degrees. A driver who has not moved since the report before is free."""

    def __init__(self, city: City, folder: Path, *, steps_per_file: int) -> None:
        super().__init__(city, folder, steps_per_file=steps_per_file)
        self.counts["free"] = 0  # of the drivers' rows
        self.projection = Projection(city.size_m)
        self.moments: list[Moment] = []  # one per file
        self._seen: Floats | None = None

    def _tables(self, steps: Sequence[Step]) -> tuple[pa.Table, pa.Table]:
        orders, drivers = super()._tables(steps)
        free = np.concatenate([self._free(step) for step in steps])
        self.counts["free"] += int(free.sum())
        placed = self._placed(orders, "order_id", "ordered_at")
        seen = self._placed(drivers, "driver_id", "seen_at").append_column("free", pa.array(free))
        last = seen.slice(seen.num_rows - self.city.drivers)
        self.moments.append(
            Moment(
                self.city.hour,
                placed["order_id"].to_numpy(),
                _places(placed),
                _places(last),
                last["free"].to_numpy(),
            )
        )
        return placed, seen

    def _free(self, step: Step) -> npt.NDArray[np.bool_]:
        # Drivers report in the same order in every step.
        seen = np.stack([step.drivers["x"].to_numpy(), step.drivers["y"].to_numpy()])
        before, self._seen = self._seen, seen
        if before is None:
            return np.zeros(seen.shape[1], np.bool_)
        return np.hypot(*(seen - before)) < 1.0

    def _placed(self, rows: pa.Table, name: str, time: str) -> pa.Table:
        lon, lat = self.projection.degrees(rows["x"].to_numpy(), rows["y"].to_numpy())
        return pa.table({name: rows[name], time: rows[time], "lon": lon, "lat": lat})

    def write_areas(self, folder: Path, count: int, rng: np.random.Generator) -> None:
        """Squares around where drivers are now, as people would subscribe to their street."""
        assert self._seen is not None, "after the first file"
        x, y = self._seen[:, rng.integers(0, self._seen.shape[1], count)]
        x, y = (places + rng.normal(0.0, 2 * AREA_M, count) for places in (x, y))
        half = AREA_M / 2
        x_min, y_min = self.projection.degrees(x - half, y - half)
        x_max, y_max = self.projection.degrees(x + half, y + half)
        folder.mkdir(parents=True)
        ids = np.arange(count)
        areas = {"id": ids, "x_min": x_min, "y_min": y_min, "x_max": x_max, "y_max": y_max}
        pq.write_table(pa.table(areas), folder / "areas.parquet")


def _places(rows: pa.Table) -> Floats:
    return np.column_stack([rows["lon"].to_numpy(), rows["lat"].to_numpy()])
