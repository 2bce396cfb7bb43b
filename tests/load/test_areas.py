"""Sums over rectangles equal those of slices."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skewless.errors import SkewlessError
from skewless.load.areas import AreaSums


@given(st.integers(0, 2**32), st.lists(st.integers(0, 8), min_size=4, max_size=4))
def test_a_rectangle_sums_its_cells(seed: int, ends: list[int]) -> None:
    values = np.random.default_rng(seed).integers(0, 100, (8, 8)).astype(float)
    top, bottom = sorted(ends[:2])
    left, right = sorted(ends[2:])
    sums = AreaSums.of(8, values.ravel())
    assert sums.within(top, left, bottom, right) == values[top:bottom, left:right].sum()
    assert sums.within(0, 0, np.arange(1, 9), 8).tolist() == values.sum(1).cumsum().tolist()
    if top < bottom and left < right:
        inside = values[top:bottom, left:right]
        for axis, across in (("rows", 1), ("columns", 0)):
            assert (
                sums.upto(top, left, bottom, right, axis).tolist()
                == inside.sum(across).cumsum()[:-1].tolist()
            )


def test_a_value_per_cell_is_asked_for() -> None:
    with pytest.raises(SkewlessError, match="one per cell"):
        AreaSums.of(8, np.zeros(8))
