"""A map with its tiles, coloured by instance, and points on top."""

from typing import Any

import numpy as np
import numpy.typing as npt

from skewless.routing.tiles import TileRoute

Reals = npt.NDArray[np.float64]
_MOST_POINTS = 20_000


def draw_tiles(axes: Any, route: TileRoute, points: Reals | None = None) -> None:
    """Draws the tiles of a route into matplotlib axes, in the map's own coordinates.

    A tile has the colour of its instance; a tile that several share is hatched, with the colour of
    the first. `points` is an (n, 2) array; of very many, every k-th is drawn.
    """
    from matplotlib.patches import Rectangle

    x_min, y_min, x_max, y_max = route.grid.bounds
    across, up = route.grid.scales
    colours = instance_colours(route.count)
    for tile in route.tiles:
        shared = len(tile.members) > 1
        axes.add_patch(
            Rectangle(
                (x_min + tile.left / across, y_min + tile.top / up),
                tile.columns / across,
                tile.rows / up,
                facecolor=(*colours[tile.members[0]][:3], 0.55),
                edgecolor="0.25",
                linewidth=0.6,
                hatch="////" if shared else None,
            )
        )
    if points is not None and len(points):
        some = points[:: max(1, len(points) // _MOST_POINTS)]
        axes.scatter(some[:, 0], some[:, 1], s=0.6, color="black", alpha=0.35, linewidths=0)
    axes.set_xlim(x_min, x_max)
    axes.set_ylim(y_min, y_max)
    axes.set_aspect((x_max - x_min) / (y_max - y_min))
    axes.set_xticks([])
    axes.set_yticks([])


def instance_colours(count: int) -> list[tuple[float, float, float, float]]:
    """A colour for every instance; the same number gives the same colours."""
    from matplotlib import colormaps

    if count <= 20:
        return [colormaps["tab20"](n) for n in range(count)]
    # Neighbours in number are far apart in hue: steps of the golden ratio.
    return [colormaps["hsv"]((0.618034 * n) % 1.0) for n in range(count)]
