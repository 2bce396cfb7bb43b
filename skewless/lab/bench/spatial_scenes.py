"""What the benchmark of spatial streams replays: points, subscriptions, and their files."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from skewless.lab.bench.workloads import Length, first
from skewless.lab.workloads.hotspots import QUERY_SIDE as SIDE
from skewless.lab.workloads.hotspots import Crowd, HotMap, around, hotspots
from skewless.lab.workloads.streams import START_US, TIMESTAMP, write_stream

SEED = 7
BOUNDS = (0.0, 0.0, 1.0, 1.0)
# Of a join by distance: with 2 M rows of the other side in reach, six of them are near.
RADIUS = 0.001
POINTS = "point long, x double, y double"
SUBSCRIPTIONS = "id long, x_min double, y_min double, x_max double, y_max double"
CHANGES = f"{SUBSCRIPTIONS}, op string"
MOVING = "id long, ts timestamp, x double, y double"
# A source with a file per core in every batch, as a topic has partitions: nobody reads alone.
FILES_PER_BATCH = 2

Floats = npt.NDArray[np.float64]


# A round of the paper, and when its hotspot comes.
ROUND_S = 15.0
QUIET_S, HOT_S = 0.0, 3_600.0


@dataclass(frozen=True)
class Scene:
    """Two inputs of a contender; `length` says how much of them it is given."""

    length: Length

    @property
    def rows(self) -> list[int]:
        """Rows of every batch, both inputs together."""
        raise NotImplementedError

    @property
    def within_s(self) -> float:
        """How far apart in time the rows of a pair may be, either way, in seconds."""
        return 0.0

    def write(self, folder: Path) -> tuple[Path, Path]:
        """The folders of both inputs; equal scenes give equal files."""
        raise NotImplementedError

    def begun(self, inputs: tuple[Path, Path], batches: int, folder: Path) -> tuple[Path, Path]:
        """The same inputs, only their first batches."""
        left, right = inputs
        return first(left, batches, folder / "left"), first(right, batches, folder / "right")

    def describe(self) -> dict[str, Any]:
        told = asdict(self)
        told |= {"batches": self.length.batches, "warm_up": self.length.warm_up}
        return {name: list(v) if isinstance(v, tuple) else v for name, v in told.items()}


@dataclass(frozen=True)
class Subscribed(Scene):
    """Points for subscriptions that are there from the beginning, both anywhere on the map."""

    subscriptions: int
    points: tuple[int, ...]  # in every batch

    @property
    def rows(self) -> list[int]:
        return list(self.points)

    def write(self, folder: Path) -> tuple[Path, Path]:
        rng = np.random.default_rng(SEED)
        queries = write_stream(folder / "subscriptions", _split(self._queries(rng)))
        return write_stream(folder / "points", self._files(rng)), queries

    def _files(self, rng: np.random.Generator) -> Iterator[pa.Table]:
        for batch, (begin, count) in enumerate(zip(_begins(self.points), self.points, strict=True)):
            yield from _split(point_table(self._places(rng, count, batch), begin))

    def _queries(self, rng: np.random.Generator) -> pa.Table:
        return query_table(around(rng.random((self.subscriptions, 2)), SIDE))

    def _places(self, rng: np.random.Generator, count: int, batch: int) -> Floats:
        return rng.random((count, 2))

    def begun(self, inputs: tuple[Path, Path], batches: int, folder: Path) -> tuple[Path, Path]:
        return first(inputs[0], batches * FILES_PER_BATCH, folder / "left"), inputs[1]


@dataclass(frozen=True)
class Crowded(Subscribed):
    """Points anywhere on the map; from batch `hot_from` on, a hotspot has a part of them.

    Subscriptions are those of the time of the hotspot: who goes there has also subscribed there.
    """

    hot_from: int = 1

    def _queries(self, rng: np.random.Generator) -> pa.Table:
        return query_table(hot_map().rectangles(rng, self.subscriptions, at_s=HOT_S, side=SIDE))

    def _places(self, rng: np.random.Generator, count: int, batch: int) -> Floats:
        return hot_map().points(rng, count, HOT_S + ROUND_S * (batch - self.hot_from))


def hot_map() -> HotMap:
    """The paper's hotspot as a step, with 40 % of the points; the others are anywhere."""
    crowd = Crowd.cities(np.random.default_rng(SEED), anywhere=1.0)
    return HotMap(crowd, hotspots("step", start_s=HOT_S, length_s=3_600.0))


