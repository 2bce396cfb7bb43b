"""The figures of the load shedding experiments, one PNG for each of the paper's."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from skewless.lab.reproduce.output import new_figure, save_figure
from skewless.lab.reproduce.shedding_experiments import Result
from skewless.lab.reproduce.windowed.simulation import Scheme
from skewless.lab.reproduce.windowed.streams import PHASES

Results = Sequence[Result]
DROP, RATE, TIME, DIRECTION = (scheme.value for scheme in Scheme)
_BESIDE_AXIS = 1.15
# A scheme has the same colour in every figure.
COLOURS = {DROP: "C3", RATE: "C0", TIME: "C1", DIRECTION: "C2"}


def draw(results: Results, out: Path) -> list[Path]:
    """One PNG per figure of the paper that has at least one result."""
    written = [
        _probability(results, out),
        _fractions(results, "rates", "Fig. 3: rates and the fraction r", out / "shedding-3.png"),
        _series(results, "rates", "Fig. 4: output, no lag", out / "shedding-4.png"),
        _windows(results, out),
        _fractions(results, "lag", "Fig. 6: rates, r1 and r2", out / "shedding-6.png"),
        _series(results, "lag", "Fig. 7: output, lag of 5/8 χ", out / "shedding-7.png"),
        _skew(results, out),
        _basic(results, ("basic", "basic measured"), "Fig. 9, left: no index",
               out / "shedding-9-scan.png"),
        _basic(results, ("index BY_TIME", "index BY_IDENTIFIER"), "Fig. 9, right: indexed",
               out / "shedding-9-index.png"),
    ]  # fmt: skip
    return [path for path in written if path is not None]


def _of(results: Results, experiment: str) -> list[Result]:
    return [r for r in results if r.point.experiment == experiment]


def _probability(results: Results, out: Path) -> Path | None:
    found = _of(results, "probability")
    if not found:
        return None
    figure, axes = new_figure()
    for exponent in sorted({r.point.at for r in found}):
        both = np.mean([r.learned for r in found if r.point.at == exponent], axis=0)[:, :-1]
        for name, style, learned in zip(("W1", "W2"), ("--", "-"), both, strict=True):
            axes.plot(np.arange(len(learned)), learned, style, label=f"{name}, κ = {exponent:g}")
    axes.set_title("Fig. 2: matches per comparison, lag of 5/8 χ")
    axes.set_xlabel("age of what is compared with, s")
    axes.set_ylim(bottom=0)
    return save_figure(figure, axes, out / "shedding-2.png")


def _rates(axes: Any) -> None:
    """The tuples per second, on an axis of their own."""
    ends = np.cumsum([0.0, *(seconds for _, seconds in PHASES)])
    other = axes.twinx()
    rates = [rate for rate, _ in PHASES]
    other.step(ends, [*rates, rates[-1]], where="post", color="0.7", linewidth=1)
    other.set_ylabel("tuples per second (grey)")
    other.set_ylim(0, 600)
    other.spines[["top"]].set_visible(False)


def _fractions(results: Results, experiment: str, title: str, path: Path) -> Path | None:
    found = [r for r in _of(results, experiment) if r.seed == 1]
    if not found:
        return None
    courses = found[0].fractions
    figure, axes = new_figure()
    lines = (
        [(RATE, 1, "r")] if experiment == "rates" else [(DIRECTION, 2, "r1"), (DIRECTION, 3, "r2")]
    )
    for scheme, column, name in lines:
        course = np.array(courses[scheme])
        axes.step(course[:, 0], course[:, column], where="post", label=name)
    _rates(axes)
    axes.set_ylim(-0.02, 1.05)
    axes.set_title(title)
    axes.set_xlabel("time, s")
    axes.set_ylabel("fraction")
    return save_figure(figure, axes, path, beside=_BESIDE_AXIS)


def _series(results: Results, experiment: str, title: str, path: Path) -> Path | None:
    found = _of(results, experiment)
    if not found:
        return None
    figure, axes = new_figure()
    for scheme in found[0].series:
        mean = np.mean([r.series[scheme] for r in found], axis=0)
        axes.plot(np.arange(len(mean)), mean, color=COLOURS[scheme], label=scheme)
    _rates(axes)
    axes.set_title(title)
    axes.set_xlabel("time, s")
    axes.set_ylabel("matches per second")
    axes.set_ylim(bottom=0)
    return save_figure(figure, axes, path, beside=_BESIDE_AXIS)


def _windows(results: Results, out: Path) -> Path | None:
    found = _of(results, "windows")
    if not found:
        return None
    figure, axes = new_figure()
    for scheme, style in ((RATE, "-o"), (DROP, "--s")):
        for number, window_s in enumerate(sorted({r.point.window_s for r in found})):
            some = [r for r in found if r.point.window_s == window_s]
            _line(axes, some, scheme, style, f"{scheme}, w = {window_s:g} s", f"C{number}")
    axes.set_title("Fig. 5: mean output, no lag")
    axes.set_xlabel("skew κ")
    axes.set_ylabel("matches per second")
    return save_figure(figure, axes, out / "shedding-5.png")


def _skew(results: Results, out: Path) -> Path | None:
    found = _of(results, "skew")
    if not found:
        return None
    figure, axes = new_figure()
    for scheme in (RATE, TIME, DIRECTION):
        _line(axes, found, scheme, "-o", scheme, COLOURS[scheme])
    axes.set_title("Fig. 8: mean output, lag of 5/8 χ, threshold 4")
    axes.set_xlabel("skew κ")
    axes.set_ylabel("matches per second")
    return save_figure(figure, axes, out / "shedding-8.png")


def _line(axes: Any, found: Results, scheme: str, style: str, label: str, colour: str) -> None:
    """The mean output of a scheme over the axis, with the range of its results."""
    at = sorted({r.point.at for r in found})
    outputs = [[r.output[scheme]["all"] for r in found if r.point.at == x] for x in at]
    axes.plot(at, [np.mean(o) for o in outputs], style, markersize=4, color=colour, label=label)
    lows, highs = [min(o) for o in outputs], [max(o) for o in outputs]
    axes.fill_between(at, lows, highs, color=colour, alpha=0.1)


def _basic(results: Results, experiments: tuple[str, ...], title: str, path: Path) -> Path | None:
    found = [r for e in experiments for r in _of(results, e)]
    if not found:
        return None
    names = {
        "basic": "equal comparisons",
        "basic measured": "equal time",
        "index BY_TIME": "by time",
        "index BY_IDENTIFIER": "by identifier",
    }
    figure, axes = new_figure()
    sizes = sorted({r.point.at for r in found}, key=lambda b: (not b, b))
    for experiment, style in zip(experiments, ("-o", "--s"), strict=True):
        some = _of(results, experiment)
        for number, exponent in enumerate(sorted({r.point.exponent for r in some})):
            spans = [
                [
                    next(iter(r.output.values()))["all"]
                    for r in some
                    if (r.point.at, r.point.exponent) == (size, exponent)
                ]
                for size in sizes
            ]
            at = [i for i, span in enumerate(spans) if span]
            means = [np.mean(spans[i]) for i in at]
            label = f"{names[experiment]}, κ = {exponent:g}"
            axes.plot(at, means, style, markersize=4, color=f"C{number}", label=label)
    axes.set_xticks(range(len(sizes)), [f"{b:g}" if b else "none" for b in sizes])
    axes.set_title(title)
    axes.set_xlabel("basic window, s")
    axes.set_ylabel("matches per second")
    axes.set_ylim(bottom=0)
    return save_figure(figure, axes, path)
