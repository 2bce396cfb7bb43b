"""The results of the Ls-Stream experiments as tables beside the paper's figures, and as plots."""

from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from skewless.lab.console import verdict_line
from skewless.lab.reproduce import paper
from skewless.lab.reproduce.experiments import WITH_MATRIX, Result
from skewless.lab.reproduce.output import new_figure, save_figure

Results = Sequence[Result]
NAMES = {"BiStream": "BiStream (Hash)", "Auto": "Auto (ours)"}
MS = 1e3
CALIBRATED = (
    "[p] is the paper's figure. BiStream at Zipf 0.2 is the calibration point. The paper calls "
    "FastJoin and Ls-Stream 'stable' over Zipf and prints no figures for them."
)


def pick(results: Results, experiment: str, **wanted: Any) -> list[Result]:
    """The results of an experiment whose task has these values."""
    return [
        r
        for r in results
        if r.task.experiment == experiment
        and all(getattr(r.task, name) == value for name, value in wanted.items())
    ]


def bottleneck(results: Results, experiment: str, **wanted: Any) -> float | None:
    """The mean bottleneck over the seeds, or None where it was not run."""
    found = [r.bottleneck for r in pick(results, experiment, **wanted) if r.bottleneck is not None]
    return fmean(found) if found else None


def figure_of(
    results: Results, experiment: str, value: Callable[[Any], float], **wanted: Any
) -> float | None:
    """A figure of the runs of an experiment, or None where there was none."""
    found = [value(r.run) for r in pick(results, experiment, **wanted) if r.run is not None]
    return fmean(found) if found else None


def targets(results: Results, *, quick: bool) -> list[dict[str, Any]]:
    """What was to be reached at Zipf 1.0; short runs prove nothing."""
    rates = {s: bottleneck(results, "zipf", system=s, at=1.0) for s in WITH_MATRIX}
    wanted = [
        ("LsStream", "BiStream", 2.0, "> 2"),
        ("LsStream", "FastJoin", 1.06, "≥ 1.06"),
        ("Auto", "LsStream", 1.0, "≥ 1"),
    ]
    verdicts: list[dict[str, Any]] = []
    for system, rival, bound, text in wanted:
        over, under = rates[system], rates[rival]
        ratio = over / under if over is not None and under else None
        reached = None
        if ratio is not None and not quick:
            reached = ratio > bound if text.startswith(">") else ratio >= bound
        verdicts.append(
            {
                "target": f"bottleneck at Zipf 1.0, {system} ÷ {rival} {text}",
                "bound": bound,
                "value": ratio,
                "reached": reached,
            }
        )
    return verdicts


def render(results: Results, verdicts: list[dict[str, Any]], *, quick: bool) -> RenderableType:
    """All tables; [p] marks the paper's own figure."""
    parts: list[RenderableType] = [
        _grid(
            results, "zipf", "Bottleneck over Zipf, 20 join instances (tuples/s)",
            lambda s, x: bottleneck(results, "zipf", system=s, at=x), "{:,.0f}",
            {k: f"{v:,.0f}" for k, v in paper.ZIPF_THROUGHPUT.items()},
        ),
        _note(CALIBRATED),
        _grid(
            results, "zipf latency", "Imbalance degree LI over Zipf, 5,000 tuples/s",
            lambda s, x: figure_of(
                results, "zipf latency", lambda r: r.settled("imbalance"), system=s, at=x
            ), "{:.2f}",
            {("BiStream", x): f"{v:.1f}" for x, v in paper.HASH_IMBALANCE.items()},
        ),
        _grid(
            results, "zipf latency", "Mean latency over Zipf, 5,000 tuples/s (ms)",
            lambda s, x: figure_of(
                results, "zipf latency", lambda r: r.mean_latency_s * MS, system=s, at=x
            ), "{:.3f}", {},
        ),
        _cuts(results, "zipf latency", "Largest latency over Zipf: Ls-Stream lower by",
              paper.ZIPF_LATENCY_CUT, largest=True),
        _grid(
            results, "nodes", "Ride-hailing, 28 join instances: bottleneck over nodes (tuples/s)",
            lambda s, x: bottleneck(results, "nodes", system=s, at=x), "{:,.0f}",
            {k: f"{v:,.0f}" for k, v in paper.NODES_THROUGHPUT.items()},
        ),
        _grid(
            results, "ride latency", "Ride-hailing, mean latency at 4,500 tuples/s (ms)",
            lambda s, x: figure_of(
                results, "ride latency", lambda r: r.mean_latency_s * MS, system=s
            ), "{:.3f}",
            {(s, 28): f"{v:.1f}" for s, v in paper.RIDE_LATENCY_MS.items()},
        ),
    ]  # fmt: skip
    if not quick:
        parts += [
            _grid(
                results, "instances", "Ride-hailing, 14 nodes: bottleneck over join instances",
                lambda s, x: bottleneck(results, "instances", system=s, at=x), "{:,.0f}", {},
            ),
            _gains(results),
        ]  # fmt: skip
    parts += [
        _cuts(results, "instances latency",
              "Ride-hailing, mean latency at 3,000 tuples/s: Ls-Stream lower by",
              paper.INSTANCES_LATENCY_CUT, largest=False),
        _thresholds(results),
    ]  # fmt: skip
    if not quick:
        parts.append(_readings(results))
    parts += [_verdict(verdict) for verdict in verdicts]
    return Group(*parts)