def history(points: int = 100_000, rectangles: int = 100_000) -> tuple[Floats, Floats]:
    """Points and rectangles as they were before there was a hotspot."""
    rng, quiet = np.random.default_rng(SEED + 1), hot_map()
    return quiet.points(rng, points, QUIET_S), quiet.rectangles(rng, rectangles, at_s=QUIET_S)


@dataclass(frozen=True)
class Newcomers(Scene):
    """Subscriptions that come in batches, the first with many of them, and a few points."""

    stored: int  # by the first batch
    added: int  # by each of the others
    points: int

    @property
    def rows(self) -> list[int]:
        return [count + self.points for count in self._counts]

    @property
    def _counts(self) -> list[int]:
        return [self.stored, *[self.added] * (self.length.batches - 1)]

    def write(self, folder: Path) -> tuple[Path, Path]:
        rng = np.random.default_rng(SEED)
        counts = self._counts
        begins = zip(_begins(counts), counts, strict=True)
        changes = (query_table(around(rng.random((n, 2)), SIDE), begin) for begin, n in begins)
        added = (t.append_column("op", pa.repeat("add", t.num_rows)) for t in changes)
        queries = write_stream(folder / "subscriptions", added)
        places = (rng.random((self.points, 2)) for _ in counts)
        points = (point_table(p, n * self.points) for n, p in enumerate(places))
        return write_stream(folder / "points", points), queries


@dataclass(frozen=True)
class Fleets(Scene):
    """Two streams of points whose windows are full after the first batch."""

    window_rows: int  # of a side, in the window
    per_batch: int  # of a side, in every batch but the first
    rows_per_s: float  # of a side, in event time

    @property
    def rows(self) -> list[int]:
        return [2 * count for count in self._counts]

    @property
    def _counts(self) -> list[int]:
        return [self.window_rows, *[self.per_batch] * (self.length.batches - 1)]

    @property
    def within_s(self) -> float:
        return self.window_rows / self.rows_per_s

    def write(self, folder: Path) -> tuple[Path, Path]:
        rng = np.random.default_rng(SEED)
        left, right = (write_stream(folder / side, self._tables(rng)) for side in ("left", "right"))
        return left, right

    def _tables(self, rng: np.random.Generator) -> Iterator[pa.Table]:
        for begin, count in zip(_begins(self._counts), self._counts, strict=True):
            rows = np.arange(begin, begin + count)
            times = pa.array(START_US + (rows * (1e6 / self.rows_per_s)).astype(np.int64))
            x, y = rng.random((2, count))
            yield pa.table({"id": rows, "ts": times.cast(TIMESTAMP), "x": x, "y": y})


def point_table(places: Floats, first_id: int = 0) -> pa.Table:
    x, y = np.ascontiguousarray(places.T)
    return pa.table({"point": np.arange(first_id, first_id + len(x)), "x": x, "y": y})


def query_table(rectangles: Floats, first_id: int = 0) -> pa.Table:
    x_min, y_min, x_max, y_max = np.ascontiguousarray(rectangles.T)
    ids = np.arange(first_id, first_id + len(x_min))
    return pa.table({"id": ids, "x_min": x_min, "y_min": y_min, "x_max": x_max, "y_max": y_max})


def _split(table: pa.Table) -> Iterator[pa.Table]:
    """One table per file of a batch."""
    cuts = np.linspace(0, table.num_rows, FILES_PER_BATCH + 1).astype(int).tolist()
    for begin, end in pairwise(cuts):
        yield table.slice(begin, end - begin)


def _begins(counts: Sequence[int]) -> list[int]:
    """The number of the first row of every batch."""
    return [0, *accumulate(counts)][:-1]
