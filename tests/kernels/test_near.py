"""Distances and the condition on them, against plain numpy."""

import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skewless.kernels import distance
from skewless.kernels.distance import EARTH_RADIUS_M, Globe, Plane
from skewless.kernels.near import NearCondition
from skewless.kernels.runs import index_rows, sort_run
from skewless.kernels.warmup import compile_near
from skewless.testing.oracle import haversine_m

XY = ("x", "y")


def runs(metric: Plane | Globe, left: np.ndarray, right: np.ndarray, keys: np.ndarray):
    """Two runs in which every left point meets every right one."""
    made = []
    for points in (left, right):
        columns = {"x": points[0], "y": points[1], "k": keys[: points.shape[1]]}
        derived = metric.derive(*points)
        columns.update(zip(metric.derived, derived, strict=True))
        rows = pa.record_batch({name: pa.array(c) for name, c in columns.items()})
        count = points.shape[1]
        hashes, times = np.zeros(count, np.uint64), np.zeros(count, np.int64)
        made.append((hashes, times, rows))
    return sort_run(*made[0], (), hash_is_key=True), index_rows(*made[1], np.arange(right.shape[1]))


def found(condition: NearCondition, needles, stored) -> set[tuple[int, int]]:
    needle, other = (g.ravel() for g in np.indices((len(needles), len(stored))))
    mask = condition.qualifying(needles, stored, needle, other)
    rows = needles.rows_of(needle[mask]), stored.rows_of(other[mask])
    return set(zip(*(r.tolist() for r in rows), strict=True))


@given(
    metres=st.sampled_from([0.001, 1.0, 500.0, 2e6, 1.5e7, 20_015_114.0]),
    seed=st.integers(0, 2**32),
    keyed=st.booleans(),
)
def test_points_on_the_globe(metres: float, seed: int, keyed: bool) -> None:
    rng = np.random.default_rng(seed)
    spread = 3 * math.degrees(metres / EARTH_RADIUS_M)
    centre = rng.choice([-90.0, -60.0, 0.0, 90.0])
    points = [
        np.array(
            [
                (rng.choice([-180.0, 0.0, 179.9]) + rng.uniform(-spread, spread, 20) + 180) % 360
                - 180,
                np.clip(centre + rng.uniform(-spread, spread, 20), -90, 90),
            ]
        )
        for _ in range(2)
    ]
    points[1][:, :5] = points[0][:, :5]
    apart = haversine_m(*(p[:, None] for p in points[0]), *(p[None, :] for p in points[1]))
    keys = rng.integers(0, 2, 20)
    same = keys[:, None] == keys[None, :] if keyed else np.ones_like(apart, np.bool_)
    expected = set(map(tuple, np.argwhere((apart <= metres) & same).tolist()))
    metric = Globe(metres)
    condition = NearCondition(metric, XY, XY, (180.0, 90.0), ("k",) if keyed else ())
    left, right = runs(metric, *points, keys)
    assert found(condition.seen_from("left"), left, right) == expected
    assert found(condition.seen_from("right"), right, left) == {(b, a) for a, b in expected}
    rows = [np.array([pair[i] for pair in expected], np.int64) for i in (0, 1)]
    told = condition.distances(left, right, *rows)
    assert told.tolist() == pytest.approx(apart[rows[0], rows[1]].tolist())
    assert (told <= metres).all()


def test_a_distance_is_decided_by_the_haversine_where_chords_cannot_tell() -> None:
    """The limit is the very distance of a pair, and the next smaller number."""
    rng = np.random.default_rng(4)
    left, right = (
        np.array([rng.uniform(-180, 180, 300), rng.uniform(-89, 89, 300)]) for _ in range(2)
    )
    right[:, :200] = left[:, :200] + rng.uniform(-1e-3, 1e-3, (2, 200))
    apart = Globe(1.0).distances(*left, *right)
    for row in range(300):
        pair = left[:, row : row + 1], right[:, row : row + 1]
        for limit, is_near in ((apart[row], True), (np.nextafter(apart[row], 0), False)):
            metric = Globe(float(limit))
            condition = NearCondition(metric, XY, XY, (180.0, 90.0))
            assert bool(found(condition, *runs(metric, *pair, np.zeros(1)))) == is_near


def test_a_plane_includes_the_radius() -> None:
    left = np.array([[0.0, 0.0, 0.0, 7.0], [0.0, 0.0, 0.0, 0.0]])
    right = np.array([[3.0, 5.0, 3.1, 7.0], [4.0, 0.0, 4.0, 5.0000001]])
    condition = NearCondition(Plane(5.0), XY, ("x", "y"), (1e12, 1e12))
    pairs = found(condition, *runs(Plane(5.0), left, right, np.zeros(4)))
    assert pairs == {(i, j) for i in range(3) for j in (0, 1)} | {(3, 1)}


def test_a_row_has_one_seed_whatever_it_is_indexed_by() -> None:
    points = np.array([[1.0, 1.0, 2.0], [3.0, 3.0, 3.0]])
    condition = NearCondition(Plane(5.0), XY, XY, (1e12, 1e12))
    seeds = condition.seeds(runs(Plane(5.0), points, points, np.zeros(3))[0].rows)
    assert seeds[0] == seeds[1] != seeds[2]


def test_a_batch_after_the_warm_up_compiles_nothing() -> None:
    compile_near()
    kernels = (distance._within, distance._within_chord)
    compiled = [len(k.signatures) for k in kernels]
    points = np.zeros((2, 3))
    for metric in (Plane(1.0), Globe(1.0)):
        condition = NearCondition(metric, XY, XY, (180.0, 90.0))
        needles, stored = runs(metric, points, points, np.zeros(3))
        found(condition, needles, stored)
        found(condition.seen_from("right"), stored, needles)
    assert [len(k.signatures) for k in kernels] == compiled
