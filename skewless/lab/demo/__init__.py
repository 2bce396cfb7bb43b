"""The demo: a ride-hailing city, joined twice side by side, by plain hashing and by Skewless."""

import json
import tempfile
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, nullcontext
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.live import Live

import skewless as sk
from skewless.examples import ride_hailing
from skewless.lab.demo import figure, summary, view
from skewless.lab.demo.contest import Contender
from skewless.lab.demo.feed import Feed
from skewless.lab.workloads.city import RUSH_HOURS, City

CITY_SECONDS_PER_SECOND = 180  # three hours of the city in a minute
FILE_PERIOD_S = 2.0
POLL_S = 0.2
START_UP_S = 25.0  # a start of Spark that takes longer shortens the run, so that it ends in time
PATIENCE_S = 60.0  # the longest that a micro-batch may take, Spark's start-up in the first included

__all__ = ["run"]


def run(
    *,
    seconds: int = 60,
    out: Path | None = None,
    instances: int = 8,
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
    city = _city(seconds, seed)
    steps_per_file = max(1, round(CITY_SECONDS_PER_SECOND * FILE_PERIOD_S / city.step_seconds))
    feed = Feed(city, folder / "input", steps_per_file=steps_per_file)
    feed.write_next()

    console.print("Starting Spark ...")
    with ExitStack() as stack:
        if spark is None:
            spark = sk.session()
            stack.callback(spark.stop)
        # Both at once and on the same files. They share the cores, but fairly: Spark runs as many
        # tasks at a time as there are cores, whosever they are, so a task is measured as if its
        # query were alone. Only batch times have the wait for the other query in them.
        contenders = []
        policies = {"Hash": sk.Hash(instances), "Skewless": sk.Auto(instances=instances)}
        for name, balance in policies.items():
            home = folder / name.lower()
            query = ride_hailing.dispatch(
                spark, str(feed.orders_dir), str(feed.drivers_dir), str(home), balance
            )
            stack.callback(query.stop)
            contenders.append(Contender(name, query, home / "results"))
        with _screen(console, live) as show:
            _watch(contenders, feed, began + START_UP_S, seconds, show)

    told = summary.summarise(contenders, feed, seed=seed, instances=instances)
    if figure.available():
        told["figure"] = str(folder / "city.png")
        tracks = {contender.name: contender.track for contender in contenders}
        figure.draw(tracks, feed.heat, city.size_m, folder / "city.png", feed.jumps_s)
    else:
        console.print("No figure without matplotlib; it comes with skewless\\[plots].")
    told["total_seconds"] = round(time.monotonic() - began, 1)
    if json_path is not None:
        json_path.parent.mkdir(parents=True, exist_ok=True)
        json_path.write_text(json.dumps(told, indent=2) + "\n")
    summary.report(console, told, live)
    if told["same_results"] is False:
        raise sk.SkewlessError("the two queries joined the same rows and gave different results")
    return told


def _folder(out: Path | None) -> Path:
    folder = out or Path(tempfile.mkdtemp(prefix="skewless-demo-"))
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        raise ValueError(f"out must be an empty or a new folder, got {folder}, which has files")
    return folder.resolve()


def _city(seconds: int, seed: int) -> City:
    """A city that runs into its morning rush and out of it again.

    Most of it happens at few places, and every 12 seconds of the run the crowd is elsewhere.
    """
    played_h = seconds * CITY_SECONDS_PER_SECOND / 3600
    return City(
        np.random.default_rng(seed),
        drivers=6_000,
        orders_per_second=4.0,
        hotspots=4,
        hot_share=(0.5, 0.9),
        start_hour=max(0.0, RUSH_HOURS[0] - 0.4 * played_h),
        jump_minutes=12 * CITY_SECONDS_PER_SECOND / 60,
    )


Show = Callable[[list[Contender], Feed, float], None]


def _screen(console: Console, live: bool) -> AbstractContextManager[Show]:
    """What to do at each look at the queries: refresh the view, or print the new batches."""
    if live:
        return _LiveScreen(console)
    shown: dict[str, int] = {}

    def print_new(contenders: list[Contender], feed: Feed, elapsed_s: float) -> None:
        for contender in contenders:
            track = contender.track
            for batch in track.batches[shown.get(contender.name, 0) :]:
                line = view.line(contender.name, batch, track, hour=feed.city.hour)
                console.print(line, soft_wrap=True)
            shown[contender.name] = len(track.batches)

    return nullcontext(print_new)


class _LiveScreen(AbstractContextManager[Show]):
    def __init__(self, console: Console) -> None:
        self._live = Live(console=console, auto_refresh=False)

    def __enter__(self) -> Show:
        self._live.start()
        return self._show

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def _show(self, contenders: list[Contender], feed: Feed, elapsed_s: float) -> None:
        picture = view.screen(
            {contender.name: contender.track for contender in contenders},
            hour=feed.city.hour,
            elapsed_s=elapsed_s,
            heat=feed.recent_heat,
            width=self._live.console.width,
            height=self._live.console.height,
        )
        self._live.update(picture, refresh=True)


def _watch(
    contenders: list[Contender], feed: Feed, begin_by: float, seconds: int, show: Show
) -> None:
    """Play the city for `seconds` after the first batches, or after `begin_by` if that is sooner.

    The next file is written when it is due and both queries are done with the one before: a file is
    a micro-batch of both, neither falls behind, and a slow machine only slows the city down.
    """
    written = time.monotonic()
    begin: float | None = None
    due = end = 0.0
    while True:
        now = time.monotonic()
        for contender in contenders:
            contender.look()
        if all(contender.track.rows >= feed.rows for contender in contenders):
            if begin is None:
                begin = due = now
                end = min(now, begin_by) + seconds
            if now >= end:
                show(contenders, feed, now - begin)
                return
            if now >= due:
                feed.write_next()
                written = now
                due = max(due + FILE_PERIOD_S, now)
        elif now - written > PATIENCE_S:
            raise TimeoutError(f"a micro-batch was not done in {PATIENCE_S:.0f} s")
        show(contenders, feed, 0.0 if begin is None else now - begin)
        # Waits, and ends the wait early if the query fails.
        contenders[0].query.awaitTermination(POLL_S)
