"""The results of the rebalancing paper's queries as tables beside its figures, and as plots."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from skewless.lab.reproduce.output import new_figure, save_figure
from skewless.lab.reproduce.rebalance_topologies import TOPOLOGIES, Topology
from skewless.lab.reproduce.rebalance_turns import Run, Turn

Runs = Sequence[Run]
Value = Callable[[Run], float]


@dataclass(frozen=True)
class Claim:
    """Mixed beside a rival; `ratio` is the paper's figure, None where it prints none."""

    topology: str
    rival: str
    what: str
    ratio: float | None


# §V, Fig. 14 and 16: Mixed ÷ rival at θmax = 0.02.
THROUGHPUT, TIME, STRAGGLER = "rows/s", "time per batch", "straggler's CPU time"
CLAIMS = (
    Claim("words", "Hash", THROUGHPUT, None),
    Claim("words", "Hash", STRAGGLER, None),
    Claim("words", "Readj", THROUGHPUT, None),
    Claim("words", "PKG", THROUGHPUT, 1.1),
    Claim("words", "PKG", TIME, 0.6),  # the paper's latency of a tuple
    Claim("history", "Hash", THROUGHPUT, None),
    Claim("history", "Hash", STRAGGLER, None),
    Claim("history", "Readj", THROUGHPUT, None),
    Claim("trades", "Hash", THROUGHPUT, 2.0),
    Claim("trades", "Hash", STRAGGLER, None),
    Claim("trades", "Readj", THROUGHPUT, 2.0),
    Claim("q5", "Hash", THROUGHPUT, None),
    Claim("q5", "Hash", STRAGGLER, None),
    Claim("q5", "Readj", THROUGHPUT, None),
    Claim("q5", "PKG", THROUGHPUT, None),
)
VALUES: dict[str, Value] = {
    THROUGHPUT: lambda r: r.rows_per_second,
    TIME: lambda r: r.seconds,
    STRAGGLER: lambda r: sum(r.straggler_ms(i) for i in range(len(r.operators))),
}
BESIDE = (
    "The paper's figures are of Storm on a cluster, where a tuple crosses the network and waits in "
    "a queue. Here a batch has a fixed cost that no policy changes, and what a straggler costs is "
    "only what is beyond it. Time per batch and rows/s are two views of one measurement; the "
    "straggler's CPU time is its task's in Python, without what Java does with the result."
)
QUICK = "Small inputs: nothing here is a measurement."


def of(runs: Runs, topology: str, system: str) -> list[Run]:
    """The runs of a query under a policy, by seed."""
    found = [r for r in runs if r.topology == topology and r.system == system]
    return sorted(found, key=lambda r: r.seed)


def comparisons(runs: Runs) -> list[dict[str, Any]]:
    """Mixed ÷ rival on the same stream; the median over the streams, and the range."""
    compared = []
    for claim in CLAIMS:
        value = VALUES[claim.what]
        own = {r.seed: value(r) for r in of(runs, claim.topology, "Mixed")}
        rivals = of(runs, claim.topology, claim.rival)
        ratios = [own[r.seed] / max(value(r), 1e-9) for r in rivals if r.seed in own]
        if not ratios:
            continue
        compared.append(
            {
                "query": claim.topology,
                "what": f"{claim.what}, Mixed ÷ {claim.rival}",
                "median": median(ratios),
                "least": min(ratios),
                "most": max(ratios),
                "paper": claim.ratio,
            }
        )
    return compared


def render(runs: Runs, compared: list[dict[str, Any]], *, quick: bool) -> RenderableType:
    """All tables, then Mixed beside its rivals."""
    parts: list[RenderableType] = [_grid(runs, t) for t in TOPOLOGIES]
    parts.append(_compared(compared))
    parts.append(Text(BESIDE, style="grey62"))
    if quick:
        parts.append(Text(QUICK, style="yellow"))
    return Group(*parts)


def _grid(runs: Runs, topology: Topology) -> Table:
    first = next((r for r in runs if r.topology == topology.name), None)
    operators = () if first is None else first.operators
    of_each = f" ({' / '.join(operators)})" if len(operators) > 1 else ""
    table = _table(f"{topology.title}: means over the streams{of_each}")
    table.add_column("system")
    columns = (
        "rows/s",
        "s per batch",
        "skewness",
        "CPU skewness",
        "straggler, CPU ms",
        "moved rows",
        "table",
    )
    for column in columns:
        table.add_column(column, justify="right")
    for system in topology.policies:
        found = of(runs, topology.name, system)
        if not found:
            continue

        def each(value: Callable[[Run, int], float], form: str, found: Runs = found) -> str:
            means = [fmean(value(r, i) for r in found) for i in range(len(operators))]
            return " / ".join(form.format(mean) for mean in means)

        table.add_row(
            system,
            f"{fmean(r.rows_per_second for r in found):,.0f}",
            f"{fmean(r.seconds for r in found):.2f}",
            each(Run.skewness, "{:.2f}"),
            each(Run.cpu_skewness, "{:.2f}"),
            each(Run.straggler_ms, "{:,.0f}"),
            each(Run.moved_rows, "{:,.0f}"),
            each(Run.table, "{:,.0f}"),
        )
    if "PKG" not in topology.policies:
        table.caption = "Not PKG: two instances share a key, and nothing here can be added up."
    return table


def _compared(compared: list[dict[str, Any]]) -> Table:
    table = _table("Mixed and its rivals on the same streams")
    for column in ("query", "what", "ours: median", "range", "paper"):
        justify: Any = "left" if column in ("query", "what") else "right"
        table.add_column(column, justify=justify)
    for line in compared:
        paper = "no figure" if line["paper"] is None else f"about {line['paper']:g}"
        span = f"{line['least']:.2f} to {line['most']:.2f}"
        table.add_row(line["query"], line["what"], f"{line['median']:.2f}", span, paper)
    return table


def _table(title: str) -> Table:
    return Table(title=title, title_justify="left", title_style="bold", caption_justify="left")


def _busiest(run: Run) -> int:
    """The operator that takes most of the CPU time."""
    spent = [sum(sum(t.shares[i].cpu_ms) for t in run.turns) for i in range(len(run.operators))]
    return spent.index(max(spent))


def draw(runs: Runs, out: Path) -> list[Path]:
    """Two PNGs per query, of its first stream: time and skewness of every batch."""
    from matplotlib.ticker import MaxNLocator

    plots: tuple[tuple[str, str, Callable[[Turn, int], float]], ...] = (
        ("seconds", "seconds per batch", lambda turn, operator: turn.seconds),
        (
            "skewness",
            "straggler ÷ mean, of what was done",
            lambda turn, operator: turn.shares[operator].skewness,
        ),
    )
    written = []
    for topology in TOPOLOGIES:
        firsts = [found[0] for s in topology.policies if (found := of(runs, topology.name, s))]
        for what, label, value in plots if firsts else ():
            figure, axes = new_figure()
            operator = _busiest(firsts[0])
            for run in firsts:
                numbers = [turn.number for turn in run.turns]
                line = [value(turn, operator) for turn in run.turns]
                axes.plot(numbers, line, marker="o", markersize=4, label=run.system)
            axes.set_title(topology.title, loc="left", fontsize="medium")
            axes.set_xlabel("batch")
            axes.set_ylabel(label)
            axes.xaxis.set_major_locator(MaxNLocator(integer=True))
            axes.set_ylim(bottom=0 if what == "seconds" else 1)
            written.append(save_figure(figure, axes, out / f"query-{topology.name}-{what}.png"))
    return written
