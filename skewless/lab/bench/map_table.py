"""The result of the map benchmark as tables for people."""

from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from skewless.lab.bench.map_scenarios import MENTION
from skewless.lab.bench.table import (
    Shown,
    busy_remarks,
    duration,
    error_remarks,
    failed,
    narrow,
    ratio,
    verdict_remarks,
    warm_up_remark,
)

_SHOWN: dict[str, Shown] = {"overhead": lambda value: f"{value:.1%}"}


def render(outcome: dict[str, Any]) -> RenderableType:
    """The table of one scenario, and below it what was to be reached."""
    columns = ("s/batch", "÷skewless", "makespan", "÷skewless", "work÷k", "used")
    table = narrow("engine", *columns)
    values = outcome["values"]
    for run in outcome["runs"]:
        figures = run["figures"]
        if figures is None:
            table.add_row(run["engine"], failed())
            continue
        table.add_row(
            Text(run["engine"], style="bold cyan" if run["engine"] == "skewless" else ""),
            duration(figures["seconds"]),
            ratio(values.get(f"{run['engine']}_batch")),
            duration(figures["makespan_s"]),
            ratio(values.get(f"{run['engine']}_makespan")),
            duration(figures["work_s"] / outcome["parameters"]["instances"]),
            f"{figures['used']:.0%}",
        )
    return Group(Text(outcome["title"], style="bold"), table, *_remarks(outcome))


def _remarks(outcome: dict[str, Any]) -> list[Text]:
    wanted = outcome["parameters"]
    lines = [warm_up_remark(wanted)]
    if wanted["cost_key"] == MENTION:
        new = outcome["new_mentions"]
        lines.append(Text(f"{new:.0%} of the rows mention somebody whom none before them did"))
    lines += busy_remarks(outcome["busy_with_other_work"])
    return lines + verdict_remarks(outcome, _SHOWN) + error_remarks(outcome)
