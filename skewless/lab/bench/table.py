"""What the tables of all benchmarks share: their shape, how values are written, remarks."""

from collections.abc import Callable, Mapping
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from skewless.lab.console import verdict_line

GIB = 2**30
# Of all cores: so much other work a quiet machine may have.
QUIET = 0.1

Shown = Callable[[float], str]


def number(value: float | None) -> str:
    """A count with separators, or a dash for what was not measured."""
    return "–" if value is None else f"{value:,.0f}"


def duration(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}" if value < 10 else f"{value:.1f}"


def memory(value: float | None) -> str:
    return "–" if value is None else f"{value / GIB:.2f} GiB"


def times(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f} ×" if value < 10 else f"{value:.1f} ×"


def ratio(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def measured(figures: dict[str, Any]) -> str:
    """How many batches a figure rests on, of how many that were run."""
    return f"{figures['batches']} of {figures['batches'] + figures['left_out']}"


def narrow(first: str, *others: str) -> Table:
    """A table with a column of names and columns of numbers, for a terminal of 80 columns."""
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column(first, no_wrap=True)
    for title in others:
        table.add_column(title, justify="right", no_wrap=True)
    return table


def failed() -> Text:
    return Text("failed", style="bold red")


def warm_up_remark(parameters: Mapping[str, Any]) -> Text:
    count, first = parameters["batches"], parameters["warm_up"]
    return Text(f"of {count} batches the first {first} do not count")


def busy_remarks(share: float) -> list[Text]:
    """A warning where the machine was not quiet."""
    if share <= QUIET:
        return []
    text = f"the machine was up to {share:.0%} busy with other work: these figures are not to be "
    return [Text(text + "trusted", style="bold yellow")]


def verdict_remarks(
    outcome: Mapping[str, Any],
    shown: Mapping[str, Shown],
    otherwise: Shown = ratio,
    missing: str = "not measured",
) -> list[Text]:
    """The targets, what was measured, and whether they are reached.

    `shown` says how the value of a ratio is written; the others are written as by `otherwise`.
    """
    lines = []
    for verdict in outcome["targets"]:
        value, form = verdict["value"], shown.get(verdict["ratio"], otherwise)
        lines.append(verdict_line(verdict, missing if value is None else form(value)))
    return lines


def error_remarks(outcome: Mapping[str, Any]) -> list[Text]:
    return [Text(f"ERROR: {error}", style="bold red") for error in outcome["errors"]]
