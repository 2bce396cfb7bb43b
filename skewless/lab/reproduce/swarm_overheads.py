"""What SWARM's bookkeeping costs here: times of single operations, and numbers that are sent."""

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np

from skewless.lab.reproduce.swarm_experiments import EXECUTORS, Point, policies
from skewless.lab.reproduce.swarm_maps import SAMPLED_QUERIES
from skewless.load.corners import CornerCounts
from skewless.load.lines import Collectors, Lines
from skewless.planning.tiles.policy import TilePolicy
from skewless.planning.tiles.reduction import reduction
from skewless.planning.tiles.snapshot import TileSnapshot
from skewless.routing.tiles import TileRoute, even_tiles

_POINTS = 1_000_000
_REPEATS = 5
# What the paper's centralised rival sends: points and four corners of every cell.
_PER_CELL = 5
_PER_MACHINE = 2
_PAPER_CELLS = 1_000


@dataclass(frozen=True)
class Overheads:
    """Microseconds per operation, and numbers per round."""

    times_us: dict[str, float]
    numbers: dict[str, float]

    def as_json(self) -> dict[str, Any]:
        return {"timesUs": self.times_us, "numbersPerRound": self.numbers}


def overheads(*, quick: bool, clock: Callable[[], float] = perf_counter) -> Overheads:
    """Measure on the usual map of 22 executors; a time is the least of five."""
    point = Point("queries", 1.0, rounds=1, points=10_000 if quick else 100_000)
    scene = point.scene(seed=1)
    grid, happens = scene.grid, scene.rounds[0]
    count = 100_000 if quick else _POINTS
    route = even_tiles(grid, EXECUTORS)
    rng = np.random.default_rng(5)
    x, y = rng.random((2, count))
    spread = rng.integers(0, 2**64, count, dtype=np.uint64)
    tile = route.tiles[0]
    places = rng.integers(0, tile.rows, count)
    arrived = Collectors.empty(tile.rows)
    shares = happens.shares * count
    nothing = CornerCounts.empty(grid.side)
    snapshot = TileSnapshot(route, shares, shares, shares, happens.arrived, nothing)
    lines = [Lines.empty(n) for tile in route.tiles for n in (tile.rows, tile.columns)]
    collected = [Collectors.empty(each.count) for each in lines]

    def least(operation: Callable[[], object], per: int = 1) -> float:
        found = []
        for _ in range(_REPEATS):
            started = clock()
            operation()
            found.append(clock() - started)
        return 1e6 * min(found) / per

    def statistics() -> object:
        return [each.round(new) for each, new in zip(lines, collected, strict=True)]

    def planning(policy: TilePolicy, start: TileRoute) -> Callable[[], object]:
        fresh = TileSnapshot(start, shares, shares, shares, happens.arrived, nothing)
        return lambda: policy.plan(fresh, {"above": list(range(EXECUTORS))})

    made = policies(scene)
    times = {
        "find the executor of a point": least(
            lambda: route.homes("left", grid.hashes(grid.cells(x, y)), spread), count
        ),
        "collect the statistics of a point": least(
            lambda: (arrived.with_points(places), arrived.with_points(places)), count
        ),
        "fold in a round, all executors": least(statistics),
        "one reduction of SWARM": least(lambda: reduction(snapshot, route)),
        "Auto's plan from a cold start": least(planning(made["Auto"], route)),
        "find the executors of a subscription": least(
            lambda: route.reached(*_ends(rng, grid.side)), _ENDS
        ),
    }
    touched = float(np.count_nonzero(happens.shares))
    numbers = {
        "SWARM: 2 per executor": float(_PER_MACHINE * EXECUTORS),
        "centralised: 5 per cell of 1000 × 1000": float(_PER_CELL * _PAPER_CELLS**2),
        f"centralised: 5 per cell of {grid.side} × {grid.side}": float(_PER_CELL * grid.count),
        "ours: 3 per cell with points, 4 per new subscription": 3 * touched,
    }
    return Overheads(times, numbers)


_ENDS = SAMPLED_QUERIES


def _ends(rng: np.random.Generator, side: int) -> list[Any]:
    rows, columns = np.sort(rng.integers(0, side, (2, 2, _ENDS)), axis=1)
    return [rows[0], columns[0], rows[1], columns[1]]
