"""The result of the benchmark of keyed state as tables for people."""

from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from skewless.lab.bench.table import (
    busy_remarks,
    duration,
    error_remarks,
    failed,
    measured,
    memory,
    narrow,
    number,
    times,
    verdict_remarks,
)


def render(outcome: dict[str, Any]) -> RenderableType:
    """The table of one workload, and below it what was to be reached."""
    tables = [_runs(outcome)] if "runs" in outcome else [_planners(outcome), _migration(outcome)]
    return Group(Text(outcome["title"], style="bold"), *tables, *_remarks(outcome))


def _runs(outcome: dict[str, Any]) -> Table:
    table = narrow("engine", "s/batch", "rows/s", "given/s", "faster", "batches")
    base = next(
        (r["figures"]["seconds"] for r in outcome["runs"] if r["engine"] == outcome["best"]), None
    )
    for run in outcome["runs"]:
        name = f"{run['engine']}, best" if run["engine"] == outcome["best"] else run["engine"]
        figures = run["figures"]
        if run["error"] or figures is None:
            table.add_row(name, failed())
            continue
        seconds = figures["seconds"]
        table.add_row(
            name,
            duration(seconds),
            number(figures["rows_per_second"]),
            number(figures["matches_per_second"] or None),
            times(base / seconds if base else None),
            measured(figures),
        )
    return table


def _planners(outcome: dict[str, Any]) -> Table:
    table = narrow("planner", "R", "ms", "θ before", "θ after", "load error", "moved", "table")
    for row in outcome["times"]:
        error = row["load_error"]
        table.add_row(
            row["planner"],
            "–" if row["degree"] is None else str(row["degree"]),
            f"{row['milliseconds']:.1f}",
            f"{row['skewness_before']:.3f}",
            f"{row['skewness_after']:.3f}",
            "–" if error is None else f"{error:.2%}",
            f"{row['moved_share']:.1%}",
            number(row["table_size"]),
        )
    return table


def _migration(outcome: dict[str, Any]) -> Table:
    table = narrow("migration", "window", "moved", "θ after", "largest table")
    for row in outcome["migration"]:
        table.add_row(
            row["planner"],
            str(row["window"]),
            f"{row['moved_share']:.1%}",
            f"{row['skewness_after']:.3f}",
            number(row["largest_table"]),
        )
    return table


def _remarks(outcome: dict[str, Any]) -> list[Text]:
    lines = []
    for run in outcome.get("runs", ()):
        figures = run["figures"]
        if figures is not None and figures["peak_memory_bytes"] is not None:
            lines.append(
                Text(
                    f"{run['engine']}: {number(figures['state_rows'])} rows stored; "
                    f"a worker's peak is {memory(figures['peak_memory_bytes'])}"
                )
            )
    lines += busy_remarks(outcome.get("busy_with_other_work", 0.0))
    for name, needs in outcome.get("left_out", {}).items():
        line = f"{name} is left out: it needs {needs}, which is not installed"
        lines.append(Text(line, style="bold yellow"))
    lines += verdict_remarks(outcome, {}, otherwise=times)
    return lines + error_remarks(outcome)
