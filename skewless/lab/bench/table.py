"""The result of the join benchmark as tables for people."""

from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

GIB = 2**30


def number(value: float | None) -> str:
    """A count with separators, or a dash for what was not measured."""
    return "–" if value is None else f"{value:,.0f}"


def duration(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}" if value < 10 else f"{value:.1f}"


def memory(value: float | None) -> str:
    return "–" if value is None else f"{value / GIB:.2f} GiB"


def times(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f} ×" if value < 10 else f"{value:.1f} ×"


_RATIOS = {
    "times_spark_best": times,
    "share_of_floor": lambda value: "–" if value is None else f"{value:.0%}",
    "seconds_per_batch": lambda value: f"{duration(value)} s",
    "long_over_short": times,
    "long_over_short_mean": times,
    "peak_memory_bytes": memory,
}


def render(result: dict[str, Any]) -> RenderableType:
    """The table of one workload, and below it what is to be said of Skewless."""
    # Narrow enough for a terminal of 80 columns.
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("engine", no_wrap=True)
    titles = ("s/batch", "rows/s", "matches/s", "×Spark", "floor", "batches")
    for title in titles:
        table.add_column(title, justify="right", no_wrap=True)
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


def measured(figures: dict[str, Any]) -> str:
    """How many batches a figure rests on, of how many that were run."""
    return f"{figures['batches']} of {figures['batches'] + figures['left_out']}"


def _row(
    result: dict[str, Any], run: dict[str, Any], best: float | None, floor: float | None
) -> list[str | Text]:
    if run["error"]:
        return [label(result, run), Text("failed", style="bold red")]
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


def _remarks(result: dict[str, Any]) -> list[Text]:
    lines = []
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
    for verdict in result["targets"]:
        value = _RATIOS[verdict["ratio"]](verdict["value"])
        word, style = {
            True: ("reached", "green"),
            False: ("not reached", "bold red"),
            None: ("not judged", "yellow"),
        }[verdict["reached"]]
        lines.append(Text(f"{verdict['target']}: {value}, {word}", style=style))
    if "long_over_short_mean" in result["ratios"]:
        mean = times(result["ratios"]["long_over_short_mean"])
        lines.append(Text(f"by the mean instead of the median: {mean}"))
    lines += [Text(f"ERROR: {error}", style="bold red") for error in result["errors"]]
    return lines


def _figure(run: dict[str, Any], name: str) -> float | None:
    return None if run["figures"] is None else run["figures"][name]


def _seconds(result: dict[str, Any], engine: str | None) -> float | None:
    for run in result["runs"]:
        if run["engine"] == engine:
            return _figure(run, "seconds")
    return None
