"""The spatial demo: free drivers within 500 m of every order, and areas that people watch."""

import json
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console

import skewless as sk
from skewless.examples import nearby_drivers
from skewless.lab.demo import animation, figure, play
from skewless.lab.demo.contest import Contender
from skewless.lab.demo.globe import GlobeFeed, Moment
from skewless.lab.demo.track import Track
from skewless.lab.workloads.city import RUSH_HOURS, City
from skewless.routing.tiles import TileRoute
from skewless.state.commit import CommitLog
from skewless.state.storage import Storage

CITY_SECONDS_PER_SECOND = 60  # an hour of the city in a minute
AREAS = 3_000
START_UP_S = 60.0  # longer than in the other demo: an animation needs frames
REDUCTIONS = 4  # in a round of SWARM: the crowd jumps, and the run is short
JOIN, AREAS_QUERY = "500 m", "areas"

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

    `out` receives input, results and animation, and must be empty; by default it is a new
    temporary folder. `spark` is a session to run on; by default one is started, and stopped again.

    >>> run(seconds=10, plain=True)["orders"]  # doctest: +SKIP
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
    feed = GlobeFeed(city, folder / "input", steps_per_file=steps_per_file)
    feed.write_next()
    feed.write_areas(folder / "input" / "areas", AREAS, np.random.default_rng(seed))

    console.print("Starting Spark ...")
    with ExitStack() as stack:
        if spark is None:
            spark = sk.session()
            stack.callback(spark.stop)
        nearby = nearby_drivers.nearby(
            spark,
            str(feed.orders_dir),
            str(feed.drivers_dir),
            str(folder / "nearby"),
            sk.Auto(instances=instances),
        )
        stack.callback(nearby.stop)
        watched = watch_areas(spark, feed, folder, instances)
        stack.callback(watched.stop)
        results = folder / "nearby" / "results"
        join = Contender(JOIN, nearby, results, reads=("orders", "free"))
        areas = Contender(AREAS_QUERY, watched, folder / "areas", reads=("drivers",))
        tiles = _Tiles(folder / "areas" / "checkpoint", areas.track)
        with play.screen(console, live) as show:
            play.watch(
                [join, areas], feed, began + START_UP_S, seconds, show, after_file=tiles.note
            )
    found = drivers_found(results)
    told = summarise(feed, found, areas, tiles, seed=seed, instances=instances)
    told["results"] = str(results)
    if figure.available():
        told["animation"] = str(folder / "city.gif")
        animation.draw(_frames(feed.moments, found, tiles, areas.track), folder / "city.gif")
    else:
        console.print("No animation without matplotlib; it comes with skewless\\[plots].")
    told["total_seconds"] = round(time.monotonic() - began, 1)
    if json_path is not None:
        json_path.parent.mkdir(parents=True, exist_ok=True)
        json_path.write_text(json.dumps(told, indent=2) + "\n")
    for line in in_words(told):
        console.print(line, soft_wrap=True)
    return told


def watch_areas(spark: Any, feed: GlobeFeed, folder: Path, instances: int) -> Any:
    """Which areas does a driver pass through? Started as a query whose result nobody keeps."""
    drivers = spark.readStream.schema(nearby_drivers.DRIVERS).parquet(str(feed.drivers_dir))
    passed = sk.subscribe(
        drivers,
        spark.read.parquet(str(folder / "input" / "areas")),
        x="lon",
        y="lat",
        bounds=feed.projection.bounds,
        balance=sk.Swarm(instances=instances, reductions=REDUCTIONS),
    )
    sink = passed.writeStream.format("noop")
    sink = sink.option("checkpointLocation", str(folder / "areas" / "checkpoint"))
    return sink.trigger(processingTime="1 second").start()


def _city(seconds: int, seed: int) -> City:
    """A city in its morning rush; every 15 seconds of the run the crowd is elsewhere."""
    played_h = seconds * CITY_SECONDS_PER_SECOND / 3600
    return City(
        np.random.default_rng(seed),
        drivers=1_500,
        orders_per_second=3.0,
        hotspots=6,
        hot_share=(0.3, 0.6),
        start_hour=max(0.0, RUSH_HOURS[0] - 0.5 * played_h),
        jump_minutes=15 * CITY_SECONDS_PER_SECOND / 60,
    )


