"""The result of the benchmark of balancing as tables for people."""

from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from skewless.lab.bench.table import (
    Shown,
    busy_remarks,
    duration,
    error_remarks,
    failed,
    narrow,
    number,
    ratio,
    times,
    verdict_remarks,
    warm_up_remark,
)


def render(outcome: dict[str, Any]) -> RenderableType:
    """The table of one scenario, and below it what was to be reached."""
    draw = _runs if "runs" in outcome else _planners if "planners" in outcome else _rates
    return Group(Text(outcome["title"], style="bold"), draw(outcome), *_remarks(outcome))


def _runs(outcome: dict[str, Any]) -> Table:
    jumps = outcome["parameters"]["jumps_at"] is not None
    more = ("even",) if jumps else ()
    table = narrow("policy", "s/batch", "Hash÷", "max÷mean", "matches", "moves", "splits", *more)
    for run in outcome["runs"]:
        figures = run["figures"]
        if figures is None:
            table.add_row(run["label"], failed())
            continue
        gain = outcome["values"].get(f"hash_over_{run['policy'].lower()}")
        until = run["batches_until_even"]
        table.add_row(
            run["label"],
            duration(figures["seconds"]),
            ratio(gain),
            f"{figures['imbalance']:.2f}",
            f"{figures['imbalance_of_matches']:.2f}",
            number(figures["moves"]),
            number(figures["splits"]),
            *(["never" if until is None else str(until)] if jumps else []),
        )
    return table


def _planners(outcome: dict[str, Any]) -> Table:
    table = narrow("planner", "partitions", "instances", "ms", "overload left", "rows moved")
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
    table = narrow("system", "tuples/s", "÷ BiStream")
    base = outcome["rates"]["BiStream"]
    for system, rate in outcome["rates"].items():
        table.add_row(system, number(rate), times(rate / base if base else None))
    return table


_SHOWN: dict[str, Shown] = {
    "share": lambda value: f"{value:.1%}",
    "auto_batches": lambda value: f"{value:.0f} batches",
}


def _remarks(outcome: dict[str, Any]) -> list[Text]:
    lines = []
    values = outcome["values"]
    if "runs" in outcome:
        lines.append(warm_up_remark(outcome["parameters"]))
        lines += busy_remarks(outcome["busy_with_other_work"])
    if "share" in values:
        lines.append(
            Text(
                f"a task's report takes {values['report_ms']:.1f} ms, the driver's plan "
                f"{values['plan_ms']:.1f} ms"
            )
        )
    return lines + verdict_remarks(outcome, _SHOWN) + error_remarks(outcome)
