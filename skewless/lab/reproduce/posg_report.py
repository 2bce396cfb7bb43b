"""The results of the POSG experiments as tables beside the paper's figures, and as plots."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from skewless.lab.reproduce import posg_paper as paper
from skewless.lab.reproduce.output import new_figure, save_figure
from skewless.lab.reproduce.posg_experiments import POLICIES, SERIES_WINDOW, Result

Results = Sequence[Result]
NAMES = {
    "RoundRobin": "round robin",
    "Posg": "POSG",
    "LeastOutstanding": "least outstanding",
    "LeastWork": "LeastWork",
    "FullKnowledge": "full knowledge",
}
_HOW_TO_READ = (
    "Round robin: mean completion time. Others: speed-up over it, mean and range over the seeds; "
    "[p] is the paper's POSG. '÷ full' is LeastWork's time beside full knowledge, 'over least' its "
    "gain over least outstanding."
)
# Experiment, title, axis, the paper's mean speed-up of POSG by the value on the axis.
FIGURES: tuple[tuple[str, str, str, dict[float, float]], ...] = (
    ("skew", "Fig. 4: skew", "Zipf exponent", paper.SKEW_SPEED_UP),
    ("load", "Fig. 5: load", "over-provisioning", paper.LOAD_SPEED_UP),
    ("longest", "Fig. 6: longest execution time", "longest, ms", {}),
    ("values", "Fig. 7: number of execution times", "execution times", {}),
    ("instances", "Fig. 8: instances", "instances", {1: paper.ONE_INSTANCE}),
    ("epsilon", "Fig. 9: precision of the sketch", "ε", {}),
    ("tweets", "Fig. 12: tweets (stand-in)", "instances", {10: paper.TWEETS_TEN}),
    ("tail", "Beyond the paper: heavy-tailed costs", "over-provisioning", {}),
    ("alike", "Beyond the paper: equal costs", "over-provisioning", {}),
    ("uniform", "Beyond the paper: no skew, geometric costs", "over-provisioning", {}),
)


def at_point(results: Results, experiment: str, at: float) -> list[Result]:
    return [r for r in results if r.point.experiment == experiment and r.point.at == at]


def axis(results: Results, experiment: str) -> list[float]:
    return sorted({r.point.at for r in results if r.point.experiment == experiment})


def times(found: Results, policy: str) -> np.ndarray[Any, np.dtype[np.float64]]:
    return np.array([r.mean_ms[policy] for r in found])


def speed_up(found: Results, policy: str, over: str = "RoundRobin") -> float:
    """The mean over the seeds of S_L: the other's mean completion time beside this one's."""
    return float((times(found, over) / times(found, policy)).mean())


def gain(found: Results, policy: str, over: str) -> float:
    """The ratio of the means over the seeds, where single seeds would only add noise."""
    return float(times(found, over).mean() / times(found, policy).mean())


def targets(results: Results, *, quick: bool) -> list[dict[str, Any]]:
    """What was to be reached; short runs prove nothing."""
    usual = at_point(results, "skew", 1.0)
    swept = [at_point(results, name, at) for name, *_ in FIGURES for at in axis(results, name)]
    tail = [at_point(results, "tail", at) for at in axis(results, "tail")]

    def least(groups: list[list[Result]], value: Callable[[list[Result]], float]) -> float:
        return min(value(group) for group in groups)

    wanted: list[tuple[str, float, float, bool]] = [
        ("Zipf 1.0 at 100 %: LeastWork's speed-up over round robin", 2.2,
         speed_up(usual, "LeastWork"), True),
        ("Zipf 1.0 at 100 %: LeastWork's time beside full knowledge", 1.05,
         gain(usual, "FullKnowledge", "LeastWork"), False),
        ("any skew and load: LeastWork's speed-up over round robin, least point", 0.99,
         least(swept, lambda g: speed_up(g, "LeastWork")), True),
        ("any skew and load: LeastWork's gain over least outstanding, least point", 1.0,
         least(swept, lambda g: gain(g, "LeastWork", "LeastOutstanding")), True),
        ("heavy-tailed costs: LeastWork's gain over least outstanding, least point", 1.1,
         least(tail, lambda g: gain(g, "LeastWork", "LeastOutstanding")), True),
    ]  # fmt: skip
    verdicts = []
    for name, bound, value, at_least in wanted:
        reached = None
        if not quick:
            # A single instance leaves nothing to choose: equal, but for rounding.
            reached = value >= bound - 1e-9 if at_least else value <= bound
        sign = "≥" if at_least else "≤"
        verdicts.append(
            {"target": f"{name} {sign} {bound:g}", "bound": bound, "value": value,
             "reached": reached}
        )  # fmt: skip
    return verdicts


def render(results: Results, verdicts: list[dict[str, Any]], *, quick: bool) -> RenderableType:
    """All tables; [p] marks the paper's own figure."""
    parts: list[RenderableType] = [Text(_HOW_TO_READ)]
    for experiment, title, label, known in FIGURES:
        parts.append(_grid(results, experiment, title, label, known))
    for name, value in (
        ("Fig. 6", paper.LONGEST_SPEED_UP),
        ("Fig. 7", paper.VALUES_SPEED_UP),
        ("Fig. 12", paper.TWEETS_SPEED_UP),
    ):
        parts.append(Text(f"{name}: POSG's mean speed-up over the axis is {value} in the paper"))
    parts.append(_late(results))
    parts.append(_machines(results))
    judged = Table(title="Targets" + (" (quick: not judged)" if quick else ""))
    for heading in ("target", "measured", ""):
        judged.add_column(heading)
    for verdict in verdicts:
        said = {None: "not judged", True: "reached", False: "MISSED"}[verdict["reached"]]
        judged.add_row(verdict["target"], f"{verdict['value']:.3f}", said)
    parts.append(judged)
    return Group(*parts)


