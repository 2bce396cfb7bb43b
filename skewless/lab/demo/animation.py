"""The spatial demo's animation: orders with the drivers near them, and the map's tiles."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from skewless.lab.demo.figure import INK
from skewless.lab.demo.globe import Moment
from skewless.lab.demo.view import clock
from skewless.lab.figures.tiles import draw_tiles
from skewless.routing.tiles import TileRoute

FRAMES_PER_S = 3
DPI = 90
# More drivers than that near an order have the same colour.
MANY = 20


@dataclass(frozen=True, eq=False)
class Frame:
    """One picture: a moment of the city, how many drivers every order found, and the tiles."""

    moment: Moment
    drivers_found: npt.NDArray[np.int64]  # for every order
    route: TileRoute
    imbalance: float


def draw(frames: Sequence[Frame], path: Path) -> None:
    """Writes the frames as an animated GIF."""
    from matplotlib.animation import PillowWriter
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 5.6), dpi=DPI, layout="constrained", facecolor="white")
    FigureCanvasAgg(figure)
    writer = PillowWriter(fps=FRAMES_PER_S)
    with writer.saving(figure, str(path), dpi=DPI):
        for frame in frames:
            figure.clear()
            _draw_frame(figure, frame)
            writer.grab_frame()


def _draw_frame(figure: Any, frame: Frame) -> None:
    city, tiles = figure.subplots(1, 2)
    moment = frame.moment
    figure.suptitle(f"City time {clock(moment.hour)}", color=INK, fontweight="bold")
    _draw_city(figure, city, frame)
    draw_tiles(tiles, frame.route, moment.drivers)
    tiles.set_aspect(city.get_aspect())
    tiles.set_title(
        f"sk.subscribe: {len(frame.route.tiles)} tiles, coloured by instance; "
        f"busiest ÷ mean {frame.imbalance:.2f}",
        color=INK,
        fontsize=10,
    )


def _draw_city(figure: Any, axes: Any, frame: Frame) -> None:
    moment, bounds = frame.moment, frame.route.grid.bounds
    axes.set_facecolor("#f4f1ea")
    for chosen, colour, label in (
        (~moment.free, "#b8b8b8", "driver, busy"),
        (moment.free, "#2a9d8f", "driver, free"),
    ):
        places = moment.drivers[chosen]
        axes.scatter(places[:, 0], places[:, 1], s=3, color=colour, linewidths=0, label=label)
    drawn = axes.scatter(
        moment.orders[:, 0],
        moment.orders[:, 1],
        s=14,
        c=np.minimum(frame.drivers_found, MANY),
        cmap="plasma",
        vmin=0,
        vmax=MANY,
        edgecolors="black",
        linewidths=0.3,
        label="order",
    )
    bar = figure.colorbar(drawn, ax=axes, shrink=0.7, extend="max", ticks=range(0, MANY + 1, 5))
    bar.set_label("free drivers within 500 m in the last 30 s")
    axes.set_xlim(bounds[0], bounds[2])
    axes.set_ylim(bounds[1], bounds[3])
    # A degree of latitude is longer than one of longitude.
    axes.set_aspect(1 / np.cos(np.radians((bounds[1] + bounds[3]) / 2)))
    axes.set_xticks([])
    axes.set_yticks([])
    served = float((frame.drivers_found > 0).mean()) if len(frame.drivers_found) else 0.0
    axes.set_title(
        f"sk.join by distance: {len(moment.orders):,} orders, {served:.0%} with a free driver near",
        color=INK,
        fontsize=10,
    )
    axes.legend(loc="lower right", fontsize=7, framealpha=0.8, markerscale=2)
