"""StaticGrid: tiles that never change, even in area, or of equal cost by an earlier time."""

from dataclasses import dataclass
from typing import Any

from skewless.planning.checks import check_count, counted
from skewless.planning.decision import Decision, Memory
from skewless.planning.tiles.history import History
from skewless.planning.tiles.measure import MeasuredTime
from skewless.planning.tiles.plan import stay
from skewless.planning.tiles.policy import CELLS, TilePolicy, check_cells
from skewless.planning.tiles.snapshot import TileSnapshot
from skewless.routing.cells import CellGrid
from skewless.routing.tiles import TileRoute, even_tiles


@dataclass(frozen=True)
class StaticGrid(TilePolicy):
    """One tile per instance, on a map of `cells` × `cells`.

    `history` is an array of points (x, y), or a pair of points and rectangles (x_min, y_min, x_max,
    y_max): then all tiles cost about the same by SWARM's model on this history. Without it, all
    have about the same area.

    >>> [tile.area for tile in StaticGrid(instances=4, cells=8).start(cores=2).tiles]
    [16, 16, 16, 16]
    """

    instances: int | None = None
    history: Any = None
    cells: int = CELLS

    def __post_init__(self) -> None:
        check_count(self.instances)
        check_cells(self.cells)
        if self.history is not None:
            object.__setattr__(self, "history", History.of(self.history))

    def describe(self) -> dict[str, Any]:
        """The policy and its options; of the history only a digest."""
        return {
            "policy": type(self).__name__,
            "instances": self.instances,
            "history": None if self.history is None else self.history.digest,
            "cells": self.cells,
        }

    def tiles(self, grid: CellGrid, cores: int) -> TileRoute:
        count = counted(self.instances, cores)
        if self.history is None:
            return even_tiles(grid, count)
        return TileRoute(grid, count, self.history.tiles(grid, count))

    def resized(self, route: TileRoute, instances: int) -> TileRoute:
        return self.tiles(route.grid, instances)

    def plan(self, snapshot: TileSnapshot, memory: Memory) -> Decision[TileRoute]:
        return stay(snapshot, "a static grid moves nothing", MeasuredTime()).decision()
