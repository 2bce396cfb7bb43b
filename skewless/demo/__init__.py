"""The demo: a ride-hailing city, joined live in the terminal."""

import json
import tempfile
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from rich.console import Console
from rich.live import Live
from rich.table import Table

import skewless as sk
from skewless.demo import figure, view
from skewless.demo.feed import Feed
from skewless.demo.track import Track
from skewless.examples import ride_hailing
from skewless.workloads.city import RUSH_HOURS, City

CITY_SECONDS_PER_SECOND = 180  # three hours of the city in a minute
FILE_PERIOD_S = 0.5
POLL_S = 0.2
START_UP_S = 60.0  # the longest that the first micro-batch may take
DRAIN_S = 20.0  # the longest that the last rows may take after the city has stopped

__all__ = ["run"]


def run(
    *,
    seconds: int = 60,
    out: Path | None = None,
    instances: int = 2,
    seed: int = 7,
    json_path: Path | None = None,
    plain: bool = False,
    spark: Any = None,
) -> dict[str, Any]:
    """Run the demo for `seconds` and return its summary, which `json_path` also receives.

    `out` receives input, results and figure, and must be empty; by default it is a new
    temporary folder. `spark` is a session to run on; by default one is started, and stopped again.

    >>> run(seconds=10, plain=True)["rows"]  # doctest: +SKIP
    """
    if seconds < 1:
        raise ValueError(f"seconds must be at least 1, got {seconds}")
    if instances < 1:
        raise ValueError(f"instances must be at least 1, got {instances}")
    console = Console(highlight=False)
    live = console.is_terminal and not plain
    began = time.monotonic()
    folder = _folder(out)
    steps_per_file, city = _city(seconds, seed)
    feed = Feed(city, folder / "input", steps_per_file=steps_per_file, period_s=FILE_PERIOD_S)
    feed.write_next()  # the first micro-batch, so that Spark's start-up is not counted as backlog

    console.print("Starting Spark ...")
    own_session = spark is None
    spark = spark or sk.session()
    track = Track()
    try:
        query = ride_hailing.dispatch(
            spark, str(feed.orders_dir), str(feed.drivers_dir), str(folder), instances=instances
        )
        try:
            with _screen(console, live) as show:
                _watch(query, feed, track, seconds, show)
        finally:
            query.stop()
            feed.stop()
    finally:
        if own_session:
            spark.stop()

    summary = _summary(track, feed, folder, seed=seed, instances=instances)
    if figure.available():
        summary["figure"] = str(folder / "city.png")
        figure.draw(track, feed.heat(), city.size_m, folder / "city.png")
    else:
        console.print("No figure without matplotlib; it comes with skewless\\[plots].")
    summary["total_seconds"] = round(time.monotonic() - began, 1)
    if json_path is not None:
        json_path.parent.mkdir(parents=True, exist_ok=True)
        json_path.write_text(json.dumps(summary, indent=2) + "\n")
    _report(console, summary, live)
    return summary


def _folder(out: Path | None) -> Path:
    folder = out or Path(tempfile.mkdtemp(prefix="skewless-demo-"))
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        raise ValueError(f"out must be an empty or a new folder, got {folder}, which has files")
    return folder.resolve()


def _city(seconds: int, seed: int) -> tuple[int, City]:
    """A city whose morning rush peaks a little after the middle of the run."""
    played_h = seconds * CITY_SECONDS_PER_SECOND / 3600
    start_hour = max(0.0, RUSH_HOURS[0] - 0.55 * played_h)
    city = City(np.random.default_rng(seed), start_hour=start_hour)
    steps_per_file = max(1, round(CITY_SECONDS_PER_SECOND * FILE_PERIOD_S / city.step_seconds))
    return steps_per_file, city


Show = Callable[[Track, Feed, float], None]


def _screen(console: Console, live: bool) -> AbstractContextManager[Show]:
    """What to do at each look at the query: refresh the view, or print the new batches."""
    if live:
        return _LiveScreen(console)
    shown = 0

    def print_new(track: Track, feed: Feed, elapsed_s: float) -> None:
        nonlocal shown
        for batch in track.batches[shown:]:
            console.print(view.line(batch, track, hour=feed.hour), soft_wrap=True)
        shown = len(track.batches)

    return nullcontext(print_new)


class _LiveScreen(AbstractContextManager[Show]):
    def __init__(self, console: Console) -> None:
        self._live = Live(console=console, auto_refresh=False)

    def __enter__(self) -> Show:
        self._live.start()
        return self._show

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def _show(self, track: Track, feed: Feed, elapsed_s: float) -> None:
        picture = view.panel(
            track,
            hour=feed.hour,
            elapsed_s=elapsed_s,
            waiting=max(0, feed.rows - track.rows),
            heat=feed.recent_heat(),
            width=self._live.console.width,
        )
        self._live.update(picture, refresh=True)


