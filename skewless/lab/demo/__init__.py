"""The demo: a ride-hailing city, joined twice side by side, by plain hashing and by Skewless."""

import json
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

import skewless as sk
from skewless.examples import ride_hailing
from skewless.lab.demo import figure, play, summary
from skewless.lab.demo.contest import Contender
from skewless.lab.demo.feed import Feed
from skewless.lab.workloads.city import RUSH_HOURS, City

CITY_SECONDS_PER_SECOND = 180  # three hours of the city in a minute

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
    folder = play.empty_folder(out)
    city = _city(seconds, seed)
    steps_per_file = max(1, round(CITY_SECONDS_PER_SECOND * play.FILE_PERIOD_S / city.step_seconds))
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
        with play.screen(console, live) as show:
            play.watch(contenders, feed, began + play.START_UP_S, seconds, show)

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
