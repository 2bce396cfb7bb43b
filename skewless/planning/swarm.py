"""SWARM: in a round, the costliest machine gives tiles, or a part of one, to the cheapest."""

from dataclasses import dataclass

from skewless.planning.checks import check_whole
from skewless.planning.decision import Decision, Memory
from skewless.planning.scaling import Instances, check_range
from skewless.planning.tiles.measure import SwarmCost
from skewless.planning.tiles.merging import merged
from skewless.planning.tiles.plan import planned, stay
from skewless.planning.tiles.policy import CELLS, TilePolicy, check_cells
from skewless.planning.tiles.reduction import reduction
from skewless.planning.tiles.snapshot import TileSnapshot
from skewless.planning.tiles.stages import Stages
from skewless.routing.tiles import TileRoute


@dataclass(frozen=True)
class Swarm(TilePolicy):
    """The paper's policy for subscriptions on a map of `cells` × `cells`.

    A machine costs ΣN·Q·R over its tiles: points, subscriptions, and what arrived in the last
    round. Whether it rebalances follows the throughput (five stages; after `beta` equal decisions
    it decides otherwise). A round makes at most `reductions`. Once in `merge_every` rounds,
    tiles of one instance that form a rectangle are merged instead. It plans once every `every`
    batches.

    >>> len(Swarm(instances=5).start(cores=2).tiles)
    5
    """

    instances: Instances = None
    cells: int = CELLS
    beta: int = 20
    reductions: int = 1
    merge_every: int = 1_200  # 5 hours of 15 s rounds
    every: int = 1

    def __post_init__(self) -> None:
        check_range(self.instances)
        check_cells(self.cells)
        for name in ("beta", "reductions", "merge_every", "every"):
            check_whole(name, getattr(self, name), 1, 1_000_000)

    def plan(self, snapshot: TileSnapshot, memory: Memory) -> Decision[TileRoute]:
        route = snapshot.route
        received = float(snapshot.counts(route.tiles).received.sum())  # R(S), eq. 4
        stages = Stages.from_json(memory).after(received, self.beta)
        rounds = int(memory.get("rounds", 0)) + 1
        after_this = {**stages.to_json(), "rounds": rounds}
        measure = SwarmCost()
        if rounds % self.merge_every == 0:
            tiles = merged(route.tiles)
            if len(tiles) < len(route.tiles):
                reason = f"tiles merged: {len(route.tiles)} become {len(tiles)}"
                together = TileRoute(route.grid, route.count, tiles)
                return planned(snapshot, together, reason, measure).decision(after_this)
        if not stages.rebalances:
            reason = f"throughput stage {stages.stage}: do nothing"
            return stay(snapshot, reason, measure).decision(after_this)
        reasons = []
        for _ in range(self.reductions):
            found = reduction(snapshot, route)
            if found is None:
                break
            route = TileRoute(route.grid, route.count, found.tiles)
            reasons.append(found.reason)
        if not reasons:
            reason = "no move and no split would relieve a machine"
            return stay(snapshot, reason, measure).decision(after_this)
        return planned(snapshot, route, "; ".join(reasons), measure).decision(after_this)
