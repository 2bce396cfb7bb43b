"""Cells: whatever the points, two that are within reach meet in exactly one cell."""

import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from skewless.errors import SkewlessError
from skewless.kernels.distance import EARTH_RADIUS_M, Globe, Plane
from skewless.routing.blocks import (
    CELL_BITS,
    GlobeCells,
    PlaneCells,
    blocks,
    cell_hashes,
)
from skewless.routing.partitions import partition_of


def meets(cells: PlaneCells | GlobeCells, left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """In how many different cells every pair of points (x, y) meets."""
    x, y = cells.own(*left)
    at_x, at_y = cells.reached(*right)
    met = np.zeros(left.shape[1], np.int64)
    for row in range(left.shape[1]):
        reached = set(zip(at_x[row].tolist(), at_y[row].tolist(), strict=True))
        met[row] = (int(x[row]), int(y[row])) in reached
    return met


@given(
    radius=st.sampled_from([1e-100, 1e-9, 0.1, 1.0, 5.0, 1e6, 1e100]),
    far=st.sampled_from([0.0, 1.0, 1e3, 1e9, 1e12 - 2]),
    seed=st.integers(0, 2**32),
)
def test_points_of_a_plane_within_reach_meet_once(radius: float, far: float, seed: int) -> None:
    """Also on borders of cells, exactly a radius apart, and as far from 0 as points may be."""
    rng = np.random.default_rng(seed)
    cells = PlaneCells(radius)
    right = rng.choice([-far, far, 0.0], (2, 200)) * radius + rng.uniform(-3, 3, (2, 200)) * radius
    right[:, ::5] = np.round(right[:, ::5] / cells.side) * cells.side
    angle = rng.choice([0.0, 0.25, 0.5, 1.0, 1.5], 200) * math.pi
    step = rng.choice([0.0, 0.5, 1.0, 1.0, 1.0 + 1e-15, 1.5], 200) * radius
    left = right + step * np.array([np.cos(angle), np.sin(angle)])
    near = Plane(radius).distances(*left, *right) <= radius
    assert meets(cells, left, right)[near].all()
    assert near.sum() > 50


@given(
    metres=st.sampled_from([0.001, 1.0, 500.0, 80_000.0, 3e6, 9.9e6, 1.1e7, 20_015_114.0]),
    where=st.sampled_from(["anywhere", "date line", "north", "south", "poles", "greenwich"]),
    seed=st.integers(0, 2**32),
)
@example(metres=0.001, where="poles", seed=0)
@example(metres=500.0, where="north", seed=1)
def test_points_of_the_globe_within_reach_meet_once(metres: float, where: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    angle = math.degrees(metres / EARTH_RADIUS_M)
    cells = GlobeCells(min(angle, 180.0))
    longitude, latitude = rng.uniform(-180, 180, 300), rng.uniform(-90, 90, 300)
    some = rng.uniform(0, 3, 300) * angle
    if where == "date line":
        longitude = np.where(rng.random(300) < 0.5, 180.0 - some, -180.0 + some)
    elif where == "greenwich":
        longitude = rng.choice([0.0, 180.0, -180.0, 360 / cells.counts[0]], 300)
    elif where == "north":
        latitude = 90.0 - some
    elif where == "south":
        latitude = -90.0 + some
    elif where == "poles":
        latitude = rng.choice([-90.0, 90.0], 300)
    right = np.array([(longitude + 180) % 360 - 180, np.clip(latitude, -90, 90)])
    left = moved(
        right, rng.uniform(0, 2 * math.pi, 300), rng.choice([0, 0.5, 0.99, 1], 300) * angle
    )
    near = Globe(metres).distances(*left, *right) <= metres
    assert meets(cells, left, right)[near].all()
    assert near.sum() > 50


def moved(points: np.ndarray, bearing: np.ndarray, angle: np.ndarray) -> np.ndarray:
    """Where one comes to who goes so many degrees of a great circle."""
    longitude, latitude, angle = (np.radians(p) for p in (*points, angle))
    north = np.sin(latitude) * np.cos(angle) + np.cos(latitude) * np.sin(angle) * np.cos(bearing)
    reached = np.arcsin(np.clip(north, -1, 1))
    east = np.arctan2(
        np.sin(bearing) * np.sin(angle) * np.cos(latitude),
        np.cos(angle) - np.sin(latitude) * np.sin(reached),
    )
    return np.array([(np.degrees(longitude + east) + 180) % 360 - 180, np.degrees(reached)])


def test_a_cell_of_the_globe_is_about_twice_as_wide_as_the_reach() -> None:
    """Where people live; and no row of cells is longer than it must be."""
    cells = GlobeCells(math.degrees(500 / EARTH_RADIUS_M))
    for latitude in (0.0, 35.0, 52.0, 65.0):
        band = int(cells._band(np.array([latitude]))[0])
        around_m = 2 * math.pi * EARTH_RADIUS_M * math.cos(math.radians(latitude))
        width_m = around_m / cells.counts[band // cells.bands_per_zone]
        assert 1_000 < width_m < 1_050
    assert len(cells.counts) <= cells.most_zones
    assert cells.counts[0] == cells.counts[-1] == 1


def test_the_cells_of_a_block_are_in_one_partition() -> None:
    x, y = (numbers.ravel() for numbers in np.meshgrid(np.arange(-16, 16), np.arange(-8, 8)))
    of_x, of_y = blocks(x, y)
    assert len(set(zip(of_x.tolist(), of_y.tolist(), strict=True))) == 4 * 2
    rng = np.random.default_rng(1)
    hashes = {block: rng.integers(0, 2**64, dtype=np.uint64) for block in zip(of_x, of_y)}  # noqa: B905
    of_block = np.array([hashes[block] for block in zip(of_x, of_y, strict=True)])
    found = cell_hashes(of_block, x, y)
    assert len(np.unique(found)) == len(x)
    for partitions in (3, 256, 65_536):
        told = partition_of(found, partitions)
        assert (told == partition_of(of_block >> CELL_BITS << CELL_BITS, partitions)).all()


@pytest.mark.parametrize("wrong", [0.0, -1.0, float("nan"), float("inf"), 1e-101, 1e101])
def test_a_radius_that_no_grid_can_have(wrong: float) -> None:
    with pytest.raises(SkewlessError, match="radius: got"):
        PlaneCells(wrong)
    with pytest.raises(SkewlessError, match="angle: got"):
        GlobeCells(wrong if wrong < 1e-9 or wrong > 180 or wrong != wrong else 181.0)
