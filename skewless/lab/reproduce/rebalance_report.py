"""The results of the rebalancing experiments as tables beside the paper's figures, and as plots."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from skewless.lab.console import verdict_line
from skewless.lab.reproduce.output import new_figure, save_figure
from skewless.lab.reproduce.rebalance_experiments import SYSTEMS, Result

Results = Sequence[Result]

# What the paper prints (§V and appendix).
PLAN_MS = {0: 6_000.0, 8: 600.0}  # by degree; 0 is without compact statistics
PLAN_AT_002_MS = 1_000.0
LARGEST_LOAD_ERROR = 0.01
MINTABLE_TO_MIXED = 3.0
MINMIG_TABLE = 9_350  # of 10,000 keys, after many rounds

METRICS: dict[str, tuple[str, Callable[[Result], float | None], str]] = {
    "skewness": ("straggler ÷ mean after planning", lambda r: r.skewness, "{:.3f}"),
    "milliseconds": ("time to plan, ms", lambda r: r.milliseconds, "{:,.1f}"),
    "migration": ("state moved per interval", lambda r: r.migration, "{:.1%}"),
    "table": ("entries of the table", lambda r: r.table_size, "{:,.0f}"),
}
TITLES = {
    "instances": "instances N_D",
    "threshold": "threshold θmax",
    "window": "window w, intervals",
    "keys": "keys K",
    "degree": "degree of discretisation R (0: plain keys)",
    "rate": "fluctuation f",
    "beta": "β",
    "table": "rounds of MinMig",
}
SHOWN = {
    "instances": ("skewness", "milliseconds", "migration", "table"),
    "threshold": ("skewness", "milliseconds", "migration"),
    "window": ("migration",),
    "keys": ("skewness", "milliseconds", "migration"),
    "degree": ("skewness", "milliseconds"),
    "rate": ("skewness", "milliseconds", "migration"),
    "beta": ("migration", "table"),
}


def pick(results: Results, experiment: str, **wanted: Any) -> list[Result]:
    """The results of an experiment whose task has these values."""
    return [
        r
        for r in results
        if r.task.experiment == experiment
        and all(getattr(r.task, name) == value for name, value in wanted.items())
    ]


def value(results: Results, metric: str, experiment: str, **wanted: Any) -> float | None:
    """A metric of one point, or None where it was not run."""
    found = pick(results, experiment, **wanted)
    return METRICS[metric][1](found[0]) if found else None


def ratio(results: Results, experiment: str, at: float) -> float | None:
    """What MinTable moves ÷ what Mixed moves."""
    over = value(results, "migration", experiment, system="MinTable", at=at)
    under = value(results, "migration", experiment, system="Mixed", at=at)
    return over / under if over is not None and under else None


def targets(results: Results, *, quick: bool) -> list[dict[str, Any]]:
    """What was to be reached; small runs prove nothing."""
    errors = [r.load_error for r in pick(results, "degree") if r.load_error is not None]
    tables = pick(results, "table")
    last = max(tables, key=lambda r: r.task.at) if tables else None
    joined = pick(results, "scale-out", system="Mixed")
    tight = value(results, "milliseconds", "threshold", system="Mixed", at=0.02)
    wanted: list[tuple[str, float | None, float, bool]] = [
        ("Mixed plans at θmax = 0.02 in ms, ≤ 1,000", tight, PLAN_AT_002_MS, False),
        (
            "compact R = 8 at 1,000,000 keys in ms, ≤ 600",
            value(results, "milliseconds", "degree", at=8), PLAN_MS[8], False,
        ),
        (
            "largest load error of compact statistics, < 0.01",
            max(errors) if errors else None, LARGEST_LOAD_ERROR, False,
        ),
        (
            "state moved, MinTable ÷ Mixed at w = 5, ≥ 3",
            ratio(results, "window", 5), MINTABLE_TO_MIXED, True,
        ),
        (
            "MinMig's table after many rounds ÷ (N_D − 1)/N_D · K, ≥ 0.95",
            None if last is None
            else last.last_table / (last.task.keys * (1 - 1 / last.task.instances)),
            0.95, True,
        ),
        (
            "straggler ÷ mean one round after an instance joined, ≤ 1.08",
            joined[0].last_skewness if joined else None, 1.08 + 1e-9, False,
        ),
    ]  # fmt: skip
    verdicts: list[dict[str, Any]] = []
    for text, found, bound, at_least in wanted:
        reached = None
        if found is not None and not quick:
            reached = found >= bound if at_least else found <= bound
        verdicts.append({"target": text, "bound": bound, "value": found, "reached": reached})
    return verdicts


def render(results: Results, verdicts: list[dict[str, Any]]) -> RenderableType:
    """All tables; [p] marks the paper's own figure."""
    parts: list[RenderableType] = []
    for experiment, metrics in SHOWN.items():
        parts += [_grid(results, experiment, metric) for metric in metrics]
    parts += [_ratios(results), _tables(results), _scale_out(results)]
    parts += [_verdict(verdict) for verdict in verdicts]
    return Group(*parts)


