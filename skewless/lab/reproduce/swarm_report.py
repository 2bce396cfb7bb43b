"""The results of the SWARM experiments as tables, and the targets."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from skewless.lab.console import verdict_line
from skewless.lab.reproduce import swarm_paper as paper
from skewless.lab.reproduce.swarm_experiments import POLICIES, Outcome, Result
from skewless.lab.reproduce.swarm_overheads import Overheads

Results = Sequence[Result]
BASE = "history grid"
_HOW_TO_READ = (
    "Means over the seeds. Work: units of work, subscriptions × points per second, in 10⁹. "
    "Execution: µs that an executor works on a point. Latency: execution and waiting in µs, when "
    "all get 90 % of the rate that the history grid sustains."
)
# Experiment, title, heading of the axis.
TABLES = (
    ("queries", "Units of work over the number of subscriptions (Fig. 11)", "millions"),
    ("hotspot", "Hotspots (Fig. 12 to 16), whole timeline", "hotspot"),
    ("exponent", "Beyond the paper: how a probe grows with the index, n^θ", "θ"),
    ("swing", "Beyond the paper: how much cities change", "swing"),
    ("cells", "Beyond the paper: cells of the map", "side"),
    ("file", "Real points", "file"),
)


def of(results: Results, experiment: str) -> dict[str, list[Result]]:
    """The results of an experiment by the name of their point, in order."""
    found: dict[str, list[Result]] = {}
    for result in results:
        if result.point.experiment == experiment:
            found.setdefault(result.point.name, []).append(result)
    return found


def values(found: Results, policy: str, value: Callable[[Outcome], float | None]) -> list[float]:
    """A value of a policy for every seed; none where it ran out of memory."""
    seen = [value(result.outcomes[policy]) for result in found]
    return [] if None in seen else [float(v) for v in seen if v is not None]


def work(outcome: Outcome) -> float | None:
    return outcome.work


def execution(outcome: Outcome) -> float | None:
    return outcome.execution_us


def latency(outcome: Outcome) -> float | None:
    return outcome.latency_us


def gain(
    results: Results, experiment: str, policy: str, value: Callable[[Outcome], float | None]
) -> float:
    """A policy beside the history grid: the mean over points of the ratio of the seeds' means."""
    ratios = [
        np.mean(values(found, policy, value)) / np.mean(values(found, BASE, value))
        for found in of(results, experiment).values()
        if values(found, policy, value) and values(found, BASE, value)
    ]
    return float(np.mean(ratios)) if ratios else float("nan")


def targets(results: Results, *, quick: bool) -> list[dict[str, Any]]:
    """What was to be reached; short runs prove nothing."""
    wanted = [
        ("units of work, Swarm ÷ history grid, all numbers of subscriptions", 3.0,
         gain(results, "queries", "Swarm", work), True),
        ("the same, all hotspots", 3.0, gain(results, "hotspot", "Swarm", work), True),
        ("the same for Auto, all numbers of subscriptions", 3.0,
         gain(results, "queries", "Auto", work), True),
        ("latency at the same rate, Swarm ÷ history grid, all numbers of subscriptions", 0.25,
         gain(results, "queries", "Swarm", latency), False),
        ("the same, all hotspots", 0.25, gain(results, "hotspot", "Swarm", latency), False),
        ("the paper's execution latency, Swarm ÷ history grid", 0.25,
         gain(results, "queries", "Swarm", execution), False),
        ("units of work, Auto ÷ the best of the others, hotspot where it is least", 1.0,
         _least_lead(results), True),
    ]  # fmt: skip
    verdicts = []
    for name, bound, value, at_least in wanted:
        reached = None if quick else bool(value >= bound if at_least else value <= bound)
        told = f"{name} {'≥' if at_least else '≤'} {bound:g}"
        verdicts.append({"target": told, "bound": bound, "value": value, "reached": reached})
    return verdicts


