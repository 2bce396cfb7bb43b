"""The result of the benchmark of spatial streams as tables for people."""

from typing import Any

from rich.console import Group, RenderableType
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

_SHOWN: dict[str, Shown] = {"seconds": lambda value: f"{duration(value)} s"}
# What is not judged, and said all the same.
_SAID = {
    "times_cells": "÷ Spark's broadcast hash join by cells",
    "share_of_floor": "÷ the floor: tiles, repartitionById, to Python and back",
    "floor_times_strtree": "the floor ÷ STRtree",
    "in_place_times_strtree": "the floor without a shuffle ÷ STRtree",
    "times_sedona": "÷ SedonaDB on all rows as a batch",
    "static_over_auto": "StaticGrid from history ÷ Auto",
    "replicated_over_auto": "Replicated ÷ Auto",
    "swarm_over_auto": "Swarm ÷ Auto",
}
_ABSENT = "is not installed, and was not measured"


def render(outcome: dict[str, Any]) -> RenderableType:
    """The table of one part, and below it what was to be reached."""
    table = narrow("contender", "s/batch", "least", "most", "rows/s", "matches", "batches")
    for run in outcome["runs"]:
        seconds, rates = run["seconds"], run["rows_per_second"]
        if seconds is None:
            table.add_row(run["contender"], failed())
            continue
        table.add_row(
            run["contender"],
            *(duration(seconds[key]) for key in ("median", "least", "most")),
            number(rates["median"]),
            number(run["matches_per_batch"]),
            str(len(run["batches"])),
        )
    return Group(Text(outcome["title"], style="bold"), table, *_remarks(outcome))


def _remarks(outcome: dict[str, Any]) -> list[Text]:
    lines = [Text(f"{name} {_ABSENT}") for name in outcome["absent"]]
    lines += [
        Text(f"{said}: {times(outcome['ratios'][name])}")
        for name, said in _SAID.items()
        if name in outcome["ratios"]
    ]
    lines += busy_remarks(outcome["busy_with_other_work"])
    return lines + verdict_remarks(outcome, _SHOWN, times) + error_remarks(outcome)
