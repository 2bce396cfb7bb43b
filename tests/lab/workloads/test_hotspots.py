"""Hotspots draw the points they are to draw, when they are to, and where."""

import numpy as np
import pytest

from skewless.lab.workloads.hotspots import (
    KINDS,
    SHARE,
    SIDE,
    Crowd,
    HotMap,
    Hotspot,
    Kind,
    around,
    hotspots,
)

LOW = np.zeros(2)
HIGH = np.full(2, 1 - SIDE)


def within(points: np.ndarray, corner: np.ndarray) -> float:
    return float(((points >= corner) & (points <= corner + SIDE)).all(axis=1).mean())


def a_map(kind: Kind) -> HotMap:
    return HotMap(Crowd.cities(np.random.default_rng(3)), hotspots(kind, start_s=600, length_s=600))


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_generator_gives_the_same_points_in_the_unit_square(kind: Kind) -> None:
    one, other = (a_map(kind).points(np.random.default_rng(5), 2_000, 900) for _ in range(2))
    assert (one == other).all()
    assert one.shape == (2_000, 2)
    assert one.min() >= 0
    assert one.max() <= 1


@pytest.mark.parametrize(
    ("kind", "at_s", "low", "high"),
    [
        ("bell", 0, 0, 0),
        ("bell", 900, SHARE, 0),
        ("bell", 601, 0, 0),
        ("step", 601, SHARE, 0),
        ("step", 1_199, SHARE, 0),
        ("step", 1_200, 0, 0),
        ("normal", 900, SHARE, 0),
        ("two", 900, SHARE / 2, SHARE / 2),
        ("sequence", 750, SHARE / 2, 0),
        ("sequence", 1_050, 0, SHARE / 2),
    ],
)
def test_when_and_where(kind: Kind, at_s: float, low: float, high: float) -> None:
    spotted = a_map(kind).points(np.random.default_rng(1), 20_000, at_s)
    calm = HotMap(a_map(kind).crowd).points(np.random.default_rng(1), 20_000, at_s)
    for corner, share in ((LOW, low), (HIGH, high)):
        rest = within(calm, corner) * (1 - low - high)
        assert within(spotted, corner) == pytest.approx(rest + share, abs=0.015)


def test_a_normal_hotspot_is_denser_in_its_middle() -> None:
    rng = np.random.default_rng(0)
    spots = [Hotspot((0.0, 0.0), 0, 1, inside=inside) for inside in ("uniform", "normal")]
    middle = [np.abs(s.points(rng, 5_000) - SIDE / 2).max(axis=1) < SIDE / 5 for s in spots]
    assert middle[1].mean() > 2 * middle[0].mean()


def test_cities_are_skewed_and_change_over_time() -> None:
    crowd = Crowd.cities(np.random.default_rng(8))
    now, later = crowd.shares(0), crowd.shares(7_200)
    assert now.sum() == pytest.approx(1)
    assert now.max() > 10 / len(now)
    assert np.abs(now - later).sum() > 0.2
    steady = Crowd.cities(np.random.default_rng(8), swing=0.0)
    assert (steady.shares(0) == steady.shares(7_200)).all()


def test_rectangles_lie_around_points() -> None:
    rectangles = a_map("bell").rectangles(np.random.default_rng(2), 500, at_s=900, side=0.01)
    assert rectangles.shape == (500, 4)
    assert (rectangles[:, :2] < rectangles[:, 2:]).all()
    assert (rectangles[:, 2:] - rectangles[:, :2] <= 0.01 + 1e-12).all()
    assert around(np.array([[0.0, 0.5]]), 0.2).tolist() == [[0.0, 0.4, 0.1, 0.6]]
