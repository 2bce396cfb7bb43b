"""The Hilbert index: one number per cell, and neighbours on the curve are neighbours in space."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skewless.lab.workloads import hilbert


@pytest.mark.parametrize("order", range(1, 8))
def test_every_cell_has_its_own_index(order: int) -> None:
    side = 1 << order
    y, x = np.divmod(np.arange(side * side), side)
    index = hilbert.index(x, y, order)
    np.testing.assert_array_equal(np.sort(index), np.arange(side * side))


@pytest.mark.parametrize("order", range(1, 8))
def test_successive_indexes_are_adjacent_cells(order: int) -> None:
    x, y = hilbert.point(np.arange(4**order), order)
    steps = np.abs(np.diff(x)) + np.abs(np.diff(y))
    assert set(steps.tolist()) == {1}


@given(order=st.integers(1, hilbert.MAX_ORDER), data=st.data())
def test_point_inverts_index_at_every_order(order: int, data: st.DataObject) -> None:
    coordinate = st.integers(0, (1 << order) - 1)
    cells = data.draw(st.lists(st.tuples(coordinate, coordinate), min_size=1, max_size=50))
    x, y = np.array(cells, dtype=np.int64).T
    back_x, back_y = hilbert.point(hilbert.index(x, y, order), order)
    np.testing.assert_array_equal(back_x, x)
    np.testing.assert_array_equal(back_y, y)


def test_the_curve_of_order_two_is_the_textbook_one() -> None:
    x, y = hilbert.point(np.arange(16), 2)
    path = list(zip(x.tolist(), y.tolist(), strict=True))
    assert path[:8] == [(0, 0), (1, 0), (1, 1), (0, 1), (0, 2), (0, 3), (1, 3), (1, 2)]
    assert path[8:] == [(2, 2), (2, 3), (3, 3), (3, 2), (3, 1), (2, 1), (2, 0), (3, 0)]


def test_inputs_stay_untouched() -> None:
    x, y = np.array([5, 6]), np.array([7, 1])
    hilbert.index(x, y, 3)
    assert x.tolist() == [5, 6]
    assert y.tolist() == [7, 1]


@pytest.mark.parametrize("bad", [-1, 8])
def test_cells_outside_the_grid_are_refused(bad: int) -> None:
    with pytest.raises(ValueError, match=r"y must be in \[0, 8\)"):
        hilbert.index([0], [bad], 3)
    with pytest.raises(ValueError, match="distance must be in"):
        hilbert.point([-1 if bad < 0 else 64], 3)


@pytest.mark.parametrize("order", [0, 32])
def test_orders_that_do_not_fit_are_refused(order: int) -> None:
    with pytest.raises(ValueError, match="order must be between"):
        hilbert.index([0], [0], order)
