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
from skewless.lab.workloads.streams import START_US, TIMESTAMP, write_stream

SEED = 7
BOUNDS = (0.0, 0.0, 1.0, 1.0)
# The paper's subscriptions: squares with 0.16 % of the side of the map.
SIDE = 0.0016
# Of a join by distance: with 2 M rows of the other side in reach, six of them are near.
RADIUS = 0.001
POINTS = "point long, x double, y double"
SUBSCRIPTIONS = "id long, x_min double, y_min double, x_max double, y_max double"
CHANGES = f"{SUBSCRIPTIONS}, op string"
MOVING = "id long, ts timestamp, x double, y double"
# A source with a file per core in every batch, as a topic has partitions: nobody reads alone.
FILES_PER_BATCH = 2

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Square:
    """A part of the map."""

    x: float
    y: float
    side: float

    def drawn(self, rng: np.random.Generator, count: int) -> Floats:
        """Places in it, all equally likely: x and y."""
        corner = np.array([[self.x], [self.y]])
        return corner + self.side * rng.random((2, count))


MAP = Square(0.0, 0.0, 1.0)
# The hotspot of the paper: 15 % of the side of the map. It is all in one half of any map that is
# halved between two instances.
HOTSPOT = Square(0.2, 0.2, 0.15)


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
        return {**asdict(self), "batches": self.length.batches, "warm_up": self.length.warm_up}


@dataclass(frozen=True)
class Crowd(Scene):
    """Points for subscriptions that are there from the beginning.

    From batch `hot_from` on the share `hot` of the points is in the hotspot. The share `awaiting`
    of the subscriptions is there from the beginning.
    """

    subscriptions: int
    points: tuple[int, ...]  # in every batch
    hot: float = 0.0
    hot_from: int = 0
    awaiting: float = 0.0

    @property
    def rows(self) -> list[int]:
        return list(self.points)

    def write(self, folder: Path) -> tuple[Path, Path]:
        rng = np.random.default_rng(SEED)
        table = squares(rng, self.subscriptions, self.awaiting)
        queries = write_stream(folder / "subscriptions", _split(table))
        return write_stream(folder / "points", self._files(rng)), queries

    def _files(self, rng: np.random.Generator) -> Iterator[pa.Table]:
        for batch, (begin, count) in enumerate(zip(_begins(self.points), self.points, strict=True)):
            hot = self.hot if batch >= self.hot_from else 0.0
            yield from _split(scattered(rng, count, hot, begin))

    def begun(self, inputs: tuple[Path, Path], batches: int, folder: Path) -> tuple[Path, Path]:
        return first(inputs[0], batches * FILES_PER_BATCH, folder / "left"), inputs[1]


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
        changes = (squares(rng, count, first_id=begin) for begin, count in begins)
        added = (t.append_column("op", pa.repeat("add", t.num_rows)) for t in changes)
        queries = write_stream(folder / "subscriptions", added)
        points = (scattered(rng, self.points, first_id=i * self.points) for i in range(len(counts)))
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
            x, y = MAP.drawn(rng, count)
            yield pa.table({"id": rows, "ts": times.cast(TIMESTAMP), "x": x, "y": y})


def scattered(
    rng: np.random.Generator, count: int, hot: float = 0.0, first_id: int = 0
) -> pa.Table:
    """Points anywhere on the map, but this share of them in the hotspot."""
    x, y = _partly(rng, count, hot)
    return pa.table({"point": np.arange(first_id, first_id + count), "x": x, "y": y})


def squares(rng: np.random.Generator, count: int, hot: float = 0.0, first_id: int = 0) -> pa.Table:
    """Subscriptions anywhere on the map, but this share of them in the hotspot."""
    x, y = np.minimum(_partly(rng, count, hot), 1 - SIDE)
    ids = np.arange(first_id, first_id + count)
    return pa.table({"id": ids, "x_min": x, "y_min": y, "x_max": x + SIDE, "y_max": y + SIDE})


def quiet_points(count: int = 100_000) -> Floats:
    """What was seen before there was a hotspot, as rows of x and y."""
    return MAP.drawn(np.random.default_rng(SEED + 1), count).T


def _partly(rng: np.random.Generator, count: int, hot: float) -> Floats:
    is_hot = rng.random(count) < hot
    return np.where(is_hot, HOTSPOT.drawn(rng, count), MAP.drawn(rng, count))


def _split(table: pa.Table) -> Iterator[pa.Table]:
    """One table per file of a batch."""
    cuts = np.linspace(0, table.num_rows, FILES_PER_BATCH + 1).astype(int).tolist()
    for begin, end in pairwise(cuts):
        yield table.slice(begin, end - begin)


def _begins(counts: Sequence[int]) -> list[int]:
    """The number of the first row of every batch."""
    return [0, *accumulate(counts)][:-1]
