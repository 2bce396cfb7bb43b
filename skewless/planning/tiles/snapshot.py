"""What a planner of tiles may know: the tiles, the load of every cell, and the subscriptions."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from skewless.errors import SkewlessError
from skewless.load.areas import AreaSums
from skewless.load.corners import CornerCounts
from skewless.load.lines import Counts, Lines
from skewless.planning.snapshot import Loads
from skewless.routing.tiles import Axis, Tile, TileRoute


@dataclass(frozen=True, eq=False)
class TileSnapshot:
    """The measured state of a map after a round; read-only.

    Arrays have one entry per cell, row by row. `load` is measured work (ms per round, of all the
    instances that share the cell), `points` those of this round, and `faded` the same as SWARM
    fades them (`load.lines.fade`). `subscriptions` are all live ones, `arrived` those of this
    round.

    It is not a `planning.snapshot.Snapshot`: a cell may have several members, and the load of a
    table's owner would then be wrong. `planning.tiles.measure` has the loads per instance.
    """

    route: TileRoute
    load: Loads
    points: Loads
    faded: Loads
    subscriptions: CornerCounts
    arrived: CornerCounts

    def __post_init__(self) -> None:
        grid = self.route.grid
        for name in ("load", "points", "faded"):
            values = getattr(self, name)
            if values.shape != (grid.count,):
                raise SkewlessError(
                    f"{name}: got {values.shape} values; takes one per cell ({grid.count})"
                )
            if not np.isfinite(values).all() or (values < 0).any():
                raise SkewlessError(f"{name}: takes finite values of at least 0")
        for name in ("subscriptions", "arrived"):
            counts = getattr(self, name)
            if counts.side != grid.side:
                raise SkewlessError(
                    f"{name}: got a map of side {counts.side}; takes one of side {grid.side}"
                )
            if (counts.corners < 0).any():
                raise SkewlessError(f"{name}: takes counts of at least 0")

    @cached_property
    def work(self) -> AreaSums:
        """The measured load of any rectangle of cells."""
        return AreaSums.of(self.route.grid.side, self.load)

    def counts(self, tiles: tuple[Tile, ...]) -> Counts:
        """N, Q and R of every tile."""
        top, left, bottom, right = np.array([tile.ends for tile in tiles], np.int64).T
        inside = (top, left, bottom - 1, right - 1)
        points, faded = (sums.within(top, left, bottom, right) for sums in self._points)
        return Counts(
            points=faded,
            queries=self.subscriptions.meeting(*inside).astype(np.float64),
            received=points + self.arrived.meeting(*inside),
        )

    def lines(self, tile: Tile, axis: Axis) -> Lines:
        """SWARM's statistics of a tile's rows or columns."""
        return Lines.of(tile, axis, self.faded, self.points, self.subscriptions, self.arrived)

    @cached_property
    def _points(self) -> tuple[AreaSums, AreaSums]:
        side = self.route.grid.side
        return AreaSums.of(side, self.points), AreaSums.of(side, self.faded)
