"""The demo's figure: speed over time, load per instance over time, and where the city was hot."""

from pathlib import Path

import numpy as np
import numpy.typing as npt

from skewless.demo.track import Track

INK = "#2b2d42"
BLUE, ORANGE = "#2a6f97", "#e76f51"
INSTANCES = ["#264653", "#2a9d8f", "#e9c46a", "#f4a261", "#e76f51", "#8ab17d", "#6d597a", "#b56576"]


def available() -> bool:
    """Whether matplotlib, an optional dependency, is installed."""
    from importlib.util import find_spec

    return find_spec("matplotlib") is not None


def draw(track: Track, heat: npt.NDArray[np.int64], size_m: float, path: Path) -> None:
    """Write the figure as PNG."""
    # The object interface, not pyplot: no display, no global state, safe beside a user's plots.
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.colors import PowerNorm
    from matplotlib.figure import Figure
    from matplotlib.ticker import EngFormatter

    # Spark starts up in the first batch; time counts from its end, unless there is no other.
    first, *later = track.batches
    batches = later or [first]
    begin_s = first.end_s if later else first.end_s - first.duration_s
    ends_s = np.array([batch.end_s for batch in batches])
    seconds = ends_s - begin_s
    # A batch's rows came in since the batch before it ended, whether it worked or waited for them.
    elapsed = np.maximum(np.diff(ends_s, prepend=begin_s), 1e-3)
    rows_per_s = np.array([batch.rows for batch in batches]) / elapsed
    matches_per_s = np.array([batch.matches for batch in batches]) / elapsed

    figure = Figure(figsize=(13, 7), dpi=130, layout="constrained", facecolor="white")
    FigureCanvasAgg(figure)
    grid = figure.add_gridspec(2, 2, width_ratios=[1.25, 1])
    speed, load = figure.add_subplot(grid[0, 0]), figure.add_subplot(grid[1, 0])
    city = figure.add_subplot(grid[:, 1])
    figure.suptitle(
        f"A ride-hailing city: {track.rows:,} rows joined, {track.matches:,} matches",
        fontsize=15,
        fontweight="bold",
        color=INK,
    )

    speed.plot(seconds, rows_per_s, color=BLUE, linewidth=2, label="rows/s")
    speed.plot(seconds, matches_per_s, color=ORANGE, linewidth=2, label="matches/s")
    speed.fill_between(seconds, rows_per_s, color=BLUE, alpha=0.12)
    speed.set_title("Rows in and matches out, per second", loc="left", color=INK)
    speed.yaxis.set_major_formatter(EngFormatter(sep=""))
    speed.legend(frameon=False, loc="upper left")

    shares = np.array([batch.cpu_ms for batch in batches])
    shares = shares / np.maximum(shares.sum(axis=1, keepdims=True), 1e-9) * 100
    instances = shares.shape[1]
    load.stackplot(
        seconds,
        shares.T,
        colors=[INSTANCES[instance % len(INSTANCES)] for instance in range(instances)],
        labels=[f"instance {instance}" for instance in range(instances)],
        alpha=0.9,
    )
    for edge in range(1, instances):
        load.axhline(100 * edge / instances, color="white", linewidth=1, linestyle="--")
    load.set_ylim(0, 100)
    load.set_title("Share of CPU time per instance (%); dashed: even", loc="left", color=INK)
    load.legend(frameon=True, framealpha=0.85, edgecolor="none", loc="lower left", ncols=4)

    for axes in (speed, load):
        axes.set_xlim(float(seconds[0]), max(float(seconds[-1]), float(seconds[0]) + 1e-3))
        axes.set_xlabel("seconds", color=INK)
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
    speed.set_ylim(bottom=0)

    side_km = size_m / 1000
    image = city.imshow(
        heat,
        origin="lower",
        extent=(0, side_km, 0, side_km),
        cmap="inferno",
        norm=PowerNorm(0.5, vmin=0, vmax=max(int(heat.max()), 1)),
    )
    share = heat.max() / max(int(heat.sum()), 1)
    city.set_title(f"Orders per cell; the hottest has {share:.1%} of all", loc="left", color=INK)
    city.set_xlabel("km", color=INK)
    city.set_ylabel("km", color=INK)
    figure.colorbar(image, ax=city, shrink=0.75, format=EngFormatter(sep=""), label="orders")
    figure.savefig(path)
