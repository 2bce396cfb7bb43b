"""The result of the join benchmark as tables for people."""

from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from skewless.lab.bench.table import (
    Shown,
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

_RATIOS: dict[str, Shown] = {
    "times_spark_best": times,
    "over_inner": times,
    "share_of_floor": lambda value: f"{value:.0%}",
    "seconds_per_batch": lambda value: f"{duration(value)} s",
    "long_over_short": times,
    "long_over_short_mean": times,
    "peak_memory_bytes": memory,
}


def render(result: dict[str, Any]) -> RenderableType:
    """The table of one workload, and below it what is to be said of Skewless."""
    table = narrow("engine", "s/batch", "rows/s", "matches/s", "×Spark", "floor", "batches")
    best, floor = _seconds(result, result["best_spark"]), _seconds(result, "floor")
    for run in result["runs"]:
        table.add_row(*_row(result, run, best, floor))
    return Group(Text(result["title"], style="bold"), table, *_remarks(result))


def label(result: dict[str, Any], run: dict[str, Any]) -> str:
    """The engine's name, with the window where there are several, and whether it is the best."""
    name: str = run["engine"]
    if len(result["parameters"]["windows_s"]) > 1:
        name += f" ±{run['window_s']:g} s"
    return f"{name}, best" if run["engine"] == result["best_spark"] else name


def _row(
    result: dict[str, Any], run: dict[str, Any], best: float | None, floor: float | None
) -> list[str | Text]:
    if run["error"]:
        return [label(result, run), failed()]
    seconds = _figure(run, "seconds")
    style = "bold cyan" if run["engine"] == "skewless" else ""
    return [
        Text(label(result, run), style=style),
        duration(seconds),
        number(_figure(run, "rows_per_second")),
        number(_figure(run, "matches_per_second")),
        times(best / seconds if best and seconds else None),
        f"{floor / seconds:.0%}" if floor and seconds else "–",
        measured(run["figures"]),
    ]


def _spread(run: dict[str, Any]) -> str:
    """The shortest and the longest batch."""
    least, most = _figure(run, "seconds_least"), _figure(run, "seconds_most")
    return f"{duration(least)}–{duration(most)}"


def _remarks(result: dict[str, Any]) -> list[Text]:
    lines = []
    if result["parameters"].get("rounds", 1) > 1:
        spreads = [f"{label(result, run)} {_spread(run)} s" for run in result["runs"]]
        lines.append(Text(f"shortest and longest batches: {', '.join(spreads)}"))
    for run in result["runs"]:
        per_row, peak = _figure(run, "state_bytes_per_row"), _figure(run, "peak_memory_bytes")
        if per_row is not None and peak is not None:
            rows = number(_figure(run, "state_rows"))
            lines.append(
                Text(
                    f"{label(result, run)}: {rows} rows stored, {per_row:.1f} bytes each; "
                    f"a worker's peak is {memory(peak)}"
                )
            )
    lines += verdict_remarks(result, _RATIOS, missing="–")
    if "long_over_short_mean" in result["ratios"]:
        mean = times(result["ratios"]["long_over_short_mean"])
        lines.append(Text(f"by the mean instead of the median: {mean}"))
    return lines + error_remarks(result)


def _figure(run: dict[str, Any], name: str) -> float | None:
    return None if run["figures"] is None else run["figures"][name]


def _seconds(result: dict[str, Any], engine: str | None) -> float | None:
    for run in result["runs"]:
        if run["engine"] == engine:
            return _figure(run, "seconds")
    return None
