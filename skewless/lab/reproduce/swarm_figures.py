"""The figures of the SWARM experiments: lines, timelines, and maps with their tiles."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from skewless.lab.figures.tiles import draw_tiles
from skewless.lab.reproduce.output import new_figure, save_figure
from skewless.lab.reproduce.swarm_experiments import POLICIES, Outcome, Result
from skewless.lab.reproduce.swarm_report import execution, latency, of, values, work

Results = Sequence[Result]
_BILLION = 1e9


def draw(results: Results, out: Path) -> list[Path]:
    """One PNG per figure that has results."""
    written = []
    for value, label, name in (
        (work, "units of work, 10⁹", "work"),
        (execution, "execution, µs", "execution"),
        (latency, "latency at the same rate, µs", "latency"),
    ):
        written.append(_over_queries(results, value, label, out / f"swarm-{name}.png"))
    for kind, found in of(results, "hotspot").items():
        written.append(_timeline(found, kind, out / f"swarm-{kind}.png"))
        if found[0].pictures:
            written.append(_map(found[0], kind, out / f"swarm-map-{kind}.png"))
    return written


def _over_queries(
    results: Results, value: Callable[[Outcome], float | None], label: str, path: Path
) -> Path:
    figure, axes = new_figure()
    points = of(results, "queries")
    for policy in POLICIES:
        at = [float(name) for name, found in points.items() if values(found, policy, value)]
        seen = [values(points[f"{x:g}"], policy, value) for x in at]
        scale = _BILLION if value is work else 1.0
        axes.plot(at, [np.mean(s) / scale for s in seen], marker="o", markersize=4, label=policy)
        lows, highs = ([f(s) / scale for s in seen] for f in (min, max))
        axes.fill_between(at, lows, highs, alpha=0.1)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_title("22 executors, one hour from a cold start (Fig. 11)")
    axes.set_xlabel("subscriptions, millions")
    axes.set_ylabel(label)
    return save_figure(figure, axes, path)


def _timeline(found: Results, kind: str, path: Path) -> Path:
    """Units of work per minute; the shade is the number of subscriptions."""
    figure, axes = new_figure()
    for policy in POLICIES:
        series = [r.outcomes[policy].series for r in found if r.outcomes[policy].series]
        if series:
            mean = np.mean(series, axis=0) / _BILLION
            axes.plot(np.arange(len(mean)), mean, label=policy)
    queries = np.mean([r.outcomes["Auto"].queries for r in found], axis=0) / 1e6
    other = axes.twinx()
    other.fill_between(np.arange(len(queries)), queries, color="0.85", step="mid", zorder=0)
    other.set_ylabel("subscriptions, millions (grey)")
    other.set_ylim(0, 3 * queries.max())
    axes.set_zorder(other.get_zorder() + 1)
    axes.patch.set_visible(False)
    axes.set_title(f"Hotspot: {kind}")
    axes.set_xlabel("minute")
    axes.set_ylabel("units of work, 10⁹")
    axes.set_ylim(bottom=0)
    return save_figure(figure, axes, path, beside=1.15)


def _map(result: Result, kind: str, path: Path) -> Path:
    """The tiles in the middle of the run, and points of that round."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    shown = [p for p in ("history grid", "Swarm", "Auto") if p in result.pictures]
    figure, all_axes = pyplot.subplots(1, len(shown), figsize=(4 * len(shown), 4.3), squeeze=False)
    for policy, axes in zip(shown, all_axes[0], strict=True):
        route, points = result.pictures[policy]
        draw_tiles(axes, route, points)
        axes.set_title(f"{policy}: {len(route.tiles)} tiles", fontsize="medium")
    figure.suptitle(f"Hotspot: {kind}. A colour is an executor; hatched cells are shared.")
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    pyplot.close(figure)
    return path
