"""sk.Near and sk.Nearest: what they take, and what they refuse at once."""

from typing import Any

import numpy as np
import pytest

import skewless as sk
from skewless.kernels.distance import Globe, Plane
from skewless.routing.blocks import GlobeCells, PlaneCells

XY = ("x", "y")


@pytest.mark.parametrize("match", [sk.Near, lambda **given: sk.Nearest(k=1, **given)])
@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({}, "radius, metres: got neither; takes one of them"),
        ({"radius": 1, "metres": 1}, "radius, metres: got both"),
        *(({"radius": r}, "radius: got") for r in (0, -1, True, "far", float("nan"), float("inf"))),
        ({"radius": 1e101}, "radius: got 1e[+]101; takes a number from 1e-100 to 1e[+]100"),
        *(({"metres": m}, "metres: got") for m in (0, -5, False, "500 m", float("nan"))),
        ({"metres": 0.0001}, "metres: got 0.0001; takes a number from 0.001 to 20,015,114"),
        ({"metres": 3e7}, "metres: got 30000000.0; takes"),
        *(
            (
                {"radius": 1, "left": wrong},
                'left: got .*; takes two columns, such as [(]"x", "y"[)]',
            )
            for wrong in ("xy", ("x",), ("x", "y", "z"), ("x", 1), ("x", "x"), None)
        ),
        ({"radius": 1, "right": "xy"}, "right: got 'xy'"),
        ({"radius": 1, "distance": ""}, "distance: got ''; takes the name of a new column"),
        ({"radius": 1, "distance": 5}, "distance: got 5"),
    ],
)
def test_wrong_arguments(match: Any, given: dict[str, Any], says: str) -> None:
    with pytest.raises(sk.SkewlessError, match=says):
        match(**{"left": XY, **given})


@pytest.mark.parametrize("wrong", [0, -1, 1.5, True, "two", None, 10_001])
def test_k_is_a_whole_number(wrong: Any) -> None:
    with pytest.raises(sk.SkewlessError, match=r"k: got .*; takes a whole number from 1 to 10,000"):
        sk.Nearest(k=wrong, radius=1, left=XY)


def test_what_they_mean() -> None:
    plane = sk.Near(radius=np.float32(2), left=["x", "y"])  # type: ignore[arg-type]
    assert plane.points == (("x", "y"), ("x", "y"))
    assert (plane.metric, plane.cells) == (Plane(2.0), PlaneCells(2.0))
    globe = sk.Nearest(k=np.int64(3), metres=500, left=("a", "b"), right=XY)
    assert globe.points == (("a", "b"), ("x", "y"))
    assert globe.metric == Globe(500.0)
    assert isinstance(globe.cells, GlobeCells)
    assert sk.Near(metres=20_015_114, left=XY).cells.last_band == 0