@dataclass
class _Tiles:
    """The tiles of the map after every file, read from the commits of the query."""

    checkpoint: Path
    track: Track
    routes: list[TileRoute] = field(default_factory=list)
    batches: list[int] = field(default_factory=list)  # places in `track.batches`

    def note(self) -> None:
        log = CommitLog(Storage(str(self.checkpoint / "skewless")))
        (operator,) = log.load(self.track.batches[-1].number).operators
        assert isinstance(operator.route, TileRoute), "subscriptions are on a map"
        self.routes.append(operator.route)
        self.batches.append(len(self.track.batches) - 1)


Counts = dict[int, int]


def drivers_found(results: Path) -> Counts:
    """How many drivers each order has found, by its id; a driver who reported twice is one."""
    files = [str(file) for file in results.rglob("*.parquet")]
    if not files:
        return {}
    rows = pa.concat_tables(
        pq.read_table(file, columns=["order_id", "driver_id"]) for file in files
    )
    pairs = rows.group_by(["order_id", "driver_id"]).aggregate([])
    counted = pairs.group_by("order_id").aggregate([("driver_id", "count")])
    ids, counts = (counted[name].to_pylist() for name in ("order_id", "driver_id_count"))
    return dict(zip(ids, counts, strict=True))


def _frames(
    moments: list[Moment], found: Counts, tiles: _Tiles, track: Track
) -> list[animation.Frame]:
    frames = []
    for moment, route, place in zip(moments, tiles.routes, tiles.batches, strict=False):
        counts = np.array([found.get(order, 0) for order in moment.order_ids.tolist()], np.int64)
        frames.append(animation.Frame(moment, counts, route, track.batches[place].imbalance))
    return frames


def summarise(
    feed: GlobeFeed,
    found: Counts,
    areas: Contender,
    tiles: _Tiles,
    *,
    seed: int,
    instances: int,
) -> dict[str, Any]:
    """The run in numbers."""
    counts = np.zeros(feed.counts["orders"], np.int64)
    counts[list(found)] = list(found.values())
    changes = areas.track.changes
    return {
        "orders": feed.counts["orders"],
        "driver_reports": feed.counts["drivers"],
        "free_driver_reports": feed.counts["free"],
        "orders_with_a_driver": int((counts > 0).sum()),
        "drivers_per_order_median": float(np.median(counts)) if len(counts) else 0.0,
        "drivers_per_order_most": int(counts.max(initial=0)),
        "areas": AREAS,
        "area_matches": areas.track.matches,
        "tiles_first": len(tiles.routes[0].tiles),
        "tiles_last": len(tiles.routes[-1].tiles),
        "rounds_with_changes": len(changes),
        "rectangles_moved": sum(len(change.batch.moves) for change in changes),
        "imbalance_mean": round(float(np.mean([b.imbalance for b in areas.track.steady])), 3),
        "crowd_jumps": feed.city.jumps,
        "instances": instances,
        "seed": seed,
        "animation": None,
    }


def in_words(told: dict[str, Any]) -> list[str]:
    """The summary as sentences."""
    orders, served = told["orders"], told["orders_with_a_driver"]
    return [
        f"{orders:,} orders and {told['driver_reports']:,} reports of drivers, "
        f"{told['free_driver_reports']:,} of them free, in {told['total_seconds']:.0f} s.",
        f"{served:,} orders ({served / max(orders, 1):.0%}) had a free driver within 500 m in the "
        f"last 30 s: {told['drivers_per_order_median']:.0f} in the median, "
        f"{told['drivers_per_order_most']:,} at most.",
        f"{told['areas']:,} areas were watched; drivers passed through them "
        f"{told['area_matches']:,} times.",
        f"The crowd jumped {told['crowd_jumps']} times. The map followed in "
        f"{told['rounds_with_changes']} rounds: {told['rectangles_moved']} rectangles moved "
        f"between {told['instances']} instances, {told['tiles_first']} tiles became "
        f"{told['tiles_last']}, "
        f"and the busiest instance had {told['imbalance_mean']:.2f} times the mean load.",
        f"results: {told['results']}",
        f"animation: {told['animation'] or 'none'}",
    ]
