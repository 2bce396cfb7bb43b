"""Maps written as rows of loads, for tests of planners of tiles."""

from collections.abc import Sequence

import numpy as np

from skewless.load.corners import CornerCounts
from skewless.planning.tiles.measure import MeasuredTime, instance_loads
from skewless.planning.tiles.plan import TilePlan
from skewless.planning.tiles.policy import TilePolicy
from skewless.planning.tiles.snapshot import TileSnapshot
from skewless.routing.cells import CellGrid
from skewless.routing.tiles import Tile, TileRoute


def grid_of(side: int) -> CellGrid:
    return CellGrid(side, (0.0, 0.0, 1.0, 1.0))


def snapshot(
    route: TileRoute,
    load: Sequence[Sequence[float]] | np.ndarray,
    queries: np.ndarray | None = None,
) -> TileSnapshot:
    """Points and load are the same; `queries` has one per cell by default."""
    side = route.grid.side
    values = np.asarray(load, np.float64).ravel()
    cells = np.arange(side * side) if queries is None else queries
    corners = CornerCounts.of(side, *(cells // side, cells % side) * 2)
    return TileSnapshot(route, values, values, values, corners, CornerCounts.empty(side))


def split_rows(side: int, *members: tuple[int, ...]) -> TileRoute:
    """A map in as many horizontal stripes as there are members, the last one the largest."""
    ends = [*range(len(members)), side]
    count = 1 + max(m for of in members for m in of)
    tiles = [Tile(ends[n], 0, ends[n + 1], side, of) for n, of in enumerate(members)]
    return TileRoute(grid_of(side), count, tuple(tiles))


def loads(snapshot: TileSnapshot, route: TileRoute | None = None) -> list[float]:
    route = snapshot.route if route is None else route
    return instance_loads(snapshot, route, MeasuredTime()).tolist()


def planned(policy: TilePolicy, snapshot: TileSnapshot, memory: dict) -> tuple[TilePlan, dict]:
    """The checked plan of a policy, and its memory."""
    decision = policy.plan(snapshot, memory)
    plan = decision.plan
    assert isinstance(plan, TilePlan)
    assert decision.reason == plan.reason
    assert decision.route == plan.route
    plan.check(snapshot, policy.limits(snapshot.route.partitions))
    return plan, decision.memory
