"""The result of the benchmark of balancing as tables for people."""

from collections.abc import Callable
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from skewless.lab.bench.table import duration, number, times

# Of all cores: so much other work a quiet machine may have.
QUIET = 0.1


def render(outcome: dict[str, Any]) -> RenderableType:
    """The table of one scenario, and below it what was to be reached."""
    draw = _runs if "runs" in outcome else _planners if "planners" in outcome else _rates
    return Group(Text(outcome["title"], style="bold"), draw(outcome), *_remarks(outcome))


def _table(first: str, *others: str) -> Table:
    # Narrow enough for a terminal of 80 columns.
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column(first, no_wrap=True)
    for title in others:
        table.add_column(title, justify="right", no_wrap=True)
    return table


def _runs(outcome: dict[str, Any]) -> Table:
    jumps = outcome["parameters"]["jumps_at"] is not None
    more = ("even",) if jumps else ()
    table = _table("policy", "s/batch", "Hash÷", "max÷mean", "matches", "moves", "splits", *more)
    for run in outcome["runs"]:
        figures = run["figures"]
        if figures is None:
            table.add_row(run["label"], Text("failed", style="bold red"))
            continue
        gain = outcome["values"].get(f"hash_over_{run['policy'].lower()}")
        until = run["batches_until_even"]
        table.add_row(
            run["label"],
            duration(figures["seconds"]),
            "–" if gain is None else f"{gain:.2f}",
            f"{figures['imbalance']:.2f}",
            f"{figures['imbalance_of_matches']:.2f}",
            number(figures["moves"]),
            number(figures["splits"]),
            *(["never" if until is None else str(until)] if jumps else []),
        )
    return table


def _planners(outcome: dict[str, Any]) -> Table:
    table = _table("planner", "partitions", "instances", "ms", "overload left", "rows moved")
    for row in outcome["planners"]:
        table.add_row(
            row["planner"],
            number(row["partitions"]),
            number(row["instances"]),
            f"{row['milliseconds_most']:.1f}",
            f"{row['overload']:.1%}",
            f"{row['moved_share']:.1%}",
        )
    return table


def _rates(outcome: dict[str, Any]) -> Table:
    table = _table("system", "tuples/s", "÷ BiStream")
    base = outcome["rates"]["BiStream"]
    for system, rate in outcome["rates"].items():
        table.add_row(system, number(rate), times(rate / base if base else None))
    return table


_SHOWN: dict[str, Callable[[float], str]] = {
    "share": lambda value: f"{value:.1%}",
    "auto_batches": lambda value: f"{value:.0f} batches",
}


def _remarks(outcome: dict[str, Any]) -> list[Text]:
    lines = []
    values = outcome["values"]
    if "runs" in outcome:
        wanted = outcome["parameters"]
        lines.append(
            Text(f"of {wanted['batches']} batches the first {wanted['warm_up']} do not count")
        )
        busy = outcome["busy_with_other_work"]
        if busy > QUIET:
            lines.append(
                Text(
                    f"the machine was up to {busy:.0%} busy with other work: these figures are not "
                    "to be trusted",
                    style="bold yellow",
                )
            )
    if "share" in values:
        lines.append(
            Text(
                f"a task's report takes {values['report_ms']:.1f} ms, the driver's plan "
                f"{values['plan_ms']:.1f} ms"
            )
        )
    for verdict in outcome["targets"]:
        value = verdict["value"]
        form = _SHOWN.get(verdict["ratio"])
        shown = "not measured" if value is None else form(value) if form else f"{value:.2f}"
        word, style = {
            True: ("reached", "green"),
            False: ("not reached", "bold red"),
            None: ("not judged", "yellow"),
        }[verdict["reached"]]
        lines.append(Text(f"{verdict['target']}: {shown}, {word}", style=style))
    lines += [Text(f"ERROR: {error}", style="bold red") for error in outcome["errors"]]
    return lines
