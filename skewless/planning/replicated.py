"""Replicated: every instance knows all subscriptions, and each point goes to one at random."""

from dataclasses import dataclass

from skewless.planning.checks import check_count, counted
from skewless.planning.decision import Decision, Memory
from skewless.planning.tiles.measure import MeasuredTime
from skewless.planning.tiles.plan import stay
from skewless.planning.tiles.policy import TilePolicy
from skewless.planning.tiles.snapshot import TileSnapshot
from skewless.routing.cells import CellGrid
from skewless.routing.tiles import Tile, TileRoute


@dataclass(frozen=True)
class Replicated(TilePolicy):
    """One tile that all instances share: even, whatever the points do, and large.

    >>> Replicated(instances=3).start(cores=2).tiles[0].members
    (0, 1, 2)
    """

    instances: int | None = None

    def __post_init__(self) -> None:
        check_count(self.instances)

    def tiles(self, grid: CellGrid, cores: int) -> TileRoute:
        count = counted(self.instances, cores)
        return TileRoute(grid, count, (Tile(0, 0, grid.side, grid.side, tuple(range(count))),))

    def resized(self, route: TileRoute, instances: int) -> TileRoute:
        return self.tiles(route.grid, instances)

    def plan(self, snapshot: TileSnapshot, memory: Memory) -> Decision[TileRoute]:
        return stay(snapshot, "all instances share the map", MeasuredTime()).decision()
