"""Auto on a map: keeps every instance equally busy, and shares cells that none can hold."""

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from skewless.load.imbalance import falls, overload
from skewless.planning.auto import AIM, ALARM, Auto
from skewless.planning.decision import Decision, Limits, Memory
from skewless.planning.partitions.hotkeys import PATIENCE
from skewless.planning.snapshot import Loads
from skewless.planning.tiles.handovers import FOLD
from skewless.planning.tiles.measure import MeasuredTime, by_instance, instance_loads
from skewless.planning.tiles.merging import merged
from skewless.planning.tiles.plan import planned, stay
from skewless.planning.tiles.policy import CELLS, TilePolicy, check_cells
from skewless.planning.tiles.search import reachable, relieved
from skewless.planning.tiles.snapshot import TileSnapshot
from skewless.routing.tiles import Tile, TileRoute

_MEASURE = MeasuredTime()


@dataclass(frozen=True)
class AutoTiles(TilePolicy):
    """What `sk.Auto` does for subscriptions: it plans by measured time, and aims at the straggler.

    If the straggler is more than `threshold` above what can be reached, tiles and parts of tiles
    move to light instances, at most `max_moves` rectangles per round (None: as many as it takes).
    A cell that is too hot to be moved is shared by several instances if `split` is True, and folded
    back when it has cooled. `instances`, `busy_ms` and `every` are those of `Auto`.

    >>> AutoTiles.of(Auto(instances=3)).start(cores=8).instances
    3
    """

    instances: int | tuple[int, int] | None = None
    threshold: float = 0.1
    max_moves: int | None = None
    split: bool = True
    every: int = 1
    busy_ms: float = TilePolicy.busy_ms
    cells: int = CELLS

    def __post_init__(self) -> None:
        # The options are Auto's, and so are their bounds.
        Auto(**{field.name: getattr(self, field.name) for field in fields(Auto)})
        check_cells(self.cells)

    @staticmethod
    def of(policy: Auto, cells: int = CELLS) -> "AutoTiles":
        """The same options, on a map."""
        options = {field.name: getattr(policy, field.name) for field in fields(Auto)}
        return AutoTiles(**options, cells=cells)

    def describe(self) -> dict[str, Any]:
        """Under the name that users know."""
        return {**super().describe(), "policy": Auto.__name__}

    def limits(self, partitions: int) -> Limits:
        return Limits(max_moves=self.max_moves)

    def plan(self, snapshot: TileSnapshot, memory: Memory) -> Decision[TileRoute]:
        route, cool, folded = self._folded(snapshot, memory)
        loads = instance_loads(snapshot, route, _MEASURE)
        level = reachable(snapshot.work, loads, share=self.split)
        excess = (loads - level) / level if level > 0 else np.zeros(route.count)
        above = np.flatnonzero(excess > self.threshold).tolist()
        after_this = {"above": above, "cool": cool}
        acts = bool(above) and (
            not set(above).isdisjoint(memory.get("above", ()))
            or excess.max() > ALARM * self.threshold
        )
        if acts:
            better = relieved(
                snapshot.work,
                route,
                level=level,
                tolerance=AIM * self.threshold,
                share=self.split,
                max_moves=self.max_moves,
            )
            if falls(loads, instance_loads(snapshot, better, _MEASURE)):
                plan = planned(snapshot, better, "", _MEASURE)
                plan = replace(plan, reason=_reason(snapshot, better, loads, folded))
                return plan.decision(after_this)
        if folded:
            reason = f"cool cells folded back: {folded}"
            return planned(snapshot, route, reason, _MEASURE).decision(after_this)
        tiles = merged(route.tiles)
        if len(tiles) < len(route.tiles):
            together = TileRoute(route.grid, route.count, tiles)
            reason = f"tiles merged: {len(route.tiles)} become {len(tiles)}"
            return planned(snapshot, together, reason, _MEASURE).decision(after_this)
        return stay(snapshot, self._why_not(above, acts), _MEASURE).decision(after_this)

    def _why_not(self, above: list[int], acts: bool) -> str:
        if acts:
            return "no move would relieve the straggler"
        if above:
            return f"instance {above[0]} may be a straggler: waits a round"
        return f"the straggler is within {self.threshold:.0%} of what can be reached"

    def _folded(
        self, snapshot: TileSnapshot, memory: Memory
    ) -> tuple[TileRoute, dict[str, int], int]:
        """The route without shared tiles that have cooled, for how many rounds others have been
        cool, and how many were folded."""
        route = snapshot.route
        work = _MEASURE.of_tiles(snapshot, route.tiles)
        loads = by_instance(route, work)
        level = float(loads.mean())
        before = memory.get("cool", {})
        cool: dict[str, int] = {}
        tiles: list[Tile] = []
        folded = 0
        for tile, load in zip(route.tiles, work.tolist(), strict=True):
            name = f"{tile.top},{tile.left}"
            if len(tile.members) > 1 and (load < FOLD * level or not self.split):
                rounds = int(before.get(name, 0)) + 1
                if rounds >= PATIENCE or not self.split:
                    tiles.append(tile.given((self._keeper(tile, load, loads),)))
                    folded += 1
                    continue
                cool[name] = rounds
            tiles.append(tile)
        if not folded:
            return route, cool, 0
        return TileRoute(route.grid, route.count, merged(tiles)), cool, folded

    def _keeper(self, tile: Tile, load: float, loads: Loads) -> int:
        """The lightest of the members, who keeps the tile; `loads` follow."""
        members = list(tile.members)
        loads[members] -= load / len(members)
        keeper = min(members, key=lambda m: loads[m])
        loads[keeper] += load
        return keeper


def _reason(snapshot: TileSnapshot, route: TileRoute, loads: Loads, folded: int) -> str:
    parts = [f"the straggler is {overload(loads):.0%} above the mean"]
    before = {t for t in snapshot.route.tiles if len(t.members) > 1}
    new = [t for t in route.tiles if len(t.members) > 1 and t not in before]
    if new:
        parts.append(f"hot cells shared: {len(new)}")
    if folded:
        parts.append(f"cool cells folded back: {folded}")
    parts.append(f"tiles: {len(snapshot.route.tiles)} become {len(route.tiles)}")
    return "; ".join(parts)
