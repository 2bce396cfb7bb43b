"""The index of rectangles finds what comparing everything with everything does."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skewless.kernels.rectangles import Boxes, Extent, RectangleIndex

EXTENT = Extent(-10.0, 5.0, 30.0, 6.0)
FARTHEST = (-1e300, -10.0, -9.5, 0.0, 7.3, 29.999, 30.0, 1e300, np.inf, -np.inf)
HIGHEST = (-np.inf, 5.0, 5.25, 5.5, 5.500001, 6.0, 100.0)


def indexed(edges: np.ndarray) -> RectangleIndex:
    keys = EXTENT.keys(Boxes(*edges))
    order = np.argsort(keys, kind="stable")
    return RectangleIndex(EXTENT, keys[order], Boxes(*(edge[order] for edge in edges)))


def expected(index: RectangleIndex, x: np.ndarray, y: np.ndarray) -> set[tuple[int, int]]:
    boxes = index.boxes
    inside = (boxes.x_min <= x[:, None]) & (x[:, None] <= boxes.x_max)
    inside &= (boxes.y_min <= y[:, None]) & (y[:, None] <= boxes.y_max)
    return set(zip(*(found.tolist() for found in np.nonzero(inside)), strict=True))


@given(data=st.data(), seed=st.integers(0, 2**32), at_most=st.sampled_from([1, 3, 1000]))
@settings(max_examples=150)
def test_the_pairs_are_those_of_brute_force(data, seed, at_most) -> None:
    """Points, lines, strips, rectangles of any size and beyond the bounds; edges are inside."""
    xs = st.one_of(st.sampled_from(FARTHEST), st.floats(-10, 30))
    ys = st.one_of(st.sampled_from(HIGHEST), st.floats(5, 6))
    boxes = data.draw(st.lists(st.tuples(xs, ys, xs, ys), max_size=30))
    low = np.array(boxes, np.float64).reshape(-1, 2, 2)
    edges = np.concatenate([low.min(axis=1), low.max(axis=1)], axis=1).T.copy()
    index = indexed(edges)
    rng = np.random.default_rng(seed)
    x, y = rng.uniform(-10, 30, 40), rng.uniform(5, 6, 40)
    # On the edges and corners themselves.
    corners = edges[:, np.isfinite(edges).all(axis=0)]
    x = np.append(x, np.clip(corners[[0, 0, 2]].ravel(), -10, 30))
    y = np.append(y, np.clip(corners[[1, 3, 1]].ravel(), 5, 6))
    alive = None
    if data.draw(st.booleans()):
        alive = rng.random(len(index.keys)) < 0.5
    found = []
    search = index.around(x, y, alive)
    for portion in search.portions(at_most):
        assert 0 < len(portion.points) <= at_most
        found += list(zip(portion.points.tolist(), portion.boxes.tolist(), strict=True))
    wanted = expected(index, x, y)
    if alive is not None:
        wanted = {(point, box) for point, box in wanted if alive[box]}
    assert len(found) == len(set(found))
    assert set(found) == wanted
    assert search.compared.sum() >= len(found)


@pytest.mark.parametrize("side", [0.0, 1e-6, 0.0016, 0.02])
@pytest.mark.parametrize("stretched", [1.0, 200.0])
def test_what_is_looked_at_grows_with_the_matches(side: float, stretched: float) -> None:
    """However large the rectangles, and whatever their form."""
    rng = np.random.default_rng(1)
    count = 50_000
    x, y = rng.uniform(-10, 30, count), rng.uniform(5, 6, count)
    width, height = 40 * min(side * stretched, 0.3), 1 * side
    index = indexed(np.array([x, y, x + width, y + height]))
    at = rng.integers(0, count, 500)
    px = np.minimum(index.boxes.x_min[at] + width / 2, 30)
    py = np.minimum(index.boxes.y_min[at] + height / 2, 6)
    search = index.around(px, py)
    matches = sum(len(portion.points) for portion in search.portions(10_000))
    assert matches >= 500
    # 16 where every cell is nearly twice as wide and as high as its rectangles.
    assert search.compared.sum() <= 20 * matches


def test_nothing_is_found_in_nothing() -> None:
    index = indexed(np.zeros((4, 0)))
    assert list(index.around(np.zeros(3), np.full(3, 5.5)).portions(10)) == []
    assert list(indexed(np.full((4, 1), 5.5)).around(np.zeros(0), np.zeros(0)).portions(10)) == []
