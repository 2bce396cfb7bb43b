"""A cell is named by its place, its hash and its partition alike."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skewless.errors import SkewlessError
from skewless.routing.cells import CellGrid
from skewless.routing.partitions import partition_of

SIDES = st.sampled_from([1, 2, 4, 64, 256])
NUMBERS = st.floats(-1e6, 1e6)


@st.composite
def grids(draw: st.DrawFn) -> CellGrid:
    x_min, y_min = draw(NUMBERS), draw(NUMBERS)
    width, height = (draw(st.floats(1e-3, 1e6)) for _ in range(2))
    return CellGrid(draw(SIDES), (x_min, y_min, x_min + width, y_min + height))


@given(grids())
def test_the_cell_is_the_partition_of_its_hash(grid: CellGrid) -> None:
    cells = np.arange(grid.count)
    assert (partition_of(grid.hashes(cells), grid.count) == cells).all()


@given(grids(), st.lists(st.tuples(NUMBERS, NUMBERS), min_size=1, max_size=30))
def test_places_rise_with_the_value_and_stay_on_the_map(grid: CellGrid, points: list) -> None:
    x, y = np.sort(np.array(points).T)
    for places in (grid.columns(x), grid.rows(y)):
        assert (np.diff(places) >= 0).all()
        assert places.min() >= 0
        assert places.max() < grid.side
    assert (grid.cells(x, y) == grid.rows(y) * grid.side + grid.columns(x)).all()


@given(grids(), st.integers(0, 2**32))
def test_a_point_in_a_rectangle_is_in_one_of_its_cells(grid: CellGrid, seed: int) -> None:
    rng = np.random.default_rng(seed)
    x_min, y_min, x_max, y_max = grid.bounds
    x = np.sort(x_min + (x_max - x_min) * rng.random((3, 20)), axis=0)
    y = np.sort(y_min + (y_max - y_min) * rng.random((3, 20)), axis=0)
    x[1, :5], y[1, 5:10] = x[0, :5], y[2, 5:10]  # on an edge
    low, at, high = grid.columns(x[0]), grid.columns(x[1]), grid.columns(x[2])
    assert ((low <= at) & (at <= high)).all()
    low, at, high = grid.rows(y[0]), grid.rows(y[1]), grid.rows(y[2])
    assert ((low <= at) & (at <= high)).all()


def test_a_line_belongs_to_the_upper_cell_and_the_edge_to_the_last() -> None:
    grid = CellGrid(4, (0.0, 0.0, 4.0, 4.0))
    assert grid.columns(np.array([0.0, 0.99, 1.0, 3.0, 4.0])).tolist() == [0, 0, 1, 3, 3]


@given(grids())
def test_a_grid_survives_json(grid: CellGrid) -> None:
    assert CellGrid.from_json(json.loads(json.dumps(grid.to_json()))) == grid


@pytest.mark.parametrize(
    ("side", "bounds", "says"),
    [
        (3, (0, 0, 1, 1), "cells: got 3; takes a power of two from 1 to 256"),
        (512, (0, 0, 1, 1), "cells: got 512"),
        (4, (0, 0, 0, 1), "x_min < x_max"),
        (4, (0, 1, 1, 0), "y_min < y_max"),
        (4, (0, 0, float("inf"), 1), "four finite numbers"),
        (4, (0, 0, 5e-324, 1), "x_min < x_max"),
    ],
)
@pytest.mark.filterwarnings("ignore:overflow")
def test_what_is_no_map_is_refused(side: int, bounds: tuple, says: str) -> None:
    with pytest.raises(SkewlessError) as refusal:
        CellGrid(side, bounds)
    assert says in str(refusal.value)
