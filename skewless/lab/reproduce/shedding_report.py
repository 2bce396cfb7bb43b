"""The results of the load shedding experiments as tables beside the paper's gains."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from skewless.lab.console import verdict_line
from skewless.lab.reproduce import shedding_paper as paper
from skewless.lab.reproduce.shedding_experiments import Result
from skewless.lab.reproduce.shedding_figures import draw
from skewless.lab.reproduce.windowed.simulation import Scheme

__all__ = ["draw", "render", "targets"]

Results = Sequence[Result]
Floats = npt.NDArray[np.float64]
DROP, RATE, TIME, DIRECTION = (scheme.value for scheme in Scheme)
STEPS = ((RATE, DROP), (TIME, RATE), (DIRECTION, TIME))
RATIOS = ("rate ÷ drop", "time ÷ rate", "direction ÷ time")
PARTS = ("500/s", "300/s", "raised", "all")
_HOW_TO_READ = (
    "Output is matches per second, the mean over the seeds. A gain is the ratio of two outputs of "
    "the same stream: mean and range over the seeds, or over repeated runs where it is measured. "
    "[p] is the paper's. 'Raised' is the time with 500 and then 300 tuples per second."
)


def pick(results: Results, experiment: str, **wanted: Any) -> list[Result]:
    """The results of an experiment whose point has these values."""
    return [
        r
        for r in results
        if r.point.experiment == experiment
        and all(getattr(r.point, name) == value for name, value in wanted.items())
    ]


def values(results: Results, experiment: str, name: str = "at") -> list[float]:
    """What a parameter of an experiment was, in order."""
    return sorted({getattr(r.point, name) for r in pick(results, experiment)})


def outputs(found: Results, scheme: str, part: str = "all") -> Floats:
    return np.array([r.output[scheme][part] for r in found])


def gains(found: Results, scheme: str, over: str, part: str = "all") -> Floats:
    """The ratio of two schemes' outputs, result by result."""
    under = outputs(found, over, part)
    return outputs(found, scheme, part) / np.where(under > 0, under, np.nan)


def targets(results: Results, *, quick: bool) -> list[dict[str, Any]]:
    """What was to be reached under equal comparisons; short runs prove nothing."""
    lag, steady = pick(results, "lag"), pick(results, "steady", at=0.8)
    wanted = [
        ("no lag, 500/s: rate adaptation ÷ random drop", paper.RATE_GAIN[500],
         gains(pick(results, "rates"), RATE, DROP, "500/s")),
        ("lag, rates raised: time correlation ÷ rate adaptation", paper.TIME_GAIN,
         gains(lag, TIME, RATE, "raised")),
        ("lag, rates raised: join direction ÷ without", paper.DIRECTION_GAIN,
         gains(lag, DIRECTION, TIME, "raised")),
        ("lag, 500/s all the time: time correlation ÷ rate adaptation", paper.TIME_GAIN,
         gains(steady, TIME, RATE)),
        ("lag, 500/s all the time: join direction ÷ without", paper.DIRECTION_GAIN,
         gains(steady, DIRECTION, TIME)),
    ]  # fmt: skip
    verdicts = []
    for name, bound, found in wanted:
        value = float(found.mean())
        verdicts.append(
            {
                "target": f"{name} ≥ {bound:g}",
                "bound": bound,
                "value": value,
                "range": [float(found.min()), float(found.max())],
                "reached": None if quick else value >= bound,
            }
        )
    return verdicts


