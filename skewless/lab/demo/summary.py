"""The demo's summary: the run in numbers, both queries beside each other."""

from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from skewless.lab.demo.contest import Contender
from skewless.lab.demo.feed import Feed


def summarise(
    contenders: list[Contender], feed: Feed, *, seed: int, instances: int
) -> dict[str, Any]:
    """The run in numbers; `same_results` is whether the queries gave equally many rows."""
    queries = {contender.name: _query(contender) for contender in contenders}
    return {
        "rows": feed.rows,
        "hottest_cell_share": round(float(feed.heat.max() / max(int(feed.heat.sum()), 1)), 4),
        "instances": instances,
        "seed": seed,
        "queries": queries,
        "same_results": len({query["result_rows"] for query in queries.values()}) == 1,
        "figure": None,
    }


def _query(contender: Contender) -> dict[str, Any]:
    """One query; the first batch is left out of speed and balance, because Spark starts in it."""
    track = contender.track
    imbalance = np.array([batch.imbalance for batch in track.steady])
    changes = track.changes
    return {
        "rows": track.rows,
        "rows_late": sum(batch.late for batch in track.batches),
        "matches": track.matches,
        "result_rows": contender.result_rows(),
        "rows_per_second": round(track.steady_rate("rows")),
        "matches_per_second": round(track.steady_rate("matches")),
        "batches": len(track.batches),
        "batch_ms_median": _median([batch.duration_s * 1000 for batch in track.steady]),
        "straggler_ms_median": _median([batch.straggler_ms for batch in track.steady]),
        "imbalance_mean": round(float(imbalance.mean()), 3),
        "imbalance_worst": round(float(imbalance.max()), 3),
        "rounds_with_changes": len(changes),
        "partitions_moved": sum(len(change.batch.moves) for change in changes),
        "keys_split": sum(change.split for change in changes),
        "keys_folded_back": sum(change.folded for change in changes),
        "state_rows_most": max(batch.state_rows for batch in track.batches),
        "results": str(contender.results),
    }


def _median(values: list[float]) -> float:
    return round(float(np.median(values)), 1)


ROWS = {
    "imbalance, mean": "{imbalance_mean:.2f}",
    "imbalance, worst": "{imbalance_worst:.2f}",
    "busiest instance, CPU per batch": "{straggler_ms_median:.0f} ms",
    "partitions moved": "{partitions_moved:,}",
    "keys split": "{keys_split:,}",
    "keys folded back": "{keys_folded_back:,}",
    "rows joined per second": "{rows_per_second:,}",
    "matches per second": "{matches_per_second:,}",
    "batches": "{batches:,}",
    "batch time, median": "{batch_ms_median:,.0f} ms",
    "rows in the results": "{result_rows:,}",
}


def report(console: Console, told: dict[str, Any], live: bool) -> None:
    """Print a summary: a table in a terminal, lines elsewhere."""
    queries = told["queries"]
    table = Table(border_style="cyan") if live else Table(box=None)
    table.add_column(style="grey62")
    for name in queries:
        table.add_column(name, justify="right", style="bold")
    for title, form in ROWS.items():
        table.add_row(title, *(form.format(**query) for query in queries.values()))
    console.print(table)
    console.print(
        f"{told['rows']:,} rows on {told['instances']} instances; the hottest cell had "
        f"{told['hottest_cell_share']:.1%} of all orders; {told['total_seconds']:.0f} s in total",
        soft_wrap=True,
    )
    console.print(_verdict(told), soft_wrap=True)
    # Outside the table, so that a long path stays in one piece.
    for name, query in queries.items():
        console.print(f"results of {name}: {query['results']}", soft_wrap=True)
    console.print(f"figure: {told['figure'] or 'none'}", soft_wrap=True)


def _verdict(told: dict[str, Any]) -> str:
    rows = [f"{query['result_rows']:,}" for query in told["queries"].values()]
    if told["same_results"]:
        return f"same results: yes, both queries wrote {rows[0]} rows"
    return f"same results: NO, the queries wrote {' and '.join(rows)} rows"
