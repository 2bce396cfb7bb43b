"""The result of the benchmark of shedding as tables for people."""

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
    times,
    verdict_remarks,
)
from skewless.lab.console import verdict_line

_SHOWN: dict[str, Shown] = {
    "over": number,
    "shed_over_drop": times,
    "batches_until_full": number,
    "missed_off": lambda value: f"{value:.1%}",
    "slower": lambda value: f"{value:+.1%}",
}


def render(outcome: dict[str, Any]) -> RenderableType:
    """The table of one scenario, and below it what was to be reached."""
    title = Text(outcome["title"], style="bold")
    if "results" in outcome:
        verdicts = outcome["targets"]
        return Group(title, *(verdict_line(v, _span(v)) for v in verdicts), *error_remarks(outcome))
    draw = _pairs if "pairs" in outcome else _runs
    return Group(
        title,
        draw(outcome),
        *_remarks(outcome),
        *verdict_remarks(outcome, _SHOWN),
        *busy_remarks(outcome["busy_with_other_work"]),
        *error_remarks(outcome),
    )


def _runs(outcome: dict[str, Any]) -> Table:
    table = narrow(
        "contender", "over", "longest s", "first s", "last s", "results", "calm", "probed"
    )
    for run in outcome["runs"]:
        found = run["figures"]
        if found is None:
            table.add_row(run["contender"], failed())
            continue
        table.add_row(
            run["contender"],
            f"{found['over']} of {found['judged']}",
            duration(found["longest"]),
            duration(found["first_overloaded"]),
            duration(found["last_overloaded"]) + ("" if found["finished"] else " …"),
            number(found["output"]),
            _share(found["fraction_before"]),
            _share(found["fraction"]),
        )
    return table


def _share(value: float | None) -> str:
    return "–" if value is None else f"{value:.0%}" if value >= 0.1 else f"{value:.1%}"


def _pairs(outcome: dict[str, Any]) -> Table:
    table = narrow("pair", "s/batch", "with shed", "slower", "CPU ms", "with shed")
    for place, pair in enumerate(outcome["pairs"], start=1):
        slower = pair["shed"] / pair["plain"] - 1
        table.add_row(str(place), duration(pair["plain"]), duration(pair["shed"]), f"{slower:+.1%}")
    return table


def _remarks(outcome: dict[str, Any]) -> list[Text]:
    if "pairs" in outcome:
        spread, by_cpu = outcome["spread"], outcome["slower_by_cpu"]
        if not spread:
            return []
        low, median, high = (f"{value:+.1%}" for value in by_cpu)
        return [
            Text(f"from {spread[0]:+.1%} to {spread[1]:+.1%}"),
            Text(f"by the CPU time of the tasks: {median}, from {low} to {high}"),
        ]
    if "capacity" not in outcome:
        return []
    lines = [
        Text(
            f"a full join keeps up with {number(outcome['capacity']['rate'])} rows/s a side; "
            "first, last: the first and the last overloaded batch; calm, probed: comparisons made "
            "÷ comparisons of a full probe, before and under overload"
        )
    ]
    if any(r["figures"] and not r["figures"]["finished"] for r in outcome["runs"]):
        lines.append(Text("…: still running when the input ended, and stopped then"))
    shed = next((r["figures"] for r in outcome["runs"] if r["contender"] == "Shed"), None)
    if shed is not None:
        until = shed["batches_until_full"]
        lines += [
            Text(
                f"missed: {number(shed['missed'])} ± {number(shed['missed_error'])} estimated, "
                f"{number(outcome['missed_in_truth'])} in truth; "
                f"rows not stored: {number(shed['dropped'])}"
            ),
            Text(
                "batches probed in part after the input was slow again: "
                f"{'all' if until is None else until}, until the windows had emptied, too"
            ),
        ]
    return lines


def _span(verdict: dict[str, Any]) -> str:
    low, high = verdict["range"]
    return f"{verdict['value']:.2f} ({low:.2f}–{high:.2f})"
