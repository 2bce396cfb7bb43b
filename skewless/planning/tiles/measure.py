"""By what a planner of tiles weighs an instance: measured time, or SWARM's N · Q · R."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from skewless.planning.snapshot import Loads
from skewless.planning.tiles.snapshot import TileSnapshot
from skewless.routing.tiles import Tile, TileRoute


class TileMeasure(Protocol):
    """The load of tiles, had they been in force in the snapshot's round."""

    def of_tiles(self, snapshot: TileSnapshot, tiles: tuple[Tile, ...]) -> Loads: ...


@dataclass(frozen=True)
class MeasuredTime:
    """What the tasks measured."""

    def of_tiles(self, snapshot: TileSnapshot, tiles: tuple[Tile, ...]) -> Loads:
        ends = np.array([tile.ends for tile in tiles], np.int64)
        return snapshot.work.within(*ends.T)


@dataclass(frozen=True)
class SwarmCost:
    """The numerator of eq. 5. R(S) is the same for all, so it changes no order."""

    def of_tiles(self, snapshot: TileSnapshot, tiles: tuple[Tile, ...]) -> Loads:
        return snapshot.counts(tiles).cost


def by_instance(route: TileRoute, loads: Loads) -> Loads:
    """The load of every instance, from that of every tile: members share evenly.

    >>> from skewless.routing.cells import CellGrid
    >>> tile = Tile(0, 0, 1, 1, (0, 2))
    >>> shared = TileRoute(CellGrid(1, (0.0, 0.0, 1.0, 1.0)), 3, (tile,))
    >>> by_instance(shared, np.array([6.0])).tolist()
    [3.0, 0.0, 3.0]
    """
    sizes = np.array([len(tile.members) for tile in route.tiles])
    members = np.array([m for tile in route.tiles for m in tile.members])
    shares = np.repeat(loads / sizes, sizes)
    return np.bincount(members, shares, route.count).astype(np.float64, copy=False)


def instance_loads(snapshot: TileSnapshot, route: TileRoute, measure: TileMeasure) -> Loads:
    """The load of every instance under a route."""
    return by_instance(route, measure.of_tiles(snapshot, route.tiles))
