"""Stored points in rectangles: no point is missed, and few are looked at in vain."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from skewless.kernels.points import Parts, stretches

BOUNDS = (0.0, -50.0, 10.0, 50.0)


@given(
    seed=st.integers(0, 2**32),
    bits=st.integers(0, 8),
    count=st.integers(0, 300),
    huge=st.booleans(),
)
@settings(max_examples=100)
def test_every_point_of_an_owned_cell_is_in_one_stretch_of_its_rectangle(
    seed, bits, count, huge
) -> None:
    side = 2**bits
    parts = Parts(side, BOUNDS, 64 - 2 * bits)
    rng = np.random.default_rng(seed)
    x, y = rng.uniform(0, 10, count), rng.uniform(-50, 50, count)
    x[rng.random(count) < 0.2] = 5.0
    order = np.argsort(parts.hashes(x, y), kind="stable")
    x, y = x[order], y[order]
    hashes = parts.hashes(x, y)
    corners = (
        np.sort(rng.uniform(0, 10, (2, 8)), axis=0),
        np.sort(rng.uniform(-50, 50, (2, 8)), axis=0),
    )
    edges = (corners[0][0], corners[1][0], corners[0][1], corners[1][1])
    if huge:
        edges = tuple(np.full(8, edge) for edge in (-np.inf, -1e9, np.inf, 1e9))
    owned = rng.random(side * side) < 0.7
    found = stretches(hashes, parts, edges, owned)
    pairs = [
        (rectangle, at)
        for rectangle, start, length in zip(
            found.rectangle.tolist(), found.start.tolist(), found.count.tolist(), strict=True
        )
        for at in range(start, start + length)
    ]
    assert len(pairs) == len(set(pairs)) == found.total
    row = np.clip(np.floor((y + 50) / 100 * side), 0, side - 1).astype(int)
    column = np.clip(np.floor(x / 10 * side), 0, side - 1).astype(int)
    mine = owned[row * side + column]
    for rectangle in range(8):
        inside = (x >= edges[0][rectangle]) & (x <= edges[2][rectangle])
        inside &= (y >= edges[1][rectangle]) & (y <= edges[3][rectangle])
        wanted = {(rectangle, int(at)) for at in np.flatnonzero(inside & mine)}
        assert wanted <= set(pairs)
        assert all(mine[at] for _, at in pairs)


def test_few_points_are_looked_at_in_vain() -> None:
    parts = Parts(64, BOUNDS, 52)
    rng = np.random.default_rng(2)
    x, y = rng.uniform(0, 10, 200_000), rng.uniform(-50, 50, 200_000)
    hashes = np.sort(parts.hashes(x, y))
    left, low = rng.uniform(0, 9, 50), rng.uniform(-50, 40, 50)
    edges = (left, low, left + 0.5, low + 5)
    found = stretches(hashes, parts, edges, np.ones(64 * 64, np.bool_))
    inside = (x >= edges[0][:, None]) & (x <= edges[2][:, None])
    inside &= (y >= edges[1][:, None]) & (y <= edges[3][:, None])
    assert found.total <= 1.2 * inside.sum()


def test_a_rectangle_that_cuts_through_many_cells() -> None:
    """Its stretches are more than there is room for at first."""
    parts = Parts(256, BOUNDS, 48)
    rng = np.random.default_rng(3)
    x, y = rng.uniform(4, 4.1, 60_000), rng.uniform(-50, 50, 60_000)
    order = np.argsort(parts.hashes(x, y), kind="stable")
    x, y = x[order], y[order]
    edges = tuple(np.array([edge]) for edge in (4.01, -50.0, 4.02, 50.0))
    found = stretches(parts.hashes(x, y), parts, edges, np.ones(256 * 256, np.bool_))
    assert len(found.start) > 2_000
    met = np.zeros(len(x), np.bool_)
    for start, count in zip(found.start, found.count, strict=True):
        met[start : start + count] = True
    inside = (x >= 4.01) & (x <= 4.02)
    assert met[inside].all()
    assert met.sum() == found.total
