"""Random maps: plans are valid, loads come as near as can be, and then rest."""

from dataclasses import dataclass, field

import numpy as np
import pytest

from skewless.planning.swarm import Swarm
from skewless.planning.tiles.auto import AutoTiles
from skewless.planning.tiles.policy import TilePolicy
from skewless.planning.tiles.reduction import reduction
from skewless.planning.tiles.snapshot import TileSnapshot
from skewless.routing.tiles import TileRoute
from tests.planning.tiles.cases import grid_of, loads, planned, snapshot
from tests.routing.tilings import random_tiles

SIDE = 32
QUIET = 3


@dataclass
class Map:
    """Cells with loads, tiles, and a planner's memory; the load stays until told so."""

    rng: np.random.Generator
    policy: TilePolicy
    route: TileRoute
    memory: dict = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.drift()

    def drift(self) -> None:
        """Other places are hot from now on."""
        rng = self.rng
        kind = rng.integers(3)
        if kind == 0:
            self.load = rng.pareto(rng.choice([0.7, 1.0, 2.0]), (SIDE, SIDE))
        else:
            y, x = np.mgrid[:SIDE, :SIDE] / SIDE
            self.load = rng.random((SIDE, SIDE)) * 0.1
            for _ in range(kind):
                centre = rng.random(2)
                width = rng.uniform(0.01, 0.2)
                away = (y - centre[0]) ** 2 + (x - centre[1]) ** 2
                self.load += rng.random() * 9 * np.exp(-away / (2 * width**2))

    def snapshot(self) -> TileSnapshot:
        return snapshot(self.route, self.load)

    def settle(self, most_rounds: int) -> None:
        active, quiet = 0, 0
        while quiet < QUIET:
            plan, self.memory = planned(self.policy, self.snapshot(), self.memory)
            changed = plan.route != self.route
            # A small excess waits one round before it is acted on; after two there is none.
            assert not (changed and quiet >= 2), "ping-pong"
            active += changed
            quiet = 0 if changed else quiet + 1
            self.route = plan.route
            assert active <= most_rounds, f"still busy after {active} rounds: {plan.reason}"


@pytest.mark.parametrize("seed", range(16))
@pytest.mark.parametrize("split", [True, False])
def test_auto_settles_near_the_best_there_is(seed: int, split: bool) -> None:
    print(f"seed {seed}")
    rng = np.random.default_rng(seed)
    instances = int(rng.integers(1, 23))
    start = random_tiles(rng, grid_of(SIDE), instances, int(rng.integers(0, 60)))
    world = Map(rng, AutoTiles(instances, split=split), start)

    def settles() -> None:
        # One round relieves; one more for what waited, one for merging, two for folding.
        world.settle(5)
        best = float(np.mean(loads(world.snapshot())))
        if not split:
            best = max(best, float(world.load.max()))
        # What no cell can be moved for, and is not worth sharing, may be left.
        assert max(loads(world.snapshot())) <= (1.1 if split else 1.3) * best

    settles()
    for _ in range(3):
        world.drift()
        settles()
    for other in (instances + int(rng.integers(1, 5)), int(rng.integers(1, instances + 1))):
        world.route = world.route.resized(other)
        world.memory = {}
        settles()


@pytest.mark.parametrize("seed", range(8))
def test_swarm_rests_where_no_machine_can_be_relieved(seed: int) -> None:
    print(f"seed {seed}")
    rng = np.random.default_rng(seed)
    instances = int(rng.integers(2, 12))
    world = Map(rng, Swarm(instances, reductions=10), Swarm(instances, cells=SIDE).start(1))
    for _ in range(400):
        plan, world.memory = planned(world.policy, world.snapshot(), world.memory)
        world.route = plan.route
        if reduction(world.snapshot(), world.route) is None:
            break
    assert reduction(world.snapshot(), world.route) is None
    for _ in range(25):
        plan, world.memory = planned(world.policy, world.snapshot(), world.memory)
        assert plan.does_nothing