def _watch(query: Any, feed: Feed, track: Track, seconds: int, show: Show) -> None:
    """Start the city with the first batch, stop it after `seconds`, let the last rows through."""
    started = time.monotonic()
    live_since: float | None = None
    while True:
        now = time.monotonic()
        _look(query, feed, track)
        show(track, feed, now - (live_since or started))
        if live_since is None:
            if track.batches:
                live_since = now
                feed.start()
            elif now - started > START_UP_S:
                raise TimeoutError(f"no micro-batch came back in {START_UP_S:.0f} s")
        elif now - live_since >= seconds:
            feed.stop()
            if track.rows >= feed.rows or now - live_since >= seconds + DRAIN_S:
                return
        query.awaitTermination(POLL_S)  # waits, and ends the wait early if the query fails


def _look(query: Any, feed: Feed, track: Track) -> None:
    feed.check()
    if not query.isActive:
        raise query.exception() or RuntimeError("the query stopped by itself")
    last = query.lastProgress
    if last is None or not last.get("skewless"):
        return
    # The list of recent records is long and slow to fetch: only where the last one is not enough.
    skipped = last["skewless"]["batchId"] > track.next_number
    track.add(query.recentProgress if skipped else [last])


def _summary(
    track: Track, feed: Feed, folder: Path, *, seed: int, instances: int
) -> dict[str, Any]:
    """The run in numbers; the first batch is left out of speeds, because Spark starts up in it."""
    steady = track.batches[1:] or track.batches
    elapsed_s = max(track.batches[-1].end_s - track.batches[0].end_s, 1e-3)
    durations_ms = np.array([batch.duration_s for batch in steady]) * 1000
    heat = feed.heat()
    return {
        "rows": track.rows,
        "rows_not_joined": max(0, feed.rows - track.rows),
        "rows_late": sum(batch.late for batch in track.batches),
        "matches": track.matches,
        "result_rows": _result_rows(folder / "results"),
        "rows_per_second": round(sum(batch.rows for batch in steady) / elapsed_s),
        "matches_per_second": round(sum(batch.matches for batch in steady) / elapsed_s),
        "batches": len(track.batches),
        "batch_ms_median": round(float(np.median(durations_ms))),
        "batch_ms_longest": round(float(durations_ms.max())),
        "instances": instances,
        "load_shares": [round(share, 4) for share in track.load_shares(None)],
        "imbalance_mean": round(float(np.mean([batch.imbalance for batch in steady])), 3),
        "imbalance_highest": round(max(batch.imbalance for batch in steady), 3),
        "state_rows_most": max(batch.state_rows for batch in track.batches),
        "hottest_cell_share": round(float(heat.max() / max(int(heat.sum()), 1)), 4),
        "seed": seed,
        "results": str(folder / "results"),
        "figure": None,
    }


def _result_rows(results: Path) -> int:
    """Rows in the result files, by their footers: what was really written."""
    return sum(pq.read_metadata(file).num_rows for file in results.rglob("*.parquet"))


def _report(console: Console, summary: dict[str, Any], live: bool) -> None:
    shares = " ".join(f"{share:.1%}" for share in summary["load_shares"])
    lines = {
        "rows joined": f"{summary['rows']:,} ({summary['rows_per_second']:,} per second)",
        "matches": f"{summary['matches']:,} ({summary['matches_per_second']:,} per second)",
        "rows in the results": f"{summary['result_rows']:,}",
        "batches": f"{summary['batches']}, {summary['batch_ms_median']:,} ms each (median)",
        "load per instance": shares,
        "imbalance": f"{summary['imbalance_mean']:.2f} on average, "
        f"{summary['imbalance_highest']:.2f} at worst",
        "hottest cell": f"{summary['hottest_cell_share']:.1%} of all orders",
        "total time": f"{summary['total_seconds']:.0f} s",
    }
    if summary["rows_not_joined"]:
        lines["rows not joined"] = f"{summary['rows_not_joined']:,}: this machine was too slow"
    if live:
        table = Table(show_header=False, border_style="cyan")
        table.add_column(style="grey62")
        table.add_column(style="bold")
        for name, value in lines.items():
            table.add_row(name, value)
        console.print(table)
    else:
        for name, value in lines.items():
            console.print(f"{name}: {value}", soft_wrap=True)
    # Outside the table, so that a long path stays in one piece.
    for name in ("results", "figure"):
        console.print(f"{name}: {summary[name] or 'none'}", soft_wrap=True)