def _note(text: str) -> Text:
    return Text(text, style="grey62")


def _verdict(verdict: dict[str, Any]) -> Text:
    value = verdict["value"]
    return verdict_line(verdict, "–" if value is None else f"{value:.2f}")


def _table(title: str) -> Table:
    return Table(title=title, title_justify="left", title_style="bold")


def _grid(
    results: Results,
    experiment: str,
    title: str,
    value: Callable[[str, float], float | None],
    form: str,
    papers: dict[tuple[str, float], str],
) -> Table:
    table = _table(title)
    points = sorted({r.task.at for r in pick(results, experiment)})
    table.add_column("system")
    for at in points:
        table.add_column(f"{at:g}", justify="right")
    for system in WITH_MATRIX:
        if pick(results, experiment, system=system):
            cells = [_cell(value(system, x), form, papers.get((system, x))) for x in points]
            table.add_row(NAMES.get(system, system), *cells)
    return table


def _cell(own: float | None, form: str, papers: str | None) -> str:
    shown = "–" if own is None else form.format(own)
    return shown if papers is None else f"{shown}  \\[p] {papers}"


def _cuts(
    results: Results, experiment: str, title: str, papers: dict[str, float], *, largest: bool
) -> Table:
    """How much lower Ls-Stream's latency is than each rival's."""

    def latency(system: str) -> float | None:
        runs = [r.run for r in pick(results, experiment, system=system) if r.run is not None]
        means = [run.mean_latency_s for run in runs]
        return None if not means else max(means) if largest else fmean(means)

    table = _table(title)
    for column in ("than", "ours", "paper"):
        table.add_column(column, justify="left" if column == "than" else "right")
    own = latency("LsStream")
    for system, cut in papers.items():
        rival = latency(system)
        shown = "–" if own is None or not rival else f"{1 - own / rival:.1%}"
        table.add_row(NAMES.get(system, system), shown, f"{cut:.1%}")
    return table


def _gains(results: Results) -> Table:
    table = _table("Fewer than 48 join instances: bottleneck, Ls-Stream ÷ rival, at least")
    for column in ("rival", "ours", "paper"):
        table.add_column(column, justify="left" if column == "rival" else "right")
    points = sorted({r.task.at for r in pick(results, "instances") if r.task.at < 48})
    for system, gain in paper.INSTANCES_GAIN.items():
        ratios = []
        for x in points:
            own = bottleneck(results, "instances", system="LsStream", at=x)
            rival = bottleneck(results, "instances", system=system, at=x)
            if own is not None and rival:
                ratios.append(own / rival)
        shown = f"{min(ratios):.2f}" if ratios else "–"
        table.add_row(NAMES.get(system, system), shown, f"{gain:.2f}")
    return table


