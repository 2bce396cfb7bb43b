"""Routes: every pair of rows meets on exactly one instance."""

import numpy as np
import pytest

from skewless.errors import SkewlessError
from skewless.simulate.routes import Ways, compile_routes, grid, to_one


@pytest.mark.parametrize(
    "route",
    [
        to_one(3),
        grid([1, 4, 2], 1, 3),
        grid([1, 4, 2], 3, 1, single_key=True),
        grid(range(6), 2, 3),
    ],
    ids=["one", "left everywhere", "right everywhere", "grid"],
)
def test_every_pair_meets_once(route: Ways) -> None:
    for left in route.left:
        for right in route.right:
            assert len(set(left.tolist()) & set(right.tolist())) == 1


def test_sets_that_miss_each_other_are_refused() -> None:
    with pytest.raises(SkewlessError, match="meet"):
        Ways(np.array([[0]]), np.array([[1]]))


def test_flat_arrays_hold_all_sets() -> None:
    flat = compile_routes(
        [to_one(5), grid([2, 3], 1, 2, single_key=True)],
        np.array([0, 1, 0], np.int32),
    )
    assert flat.members.tolist() == [5, 5, 2, 3, 2, 3]
    assert flat.sets.tolist() == [[1, 1], [1, 2]]
    assert flat.size.tolist() == [[1, 1], [2, 1]]
    assert flat.set_id.tolist() == [0, 1]
    assert flat.single_key.tolist() == [False, True]