def render(results: Results, verdicts: list[dict[str, Any]], comparison_s: float) -> RenderableType:
    """All tables; [p] marks the paper's own figure."""
    parts: list[RenderableType] = [
        Text(_HOW_TO_READ),
        Text(
            f"A comparison takes {1e9 * comparison_s:.1f} ns here; measured runs get that budget."
        ),
        _probabilities(results),
    ]
    for title, experiment, known in (
        ("Fig. 3 and 4: rates change, no lag, a window on one stream", "rates",
         {(RATE, "500/s"): paper.RATE_GAIN[500], (RATE, "300/s"): paper.RATE_GAIN[300]}),
        ("Fig. 6 and 7: rates change, lag of 5/8 χ, windows on both", "lag",
         {(TIME, "raised"): paper.TIME_GAIN, (DIRECTION, "raised"): paper.DIRECTION_GAIN}),
    ):  # fmt: skip
        parts.append(_phases(results, experiment, title, known))
        parts.append(_phases(results, f"{experiment} measured", f"{title}, measured", known))
    parts += [
        _phases(results, "equality", "The same with single values, 1 to 5,000, and equality", {}),
        _steady(results),
        _windows(results),
        _skew(results),
        _basic(results, "Fig. 9, left: windows of 20 s, no index", ("basic", "basic measured")),
        _basic(results, "Fig. 9, right: indexed", ("index BY_TIME", "index BY_IDENTIFIER")),
    ]  # fmt: skip
    if pick(results, "budget lag"):
        parts.append(_budgets(results))
    if pick(results, "cashtags"):
        parts.append(_cashtags(results))
    parts += [
        verdict_line(v, f"{v['value']:.2f} ({v['range'][0]:.2f}–{v['range'][1]:.2f})")
        for v in verdicts
    ]
    return Group(*parts)


def _table(title: str, *headings: str) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold")
    for number, heading in enumerate(headings):
        table.add_column(heading, justify="right" if number else "left")
    return table


def _span(found: Floats) -> str:
    if not len(found) or np.isnan(found).all():
        return "–"
    if len(found) == 1:
        return f"{found[0]:.2f}"
    return f"{np.nanmean(found):.2f} ({np.nanmin(found):.2f}–{np.nanmax(found):.2f})"


def _probabilities(results: Results) -> Table:
    table = _table(
        "Fig. 2: matches per comparison, by the age of what is compared with, lag of 5/8 χ",
        "κ and window", "mean", "highest", "at age", "highest ÷ mean",
    )  # fmt: skip
    for exponent in values(results, "probability"):
        found = pick(results, "probability", at=exponent)
        both = np.mean([r.learned for r in found], axis=0)
        # The oldest basic window is never full.
        for name, learned in zip(("W1", "W2"), both[:, :-1], strict=True):
            table.add_row(
                f"{exponent:g}, {name}",
                f"{learned.mean():.5f}",
                f"{learned.max():.5f}",
                f"{learned.argmax()} s",
                f"{learned.max() / learned.mean():.1f}",
            )
    return table


def _phases(
    results: Results, experiment: str, title: str, known: dict[tuple[str, str], float]
) -> Table:
    table = _table(title, "output, gain over the one above", *PARTS)
    found = pick(results, experiment)
    for step, scheme in enumerate(s for s in (DROP, RATE, TIME, DIRECTION) if s in _ran(found)):
        cells = []
        for part in PARTS:
            shown = f"{outputs(found, scheme, part).mean():,.0f}"
            if step:
                shown += "\n" + _span(gains(found, *_step(scheme), part))
            if (scheme, part) in known:
                shown += f"\n[p] {known[scheme, part]:g}"
            cells.append(Text(shown))
        table.add_row(scheme, *cells)
    return table


def _ran(found: Results) -> set[str]:
    return set(found[0].output) if found else set()


def _step(scheme: str) -> tuple[str, str]:
    return next(step for step in STEPS if step[0] == scheme)


def _steady(results: Results) -> Table:
    table = _table(
        "Lag of 5/8 χ, 500 tuples per second all the time",
        "κ", *(scheme.value for scheme in Scheme), *RATIOS,
    )  # fmt: skip
    for exponent in values(results, "steady"):
        found = pick(results, "steady", at=exponent)
        shown = [f"{outputs(found, scheme.value).mean():,.0f}" for scheme in Scheme]
        shown += [_span(gains(found, *step)) for step in STEPS]
        table.add_row(f"{exponent:g}", *shown)
    return table


