"""Polygons are read once, and forgotten when there are too many."""

from unittest.mock import patch

import numpy as np
import pyarrow as pa
import shapely

from skewless.operators.subscribe import shapes
from skewless.operators.subscribe.shapes import PolygonShape, ReadShapes

BOXES = [shapely.box(n, 0, n + 1, 1) for n in range(4)]
ROWS = pa.record_batch({"p0": pa.array(shapely.to_wkt(BOXES))})
SHAPE = PolygonShape(("p0",))


def asked(read: ReadShapes, rows: list[int]) -> int:
    """How many polygons are read to say which of these rows have their lower corner."""
    at = np.array(rows)
    with patch.object(shapes, "_read", wraps=shapes._read) as reading:
        inside = SHAPE.holds(ROWS, at, at.astype(float), np.zeros(len(at)), read)
    assert inside.all()
    return sum(len(call.args[0]) for call in reading.call_args_list)


def test_a_polygon_is_read_once() -> None:
    read = ReadShapes(4)
    assert asked(read, [0, 1, 1]) == 2
    assert asked(read, [0, 1, 2]) == 1
    assert asked(read, [0, 2]) == 0


def test_no_more_are_kept_than_may_be() -> None:
    read = ReadShapes(4, at_most=2)
    assert asked(read, [0, 1]) == 2
    assert asked(read, [0, 2]) == 2
    assert asked(read, [0, 2]) == 0
    assert asked(read, [0, 1, 2, 3]) == 4


def test_points_outside_are_left_out() -> None:
    inside = SHAPE.holds(ROWS, np.array([0, 1]), np.array([0.5, 0.5]), np.array([0.5, 0.5]))
    assert inside.tolist() == [True, False]