def _least_lead(results: Results) -> float:
    """Auto ÷ the best of the others, at the hotspot where that is least."""
    leads = []
    for found in of(results, "hotspot").values():
        others = [values(found, policy, work) for policy in POLICIES if policy != "Auto"]
        best = max(float(np.mean(other)) for other in others if other)
        leads.append(float(np.mean(values(found, "Auto", work))) / best)
    return min(leads) if leads else float("nan")


def render(results: Results, verdicts: list[dict[str, Any]], costs: Overheads) -> RenderableType:
    """All tables, and the paper's figures beside ours."""
    parts: list[RenderableType] = [Text(_HOW_TO_READ)]
    for experiment, title, heading in TABLES:
        if of(results, experiment):
            parts.append(_table(results, experiment, title, heading))
    parts.append(
        Text(
            f"The paper: SWARM has {paper.WORK_GAIN:g} × the units of work of the history grid and "
            f"1/{paper.LATENCY_GAIN:g} of its execution latency; Replicated ends at "
            f"{paper.REPLICATED_MOST // 1_000_000} M subscriptions."
        )
    )
    parts.append(_utilisation(results))
    parts.append(_planning(results))
    parts.append(_overheads(costs))
    parts += [verdict_line(verdict, f"{verdict['value']:.3f}") for verdict in verdicts]
    return Group(*parts)


def _table(results: Results, experiment: str, title: str, heading: str) -> Table:
    table = Table(title=title)
    for name in (heading, *POLICIES):
        table.add_column(name, justify="right")
    for at, found in of(results, experiment).items():
        table.add_row(at, *(_cell(found, policy) for policy in POLICIES), end_section=True)
    return table


def _cell(found: Results, policy: str) -> str:
    made = values(found, policy, work)
    if not made:
        return "out of memory"
    ratio = np.mean(made) / np.mean(values(found, BASE, work))
    lines = [f"{np.mean(made) / 1e9:,.0f} (× {ratio:.2f})"]
    for value, unit in ((execution, "µs"), (latency, "µs in all")):
        lines.append(f"{np.mean(values(found, policy, value)):,.0f} {unit}")
    return "\n".join(lines)


def _utilisation(results: Results) -> Table:
    """Fig. 17: how busy executors are while a hotspot comes and goes."""
    table = Table(title="Utilisation per 5 min, hotspot with a bell: mean (least to most), %")
    found = of(results, "hotspot").get("bell", [])
    shown = found[0].outcomes if found else {}
    table.add_column("minute")
    for policy in POLICIES:
        table.add_column(policy, justify="right")
    parts = max((len(outcome.utilisation) for outcome in shown.values()), default=0)
    for part in range(parts):
        cells = []
        for policy in POLICIES:
            mean, least, most = (100 * v for v in shown[policy].utilisation[part])
            cells.append(f"{mean:.0f} ({least:.0f} to {most:.0f})")
        table.add_row(str(5 * part), *cells)
    return table


def _planning(results: Results) -> Table:
    table = Table(title="Planning, mean of all runs")
    for name in ("", "tiles at the end", "moves per round", "ms per plan"):
        table.add_column(name, justify="right")
    for policy in POLICIES:
        ran = [r.outcomes[policy] for r in results if r.outcomes[policy].work is not None]
        if ran:
            table.add_row(
                policy,
                f"{np.mean([o.tiles for o in ran]):.0f}",
                f"{np.mean([o.moves for o in ran]):.2f}",
                f"{np.mean([o.plan_ms for o in ran]):.1f}",
            )
    return table


def _overheads(costs: Overheads) -> Table:
    table = Table(title="Overheads, measured on this machine (Fig. 18 to 20)")
    table.add_column("")
    table.add_column("", justify="right")
    for name, us in costs.times_us.items():
        table.add_row(name, f"{us:,.3f} µs")
    for name, count in costs.numbers.items():
        table.add_row(f"numbers sent per round, {name}", f"{count:,.0f}")
    return table