def _grid(
    results: Results, experiment: str, title: str, label: str, known: dict[float, float]
) -> Table:
    table = Table(title=title)
    headings = [label, "round robin", *(NAMES[p] for p in POLICIES[1:]), "÷ full", "over least"]
    for heading in headings:
        table.add_column(heading, justify="right")
    for at in axis(results, experiment):
        found = at_point(results, experiment, at)
        cells = [f"{at:g}", f"{times(found, 'RoundRobin').mean():,.1f} ms"]
        for policy in POLICIES[1:]:
            beside = f"\n[p] {known[at]:.2f}" if policy == "Posg" and at in known else ""
            ratios = times(found, "RoundRobin") / times(found, policy)
            cells.append(f"{ratios.mean():.2f}\n{ratios.min():.2f}–{ratios.max():.2f}{beside}")
        cells.append(f"{gain(found, 'FullKnowledge', 'LeastWork'):.3f}")
        cells.append(f"{gain(found, 'LeastWork', 'LeastOutstanding'):.3f}")
        table.add_row(*(Text(cell) for cell in cells))
    return table


def _late(results: Results) -> Table:
    """What the mean does not tell: with heavy tails, who pays for it."""
    table = Table(title="Heavy-tailed costs: completion times, ms, 99th percentile / longest")
    for heading in ("over-provisioning", *NAMES.values()):
        table.add_column(heading, justify="right")
    for at in axis(results, "tail"):
        found = at_point(results, "tail", at)
        cells = []
        for policy in NAMES:
            p99 = np.mean([r.p99_ms[policy] for r in found])
            longest = np.mean([r.longest_ms[policy] for r in found])
            cells.append(f"{p99:,.0f} / {longest:,.0f}")
        table.add_row(f"{at:g}", *cells)
    return table


def _machines(results: Results) -> Table:
    """What POSG's state machines did."""
    table = Table(title="POSG's state machines")
    for heading in ("", "ours", "paper: simulated", "paper: Storm"):
        table.add_column(heading, justify="right")
    series = [r for r in results if r.point.experiment == "series"]
    for name, value, printed in (
        ("Fig. 10: RUN from tuple", _span([r.run_from for r in series]), paper.RUN_FROM),
        ("new matrices after the change, at tuple", _span([r.recovered_at for r in series]),
         paper.RECOVERED_AT),
    ):  # fmt: skip
        table.add_row(name, value, *(f"{p:,}" for p in printed))
    tweets = [r.messages for r in results if r.point.experiment == "tweets" and r.point.at == 10]
    table.add_row("Fig. 12: messages, 10 instances", _span(tweets), "", f"{paper.TWEETS_MESSAGES}")
    return table


def _span(values: Sequence[int | None]) -> str:
    found = [v for v in values if v is not None]
    if not found:
        return "never"
    never = f", {len(values) - len(found)} never" if len(found) < len(values) else ""
    return f"{np.median(found):,.0f} ({min(found):,}–{max(found):,}{never})"


def draw(results: Results, out: Path) -> list[Path]:
    """One PNG per figure of the paper."""

    written = []
    for experiment, title, label, known in FIGURES:
        at = axis(results, experiment)
        if not at:
            continue
        figure, axes = new_figure()
        for policy in POLICIES[1:]:
            ratios = [
                times(found, "RoundRobin") / times(found, policy)
                for found in (at_point(results, experiment, x) for x in at)
            ]
            axes.plot(at, [r.mean() for r in ratios], marker="o", markersize=4, label=NAMES[policy])
            axes.fill_between(at, [r.min() for r in ratios], [r.max() for r in ratios], alpha=0.1)
        if known:
            axes.plot(list(known), list(known.values()), "k*", label="POSG, paper")
        axes.axhline(1.0, color="0.5", linewidth=0.8)
        if experiment in ("epsilon", "values", "longest"):
            axes.set_xscale("log")
        axes.set_title(title)
        axes.set_xlabel(label)
        axes.set_ylabel("speed-up over round robin")
        written.append(save_figure(figure, axes, out / f"posg-{experiment}.png"))
    series = [r for r in results if r.point.experiment == "series"]
    if series:
        figure, axes = new_figure()
        for policy in POLICIES:
            means = np.mean([r.series[policy] for r in series], axis=0)
            at = [(i + 1) * SERIES_WINDOW for i in range(len(means))]
            axes.plot(at, means, label=NAMES[policy])
        axes.set_yscale("log")
        axes.set_title("Fig. 10: speeds of the instances change in the middle")
        axes.set_xlabel("tuple")
        axes.set_ylabel(f"mean completion of {SERIES_WINDOW:,} tuples, ms")
        written.append(save_figure(figure, axes, out / "posg-series.png"))
    return written
