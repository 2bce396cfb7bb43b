"""A map is drawn: one rectangle per tile, in the map's own coordinates."""

import numpy as np
import pytest

from skewless.routing.cells import CellGrid
from skewless.routing.tiles import Tile, TileRoute, even_tiles

pytest.importorskip("matplotlib")

from skewless.lab.figures.tiles import draw_tiles, instance_colours
from skewless.lab.reproduce.output import new_figure


def test_every_tile_is_drawn_where_it_lies() -> None:
    from matplotlib import pyplot

    grid = CellGrid(8, (-10.0, 40.0, 10.0, 48.0))
    figure, axes = new_figure()
    draw_tiles(axes, even_tiles(grid, 3), np.array([[0.0, 44.0]]))
    found = {(p.get_x(), p.get_y(), p.get_width(), p.get_height()) for p in axes.patches}
    assert found == {(-10.0, 40.0, 10.0, 4.0), (0.0, 40.0, 10.0, 4.0), (-10.0, 44.0, 20.0, 4.0)}
    assert axes.get_xlim() == (-10.0, 10.0)
    pyplot.close(figure)


def test_what_is_shared_is_hatched() -> None:
    from matplotlib import pyplot

    figure, axes = new_figure()
    whole = Tile(0, 0, 2, 2, (0, 1))
    draw_tiles(axes, TileRoute(CellGrid(2, (0.0, 0.0, 1.0, 1.0)), 2, (whole,)))
    assert [patch.get_hatch() for patch in axes.patches] == ["////"]
    pyplot.close(figure)


@pytest.mark.parametrize("count", [1, 20, 22, 100])
def test_instances_have_colours_of_their_own(count: int) -> None:
    assert len(set(instance_colours(count))) == count
