"""The maps of the SWARM experiments: a crowd with hotspots, or points from a file."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow.parquet as pq

from skewless.errors import bad_argument
from skewless.lab.workloads.hotspots import (
    Crowd,
    HotMap,
    Hotspot,
    Kind,
    around,
    hotspots,
)
from skewless.load.corners import CornerCounts
from skewless.routing.cells import CellGrid
from skewless.simulate.tiles import MapRound

Reals = npt.NDArray[np.float64]
ROUND_S = 15
UNIT = (0.0, 0.0, 1.0, 1.0)
# A round's distribution is drawn as so many points, and all subscriptions as so many squares.
SAMPLED_POINTS = 100_000
SAMPLED_QUERIES = 50_000
HISTORY_POINTS, HISTORY_QUERIES = 400_000, 200_000
# The history was taken so long before the run.
HISTORY_AGE_S = 7_200.0
# The queries of a hotspot come within its first minute.
_COME_IN_ROUNDS = 4


@dataclass(frozen=True, eq=False)
class Scene:
    """The rounds of a run, and the history that a static grid may be made from."""

    grid: CellGrid
    rounds: tuple[MapRound, ...]
    history: tuple[Reals, Reals]
    shown: dict[int, Reals]  # some points of some rounds, for pictures


def corners(grid: CellGrid, rectangles: Reals) -> CornerCounts:
    left, top, right, bottom = rectangles.T
    ends = (grid.rows(top), grid.columns(left), grid.rows(bottom), grid.columns(right))
    return CornerCounts.of(grid.side, *ends)


def shares(grid: CellGrid, points: Reals) -> Reals:
    x, y = points.T
    return np.bincount(grid.cells(x, y), minlength=grid.count) / len(points)


def crowd_scene(
    seed: int,
    *,
    rounds: int,
    cells: int,
    kind: Kind | None = None,
    start_s: float = 600.0,
    length_s: float = 1_200.0,
    swing: float = 0.7,
    points: int = SAMPLED_POINTS,
) -> Scene:
    """A crowd for so many rounds, with the hotspots of a kind.

    A hotspot brings as large a share of the subscriptions as of the points; they go with it.
    """
    rng = np.random.default_rng([seed, 77])
    crowd = Crowd.cities(rng, swing=swing)
    spots = () if kind is None else hotspots(kind, start_s=start_s, length_s=length_s)
    world = HotMap(crowd, spots)
    grid = CellGrid(cells, UNIT)
    before = crowd.points(rng, HISTORY_POINTS, -HISTORY_AGE_S)
    made, shown = [], {}
    brought = {spot: CornerCounts.empty(cells) for spot in spots}
    for number in range(rounds):
        at_s = float(number * ROUND_S)
        drawn = world.points(rng, points, at_s)
        arrived = gone = CornerCounts.empty(cells)
        if number == 0:
            arrived = corners(grid, around(crowd.points(rng, SAMPLED_QUERIES, at_s)))
        for spot in spots:
            new = _new_queries(rng, grid, spot, at_s)
            brought[spot] += new
            arrived += new
            if spot.end_s <= at_s < spot.end_s + ROUND_S:
                gone += brought[spot]
        made.append(MapRound(shares(grid, drawn), arrived, gone))
        shown[number] = drawn[:4_000]
    history = (before, around(before[:HISTORY_QUERIES]))
    return Scene(grid, tuple(made), history, shown)


def _new_queries(
    rng: np.random.Generator, grid: CellGrid, spot: Hotspot, at_s: float
) -> CornerCounts:
    """The subscriptions that a hotspot brings in a round."""
    if not spot.start_s <= at_s < spot.start_s + _COME_IN_ROUNDS * ROUND_S:
        return CornerCounts.empty(grid.side)
    count = round(SAMPLED_QUERIES * spot.share / _COME_IN_ROUNDS)
    return corners(grid, around(spot.points(rng, count)))


def file_scene(path: Path, seed: int, *, rounds: int, cells: int) -> Scene:
    """The points of a parquet file with the columns ts, lat and lon, in the order of time.

    The first quarter is the history, and where subscriptions are; the rest is dealt to the rounds.
    The map is where 99.8 % of the points are.
    """
    table = pq.read_table(path)
    missing = {"ts", "lat", "lon"} - set(table.column_names)
    if missing:
        raise bad_argument("points", str(path), f"a file with the columns {sorted(missing)}")
    table = table.select(["ts", "lat", "lon"]).drop_null().sort_by("ts")
    both = np.column_stack([table["lon"].to_numpy(), table["lat"].to_numpy()]).astype(np.float64)
    low, high = np.quantile(both, [0.001, 0.999], axis=0)
    if not (low < high).all():
        raise bad_argument("points", str(path), "points that are not all on a line")
    both = (both[((both >= low) & (both <= high)).all(axis=1)] - low) / (high - low)
    grid = CellGrid(cells, UNIT)
    quarter = len(both) // 4
    before, stream = both[:quarter], both[quarter:]
    if len(stream) < rounds:
        raise bad_argument("points", str(path), f"at least {2 * rounds} points")
    rng = np.random.default_rng(seed)
    queries = before[rng.integers(0, quarter, SAMPLED_QUERIES)]
    first = corners(grid, around(queries))
    made, shown = [], {}
    for number, drawn in enumerate(_chunks(stream, rounds)):
        arrived = first if number == 0 else CornerCounts.empty(cells)
        made.append(MapRound(shares(grid, drawn), arrived, CornerCounts.empty(cells)))
        shown[number] = drawn[:4_000]
    return Scene(grid, tuple(made), (before, around(before[:HISTORY_QUERIES])), shown)


def _chunks(points: Reals, count: int) -> Iterator[Reals]:
    """Overlapping pieces, so that few points make no noise: each has a fortieth of the stream."""
    size = max(1, len(points) // min(40, count))
    for start in np.linspace(0, len(points) - size, count).astype(np.int64):
        yield points[start : start + size]