def _table(title: str) -> Table:
    return Table(title=title, title_justify="left", title_style="bold")


def _points(results: Results, experiment: str) -> list[float]:
    return sorted({r.task.at for r in pick(results, experiment)})


def _grid(results: Results, experiment: str, metric: str) -> Table:
    name, _, form = METRICS[metric]
    table = _table(f"{name}, over {TITLES[experiment]}")
    points = _points(results, experiment)
    table.add_column("system")
    for at in points:
        table.add_column(f"{at:,.10g}", justify="right")
    papers = PLAN_MS if (experiment, metric) == ("degree", "milliseconds") else {}
    for system in SYSTEMS:
        if pick(results, experiment, system=system):
            cells = []
            for at in points:
                own = value(results, metric, experiment, system=system, at=at)
                shown = "–" if own is None else form.format(own)
                beside = papers.get(int(at))
                cells.append(shown if beside is None else f"{shown}  \\[p] {beside:,.0f}")
            table.add_row(system, *cells)
    return table


def _ratios(results: Results) -> Table:
    table = _table("State moved, MinTable ÷ Mixed")
    for column in ("over", "at", "ours", "paper"):
        table.add_column(column, justify="left" if column == "over" else "right")
    for experiment in ("instances", "threshold", "window"):
        for at in _points(results, experiment):
            found = ratio(results, experiment, at)
            shown = "–" if found is None else f"{found:.2f}"
            table.add_row(TITLES[experiment], f"{at:g}", shown, f"about {MINTABLE_TO_MIXED:g}")
    return table


def _tables(results: Results) -> Table:
    table = _table(f"MinMig's table over rounds \\[p] {MINMIG_TABLE:,} of 10,000 keys in the end")
    for column in ("rounds", "entries", "(N_D − 1)/N_D · K"):
        table.add_column(column, justify="right")
    for r in sorted(pick(results, "table"), key=lambda r: r.task.at):
        limit = r.task.keys * (1 - 1 / r.task.instances)
        table.add_row(f"{r.task.at:,.10g}", f"{r.last_table:,}", f"{limit:,.0f}")
    return table


def _scale_out(results: Results) -> Table:
    table = _table("An instance joins: one round later")
    for column in ("system", "straggler ÷ mean", "paper"):
        table.add_column(column, justify="left" if column == "system" else "right")
    for r in pick(results, "scale-out"):
        paper = "one interval" if r.task.system == "Mixed" else "5 min to plan"
        table.add_row(r.task.system, f"{r.last_skewness:.3f}", paper)
    return table


def _verdict(verdict: dict[str, Any]) -> Text:
    value = verdict["value"]
    return verdict_line(verdict, "–" if value is None else f"{value:,.4g}")


def draw(results: Results, out: Path) -> list[Path]:
    """One PNG per experiment and metric that has at least one result."""

    written = []
    for experiment, metrics in SHOWN.items():
        points = _points(results, experiment)
        for metric in metrics if len(points) > 1 else ():
            figure, axes = new_figure()
            for system in SYSTEMS:
                if pick(results, experiment, system=system):
                    found = [
                        value(results, metric, experiment, system=system, at=at) for at in points
                    ]
                    line = [float("nan") if v is None else v for v in found]
                    # A system without the metric takes its colour all the same, and no label.
                    label = "_" if found.count(None) == len(found) else system
                    axes.plot(points, line, marker="o", markersize=4, label=label)
            if experiment in ("keys", "degree"):
                axes.set_xscale("symlog" if experiment == "degree" else "log")
            if metric == "milliseconds":
                axes.set_yscale("log")
            axes.set_xlabel(TITLES[experiment])
            axes.set_ylabel(METRICS[metric][0])
            written.append(save_figure(figure, axes, out / f"{experiment}-{metric}.png"))
    return written
