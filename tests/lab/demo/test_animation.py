"""The animation: one frame per file, whatever the city looked like."""

from pathlib import Path

import numpy as np
import pytest

from skewless.lab.demo.animation import Frame, draw
from skewless.lab.demo.globe import Moment
from skewless.routing.cells import CellGrid
from skewless.routing.tiles import TileRoute, even_tiles

pytest.importorskip("matplotlib")

BOUNDS = (13.0, 52.0, 13.5, 52.3)


def frame(orders: int, route: TileRoute) -> Frame:
    rng = np.random.default_rng(orders)

    def places(count: int) -> np.ndarray:
        return np.column_stack([rng.uniform(13.0, 13.5, count), rng.uniform(52.0, 52.3, count)])

    moment = Moment(8.0, np.arange(orders), places(orders), places(30), rng.random(30) < 0.5)
    return Frame(moment, rng.integers(0, 40, orders), route, 1.25)


def test_every_frame_is_in_the_picture(tmp_path: Path) -> None:
    from PIL import Image

    grid = CellGrid(8, BOUNDS)
    frames = [frame(orders, even_tiles(grid, 2 + orders)) for orders in (0, 1, 20)]
    draw(frames, tmp_path / "city.gif")
    with Image.open(tmp_path / "city.gif") as picture:
        assert picture.format == "GIF"
        assert getattr(picture, "n_frames", 1) == 3
        assert picture.size[0] > picture.size[1] > 300