def _windows(results: Results) -> Table:
    """Fig. 5."""
    sizes = values(results, "windows", "window_s")
    table = _table(
        "Fig. 5: no lag, mean over the run: rate adaptation ÷ random drop, by window and κ",
        "κ", *(f"w = {w:g} s" for w in sizes),
    )  # fmt: skip
    for exponent in values(results, "windows"):
        cells = []
        for window_s in sizes:
            found = pick(results, "windows", at=exponent, window_s=window_s)
            low, high = outputs(found, DROP).mean(), outputs(found, RATE).mean()
            cells.append(f"{high:,.0f} ÷ {low:,.0f}\n{_span(gains(found, RATE, DROP))}")
        table.add_row(f"{exponent:g}", *cells)
    return table


def _skew(results: Results) -> Table:
    """Fig. 8."""
    table = _table(
        "Fig. 8: lag of 5/8 χ, threshold 4, mean over the run", "κ", RATE, TIME, DIRECTION,
        *RATIOS[1:],
    )  # fmt: skip
    for exponent in values(results, "skew"):
        found = pick(results, "skew", at=exponent)
        shown = [f"{outputs(found, scheme).mean():,.0f}" for scheme in (RATE, TIME, DIRECTION)]
        shown += [_span(gains(found, *step)) for step in STEPS[1:]]
        table.add_row(f"{exponent:g}", *shown)
    return table


def _basic(results: Results, title: str, experiments: tuple[str, ...]) -> Table:
    """Fig. 9."""
    columns = [(e, k) for e in experiments for k in values(results, e, "exponent")]
    table = _table(
        f"{title}, 500 tuples per second: output",
        "basic window",
        *(f"{experiment}, κ = {exponent:g}" for experiment, exponent in columns),
    )
    sizes = sorted({at for e in experiments for at in values(results, e)}, key=lambda b: (not b, b))
    for basic_s in sizes:
        cells = []
        for experiment, exponent in columns:
            found = pick(results, experiment, at=basic_s, exponent=exponent)
            cells.append(_output_span(outputs(found, TIME if basic_s else RATE)) if found else "–")
        table.add_row(f"{basic_s:g} s" if basic_s else "none", *cells)
    return table


def _output_span(found: Floats) -> str:
    if len(found) == 1:
        return f"{found[0]:,.0f}"
    return f"{found.mean():,.0f} ({found.min():,.0f}–{found.max():,.0f})"


def _budgets(results: Results) -> Table:
    """The same experiments under other readings of what the paper leaves open."""
    table = _table(
        "Other budgets: comparisons per second, and κ", "budget, κ",
        *(f"{RATIOS[0]}, {part}" for part in PARTS[:2]),
        *(f"{ratio}, raised" for ratio in RATIOS[1:]),
    )  # fmt: skip
    for budget in values(results, "budget lag"):
        for exponent in values(results, "budget lag", "exponent"):
            rates = pick(results, "budget rates", at=budget, exponent=exponent)
            lag = pick(results, "budget lag", at=budget, exponent=exponent)
            table.add_row(
                f"{budget:,.0f}, {exponent:g}",
                *(_span(gains(rates, RATE, DROP, part)) for part in PARTS[:2]),
                *(_span(gains(lag, *step, "raised")) for step in STEPS[1:]),
            )
    return table


def _cashtags(results: Results) -> Table:
    table = _table(
        "Real posts, two common symbols, a tenth of the comparisons; a day is a second",
        "second stream late by; statistics kept per period",
        *(scheme.value for scheme in Scheme), *RATIOS,
    )  # fmt: skip
    for lag_s in values(results, "cashtags"):
        for keep in values(results, "cashtags", "keep"):
            found = pick(results, "cashtags", at=lag_s, keep=keep)
            shown = [f"{outputs(found, scheme.value).mean():,.1f}" for scheme in Scheme]
            shown += [_span(gains(found, *step)) for step in STEPS]
            table.add_row(f"{lag_s:g} days, {keep:g}", *shown)
    return table
