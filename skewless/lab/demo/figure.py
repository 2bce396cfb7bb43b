"""The demo's figure: how evenly both queries were spread over time, and where the city was hot."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from skewless.lab.demo.track import Track

INK = "#2b2d42"
COLOURS = ("#e76f51", "#2a6f97")  # one per query


def available() -> bool:
    """Whether matplotlib, an optional dependency, is installed."""
    from importlib.util import find_spec

    return find_spec("matplotlib") is not None


def draw(
    tracks: dict[str, Track],
    heat: npt.NDArray[np.int64],
    size_m: float,
    path: Path,
    jumps_s: Sequence[float] = (),
) -> None:
    """Write the figure of two queries, by name, as PNG; `jumps_s` is when the crowd jumped."""
    # The object interface, not pyplot: no display, no global state, safe beside a user's plots.
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    # Spark starts up in the first batch; time counts from its end, unless there is no other.
    begin_s = min(_begin_s(track) for track in tracks.values())
    end_s = max(track.batches[-1].end_s for track in tracks.values())
    any_track = next(iter(tracks.values()))

    figure = Figure(figsize=(14, 7.5), dpi=130, layout="constrained", facecolor="white")
    FigureCanvasAgg(figure)
    grid = figure.add_gridspec(3, 2, width_ratios=[1.4, 1], height_ratios=[1.7, 1, 1])
    over_time = figure.add_subplot(grid[0, 0])
    loads = [figure.add_subplot(grid[row, 0], sharex=over_time) for row in (1, 2)]
    figure.suptitle(
        f"A ride-hailing city, joined by {' and by '.join(tracks)}: {any_track.rows:,} rows, "
        f"{any_track.matches:,} matches",
        fontsize=15,
        fontweight="bold",
        color=INK,
    )
    _draw_imbalance(over_time, tracks, begin_s)
    for number, jump_s in enumerate(jumps_s):
        label = "the crowd jumps" if number == 0 else None
        over_time.axvline(jump_s - begin_s, 0, 0.7, color="#8d99ae", linestyle="--", label=label)
    # Room for the legend above the lines.
    low, high = over_time.get_ylim()
    over_time.set_ylim(low, high + 0.4 * (high - low))
    over_time.legend(frameon=False, loc="upper left", ncols=2)
    top = max(2.0, *(float(np.quantile(track.loads(), 0.99)) for track in tracks.values()))
    for axes, (name, track) in zip(loads, tracks.items(), strict=True):
        image = _draw_loads(axes, track, begin_s, top)
        axes.set_title(f"{name}: load of every instance", loc="left", color=INK)
    figure.colorbar(image, ax=loads, label="CPU time / mean", extend="max", aspect=30)
    over_time.set_xlim(0, max(end_s - begin_s, 1e-3))
    loads[0].tick_params(labelbottom=False)
    loads[-1].set_xlabel("seconds", color=INK)
    _draw_city(figure.add_subplot(grid[:, 1]), heat, size_m)
    figure.savefig(path)


def _begin_s(track: Track) -> float:
    first = track.batches[0]
    return first.end_s if len(track.batches) > 1 else first.end_s - first.duration_s


def _marker(colour: str) -> dict[str, Any]:
    return {"facecolor": "white", "edgecolor": colour, "linewidth": 1.6, "zorder": 3}


def _draw_imbalance(axes: Any, tracks: dict[str, Track], begin_s: float) -> None:
    from matplotlib.transforms import offset_copy

    for (name, track), colour in zip(tracks.items(), COLOURS, strict=True):
        seconds = [batch.end_s - begin_s for batch in track.steady]
        imbalance = [batch.imbalance for batch in track.steady]
        label = f"{name}, {np.mean(imbalance):.2f} on average"
        axes.plot(seconds, imbalance, color=colour, linewidth=2.2, label=label)
        changes = [change for change in track.changes if change.batch in track.steady]
        moved = [change.batch for change in changes if change.batch.moves]
        split = [change.batch for change in changes if change.split or change.folded]
        axes.scatter(
            [batch.end_s - begin_s for batch in moved],
            [batch.imbalance for batch in moved],
            s=[20 + 4 * min(len(batch.moves), 30) for batch in moved],
            label="partitions move (size: how many)" if moved else None,
            **_marker(colour),
        )
        axes.scatter(
            [batch.end_s - begin_s for batch in split],
            [batch.imbalance for batch in split],
            s=26,
            marker="D",
            # Above the line, so that both marks of one batch can be seen.
            transform=offset_copy(axes.transData, axes.figure, y=12, units="points"),
            label="keys are split or folded back" if split else None,
            **_marker(colour),
        )
    axes.axhline(1, color=INK, linewidth=1, linestyle=":")
    axes.set_ylim(bottom=0.9)
    axes.set_title(
        "Imbalance: CPU time of the busiest instance / mean; 1 is even", loc="left", color=INK
    )
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelbottom=False)


def _draw_loads(axes: Any, track: Track, begin_s: float, top: float) -> Any:
    """One line per instance and one column per batch; white is the mean."""
    from matplotlib.colors import TwoSlopeNorm

    ends_s = np.array([batch.end_s - begin_s for batch in track.steady])
    # A batch stands for the time since the batch before it, whether it worked or waited.
    edges = np.concatenate(([min(0.0, ends_s[0] - 1e-3)], ends_s))
    loads = track.loads().T
    instances = len(loads)
    image = axes.pcolormesh(
        edges,
        np.arange(instances + 1) - 0.5,
        loads,
        cmap="RdBu_r",
        norm=TwoSlopeNorm(1.0, vmin=0.0, vmax=top),
    )
    axes.set_ylim(instances - 0.5, -0.5)
    axes.set_yticks(np.arange(0, instances, -(-instances // 8)))
    axes.set_ylabel("instance", color=INK)
    axes.spines[["top", "right"]].set_visible(False)
    return image


def _draw_city(axes: Any, heat: npt.NDArray[np.int64], size_m: float) -> None:
    from matplotlib.colors import PowerNorm
    from matplotlib.ticker import EngFormatter

    side_km = size_m / 1000
    image = axes.imshow(
        heat,
        origin="lower",
        extent=(0, side_km, 0, side_km),
        cmap="inferno",
        norm=PowerNorm(0.5, vmin=0, vmax=max(int(heat.max()), 1)),
    )
    share = heat.max() / max(int(heat.sum()), 1)
    axes.set_title(f"Orders per cell; the hottest has {share:.1%} of all", loc="left", color=INK)
    axes.set_xlabel("km", color=INK)
    axes.set_ylabel("km", color=INK)
    axes.figure.colorbar(image, ax=axes, shrink=0.6, format=EngFormatter(sep=""), label="orders")
