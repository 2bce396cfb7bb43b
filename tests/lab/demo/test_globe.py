"""The city on a globe: degrees that keep distances, free drivers, and areas to watch."""

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from skewless.lab.demo.globe import AREA_M, GlobeFeed, Projection
from skewless.lab.workloads.city import City
from skewless.testing.oracle import haversine_m


def make(folder: Path) -> GlobeFeed:
    city = City(np.random.default_rng(5), drivers=60, start_hour=8.0)
    return GlobeFeed(city, folder, steps_per_file=3)


def test_distances_are_those_of_the_plane() -> None:
    rng = np.random.default_rng(1)
    x, y = rng.uniform(0, 16_000, (2, 200))
    lon, lat = Projection(16_000.0).degrees(x, y)
    apart = np.hypot(np.diff(x), np.diff(y))
    found = haversine_m(lon[:-1], lat[:-1], lon[1:], lat[1:])
    assert found == pytest.approx(apart, rel=2e-3)


def test_the_bounds_hold_the_whole_city() -> None:
    west, south, east, north = Projection(16_000.0).bounds
    lon, lat = Projection(16_000.0).degrees([0.0, 16_000.0], [0.0, 16_000.0])
    assert west < lon[0] < lon[1] < east
    assert south < lat[0] < lat[1] < north


def test_a_driver_who_has_not_moved_is_free(tmp_path: Path) -> None:
    feed = make(tmp_path)
    for _ in range(4):
        feed.write_next()
    drivers = [pq.read_table(file) for file in sorted(feed.drivers_dir.iterdir())]
    rows = [row for table in drivers for row in table.to_pylist()]
    last: dict[int, tuple[float, float]] = {}
    free = 0
    for row in rows:
        place = (row["lon"], row["lat"])
        before = last.get(row["driver_id"])
        stays = before is not None and float(haversine_m(*before, *place)) < 1.0
        assert row["free"] == stays
        free += stays
        last[row["driver_id"]] = place
    assert 0 < free < len(rows)
    assert feed.counts["free"] == free
    assert feed.counts["drivers"] == len(rows)


def test_there_is_a_moment_of_every_file(tmp_path: Path) -> None:
    feed = make(tmp_path)
    for _ in range(3):
        feed.write_next()
    assert len(feed.moments) == feed.files == 3
    ids = np.concatenate([moment.order_ids for moment in feed.moments])
    assert ids.tolist() == list(range(feed.counts["orders"]))
    for moment in feed.moments:
        assert moment.orders.shape == (len(moment.order_ids), 2)
        assert moment.drivers.shape == (60, 2)
        assert len(moment.free) == 60


def test_areas_are_squares_where_drivers_are(tmp_path: Path) -> None:
    feed = make(tmp_path / "input")
    feed.write_next()
    feed.write_areas(tmp_path / "areas", 50, np.random.default_rng(1))
    areas = pq.read_table(tmp_path / "areas")
    assert areas.column_names == ["id", "x_min", "y_min", "x_max", "y_max"]
    assert areas.num_rows == 50
    west, south, east, north = (areas[n].to_numpy() for n in areas.column_names[1:])
    for across in (haversine_m(west, south, east, south), haversine_m(west, south, west, north)):
        assert across == pytest.approx(np.full(50, AREA_M), rel=3e-3)
