"""The result of the map benchmark as tables for people."""

from collections.abc import Callable
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from skewless.lab.bench.balance_table import QUIET
from skewless.lab.bench.map_scenarios import MENTION
from skewless.lab.bench.table import duration

_SHOWN: dict[str, Callable[[float], str]] = {"overhead": lambda value: f"{value:.1%}"}


def render(outcome: dict[str, Any]) -> RenderableType:
    """The table of one scenario, and below it what was to be reached."""
    # Narrow enough for a terminal of 80 columns.
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("engine", no_wrap=True)
    for title in ("s/batch", "÷skewless", "makespan", "÷skewless", "work÷k", "used"):
        table.add_column(title, justify="right", no_wrap=True)
    values = outcome["values"]
    for run in outcome["runs"]:
        figures = run["figures"]
        if figures is None:
            table.add_row(run["engine"], Text("failed", style="bold red"))
            continue
        table.add_row(
            Text(run["engine"], style="bold cyan" if run["engine"] == "skewless" else ""),
            duration(figures["seconds"]),
            _ratio(values.get(f"{run['engine']}_batch")),
            duration(figures["makespan_s"]),
            _ratio(values.get(f"{run['engine']}_makespan")),
            duration(figures["work_s"] / outcome["parameters"]["instances"]),
            f"{figures['used']:.0%}",
        )
    return Group(Text(outcome["title"], style="bold"), table, *_remarks(outcome))


def _ratio(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def _remarks(outcome: dict[str, Any]) -> list[Text]:
    wanted = outcome["parameters"]
    lines = [Text(f"of {wanted['batches']} batches the first {wanted['warm_up']} do not count")]
    if wanted["cost_key"] == MENTION:
        new = outcome["new_mentions"]
        lines.append(Text(f"{new:.0%} of the rows mention somebody whom none before them did"))
    busy = outcome["busy_with_other_work"]
    if busy > QUIET:
        lines.append(
            Text(
                f"the machine was up to {busy:.0%} busy with other work: these figures are not to "
                "be trusted",
                style="bold yellow",
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
