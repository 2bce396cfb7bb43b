"""A proposal to change tiles, and the one place where it is checked before it is applied."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from skewless.load.imbalance import falls, overload
from skewless.planning.decision import Decision, Limits, Memory
from skewless.planning.plan import MovesError, NoGainError, PlacementError, TooManyMovesError
from skewless.planning.tiles.measure import MeasuredTime, TileMeasure, instance_loads
from skewless.planning.tiles.snapshot import TileSnapshot
from skewless.routing.tiles import Tile, TileRoute


@dataclass(frozen=True, order=True)
class TileMove:
    """A rectangle of cells goes from some members to others. `cells` has those it goes to."""

    cells: Tile
    source: tuple[int, ...]

    @property
    def target(self) -> tuple[int, ...]:
        return self.cells.members

    def told(self, side: int) -> list[int]:
        """[first cell, owner before, owner after]."""
        return [self.cells.top * side + self.cells.left, self.source[0], self.target[0]]


@dataclass(frozen=True)
class TilePlan:
    """The complete next tiles, what changes, and why.

    Doing nothing is also a plan: the same route, with the reason. Of a tile with several members,
    each takes an equal share. The imbalance is how far the straggler is above the mean, as
    `measure` weighs the instances.
    """

    route: TileRoute
    moves: tuple[TileMove, ...]
    reason: str
    imbalance_before: float
    imbalance_after: float
    moved_subscriptions: int
    measure: TileMeasure = field(default_factory=MeasuredTime)

    @property
    def does_nothing(self) -> bool:
        """Whether no cell changes its members. Tiles may still be merged."""
        return not self.moves

    def decision(self, memory: Memory | None = None) -> Decision[TileRoute]:
        """The decision to apply this plan."""
        return Decision(self.route, self.reason, memory or {}, self)

    def check(self, snapshot: TileSnapshot, limits: Limits) -> None:
        """Raise the `PlanError` that says what is wrong.

        A plan that only merges tiles, or that folds a shared tile back, may cost balance. Every
        other change must lower the loads, compared from the heaviest instance down.
        """
        old, new = snapshot.route, self.route
        if (new.grid, new.count) != (old.grid, old.count):
            raise PlacementError(
                f"route: got {new.grid} on {new.count} instances; takes {old.grid} on {old.count}"
            )
        moves = moves_between(old, new)
        if tuple(sorted(self.moves)) != moves:
            raise MovesError(
                f"moves: got {len(self.moves)}; takes the {len(moves)} between the two routes"
            )
        met = met_by(snapshot, moves)
        if met != self.moved_subscriptions:
            raise MovesError(f"moved_subscriptions: got {self.moved_subscriptions}; takes {met}")
        if limits.max_moves is not None and len(moves) > limits.max_moves:
            raise TooManyMovesError(f"moves: got {len(moves)}; takes at most {limits.max_moves}")
        folds = any(len(move.target) < len(move.source) for move in moves)
        if not moves or folds:
            return
        before = instance_loads(snapshot, old, self.measure)
        after = instance_loads(snapshot, new, self.measure)
        if not falls(before, after):
            raise NoGainError(
                f"moves: {len(moves)} rectangles move, but the straggler's load goes from "
                f"{before.max():g} to {after.max():g}"
            )

    def told(self) -> dict[str, Any]:
        side = self.route.grid.side
        shared = [tile for tile in self.route.tiles if len(tile.members) > 1]
        return {
            "moves": [move.told(side) for move in self.moves],
            "movedKeys": 0,
            "movedRows": self.moved_subscriptions,
            "imbalanceBefore": round(self.imbalance_before, 4),
            "imbalanceAfter": round(self.imbalance_after, 4),
            "movedCells": sum(move.cells.area for move in self.moves),
            "tiles": len(self.route.tiles),
            "shared": [tile.to_json() for tile in shared],
        }


def planned(
    snapshot: TileSnapshot, route: TileRoute, reason: str, measure: TileMeasure
) -> TilePlan:
    """The plan that leads to a route."""
    moves = moves_between(snapshot.route, route)
    return TilePlan(
        route=route,
        moves=moves,
        reason=reason,
        imbalance_before=overload(instance_loads(snapshot, snapshot.route, measure)),
        imbalance_after=overload(instance_loads(snapshot, route, measure)),
        moved_subscriptions=met_by(snapshot, moves),
        measure=measure,
    )


def stay(snapshot: TileSnapshot, reason: str, measure: TileMeasure) -> TilePlan:
    """The plan that does nothing."""
    return planned(snapshot, snapshot.route, reason, measure)


def moves_between(old: TileRoute, new: TileRoute) -> tuple[TileMove, ...]:
    """The rectangles of cells whose members differ, in order.

    Each is where a tile of one route meets a tile of the other.

    >>> from skewless.routing.cells import CellGrid
    >>> grid = CellGrid(2, (0.0, 0.0, 1.0, 1.0))
    >>> whole = TileRoute(grid, 2, (Tile(0, 0, 2, 2, (0,)),))
    >>> cut = TileRoute(grid, 2, (Tile(0, 0, 1, 2, (0,)), Tile(1, 0, 2, 2, (1,))))
    >>> [move.told(2) for move in moves_between(whole, cut)]
    [[2, 0, 1]]
    """
    if old == new:
        return ()
    pairs = np.unique(old.tile_of_cell * len(new.tiles) + new.tile_of_cell).tolist()
    moves = []
    for first, second in (divmod(pair, len(new.tiles)) for pair in pairs):
        before, after = old.tiles[first], new.tiles[second]
        if before.members != after.members:
            both = Tile(
                max(before.top, after.top),
                max(before.left, after.left),
                min(before.bottom, after.bottom),
                min(before.right, after.right),
                after.members,
            )
            moves.append(TileMove(both, before.members))
    return tuple(sorted(moves))


def met_by(snapshot: TileSnapshot, moves: tuple[TileMove, ...]) -> int:
    """The subscriptions that rectangles meet, counted once per rectangle."""
    if not moves:
        return 0
    return int(snapshot.counts(tuple(move.cells for move in moves)).queries.sum())