def _thresholds(results: Results) -> Table:
    table = _table("Ls-Stream over the threshold α: bottleneck (tuples/s), mean latency at 3,000/s")
    points = sorted({r.task.at for r in pick(results, "threshold latency")})
    table.add_column("Zipf")
    for at in points:
        table.add_column(f"{at:g}", justify="right")
    for zipf in sorted({r.task.zipf or 0.0 for r in pick(results, "threshold latency")}):
        cells = []
        for x in points:
            rate = bottleneck(results, "threshold", zipf=zipf, at=x)
            latency = figure_of(
                results, "threshold latency", lambda r: r.mean_latency_s * MS, zipf=zipf, at=x
            )
            shown = "–" if rate is None else f"{rate:,.0f}"
            cells.append(shown if latency is None else f"{shown}, {latency:.3f} ms")
        table.add_row(f"{zipf:g}", *cells)
    return table


def _readings(results: Results) -> Table:
    """The same experiment under other readings of what the paper leaves open."""
    table = _table("Zipf 1.0 read otherwise, one seed: bottleneck (tuples/s)")
    systems = [s for s in WITH_MATRIX if pick(results, "readings", system=s)]
    table.add_column("reading")
    for system in systems:
        table.add_column(NAMES.get(system, system), justify="right")
    for rival in ("BiStream", "FastJoin"):
        table.add_column(f"LsStream ÷ {rival}", justify="right")
    seed = min(r.task.seed for r in results)
    names = ["as described", *dict.fromkeys(r.task.reading for r in pick(results, "readings"))]
    for name in names:
        experiment = "zipf" if name == "as described" else "readings"
        rates = {
            s: bottleneck(results, experiment, system=s, at=1.0, seed=seed, reading=name)
            for s in systems
        }
        cells = ["–" if rate is None else f"{rate:,.0f}" for rate in rates.values()]
        own = rates.get("LsStream")
        for rival in ("BiStream", "FastJoin"):
            under = rates.get(rival)
            cells.append(f"{own / under:.2f}" if own is not None and under else "–")
        table.add_row(name, *cells)
    return table


PLOTS = (
    ("zipf", "bottleneck", "Zipf coefficient", "bottleneck, tuples/s"),
    ("zipf latency", "imbalance", "Zipf coefficient", "imbalance degree LI"),
    ("zipf latency", "latency", "Zipf coefficient", "mean latency, ms"),
    ("nodes", "bottleneck", "nodes", "bottleneck, tuples/s"),
    ("instances", "bottleneck", "join instances", "bottleneck, tuples/s"),
    ("threshold", "bottleneck", "threshold α", "bottleneck, tuples/s"),
)


def draw(results: Results, out: Path) -> list[Path]:
    """One PNG per figure of the paper that has at least one result."""
    from matplotlib.ticker import StrMethodFormatter

    written = []
    for experiment, what, xlabel, ylabel in PLOTS:
        found = pick(results, experiment)
        if not found:
            continue
        figure, axes = new_figure()
        by_zipf = experiment == "threshold"
        there = {r.task.zipf if by_zipf else r.task.system for r in found}
        # A system has the same colour in every figure.
        lines = sorted(there, key=str) if by_zipf else [s for s in WITH_MATRIX if s in there]
        for line in lines:
            chosen = {"zipf": line} if by_zipf else {"system": line}
            points = sorted({r.task.at for r in pick(results, experiment, **chosen)})
            values = [_value(results, experiment, what, at=x, **chosen) for x in points]
            label = f"Zipf {line:g}" if by_zipf else NAMES.get(str(line), str(line))
            axes.plot(points, values, marker="o", markersize=4, label=label)
        axes.set_xticks(sorted({r.task.at for r in found}))
        axes.set_xlabel(xlabel)
        axes.set_ylabel(ylabel)
        axes.set_ylim(bottom=0)
        if what == "bottleneck":
            axes.yaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
        written.append(
            save_figure(figure, axes, out / f"{experiment.replace(' ', '-')}-{what}.png")
        )
    return written


def _value(results: Results, experiment: str, what: str, **wanted: Any) -> float:
    value: float | None
    if what == "bottleneck":
        value = bottleneck(results, experiment, **wanted)
    elif what == "imbalance":
        value = figure_of(results, experiment, lambda r: r.settled("imbalance"), **wanted)
    else:
        value = figure_of(results, experiment, lambda r: r.mean_latency_s * MS, **wanted)
    return float("nan") if value is None else value
