"""The control loop of maps: counts that add up, routes that are kept, plans that are refused."""

from dataclasses import dataclass

import numpy as np
import pytest

from skewless.control.memory import Balance, Planner
from skewless.control.tiles import Arrived, MapRecord, TileLoop
from skewless.load.corners import CornerCounts
from skewless.load.report import PartitionLoads, Report
from skewless.planning.decision import Decision, Memory
from skewless.planning.tiles.auto import AutoTiles
from skewless.planning.tiles.measure import MeasuredTime
from skewless.planning.tiles.plan import planned
from skewless.planning.tiles.policy import TilePolicy
from skewless.planning.tiles.snapshot import TileSnapshot
from skewless.routing.cells import CellGrid
from skewless.routing.tiles import TileRoute, even_tiles
from skewless.state.commit import OperatorState

GRID = CellGrid(8, (0.0, 0.0, 1.0, 1.0))
SIDES = ("points", "queries")


def report(instance: int, cells: dict[int, int], begun: CornerCounts, gone: CornerCounts) -> Report:
    none = dict.fromkeys(SIDES, 0)
    rows = sum(cells.values())
    return Report(
        instance=instance,
        rows={"points": rows, "queries": begun.total},
        replicas=none,
        late=none,
        null_keys=none,
        bad_rows=none,
        max_time_us=dict.fromkeys(SIDES),
        matches=rows,
        cpu_ms=float(rows),
        wall_ms=float(rows),
        peak_memory_bytes=0,
        segments=[],
        replaced=[],
        partitions=PartitionLoads(list(cells), list(cells.values()), list(cells.values())),
        corners={"begun": begun.to_json(), "gone": gone.to_json()},
    )


def corners(*rectangles: tuple[int, int, int, int]) -> CornerCounts:
    ends = np.array(rectangles, np.int64).reshape(-1, 4).T
    return CornerCounts.of(8, *ends)


def fresh(loop: TileLoop, cores: int = 2) -> OperatorState:
    route = loop.start(cores)
    planner = loop.planner(Balance.initial(route.instances), MapRecord.empty(8))
    return OperatorState(route, dict.fromkeys(SIDES), None, planner=planner)


def test_points_fade_and_subscriptions_add_up_over_batches() -> None:
    loop = TileLoop(AutoTiles(instances=2, cells=8), GRID)
    state = fresh(loop)
    whole, small, other = (0, 0, 7, 7), (1, 1, 2, 2), (5, 5, 5, 5)
    none = corners()
    batches = [
        [report(0, {9: 4}, corners(whole), none), report(1, {60: 2}, corners(small), none)],
        [report(0, {9: 6}, corners(other), corners(small)), report(1, {}, none, none)],
    ]
    route, planner = state.route, Planner.from_json(state.planner)
    for reports in batches:
        assert isinstance(route, TileRoute)
        turn, record = loop.next_round(route, planner, reports, ())
        planner = Planner.from_json(loop.planner(turn.balance, record, turn))
        route = turn.route
    assert planner.map is not None
    kept = MapRecord.from_json(planner.map)
    assert kept.subscriptions == corners(whole, other)
    assert kept.faded[[9, 60, 0]].tolist() == [8.0, 1.0, 0.0]


def test_arrivals_of_all_instances_are_one() -> None:
    none = corners()
    reports = [
        report(0, {3: 1}, corners((0, 0, 1, 1)), none),
        report(1, {3: 2, 4: 1}, none, corners((0, 0, 0, 0))),
    ]
    arrived = Arrived.of(reports, 8)
    assert arrived.points[[3, 4]].tolist() == [3.0, 1.0]
    assert (arrived.begun.total, arrived.gone.total) == (1, 1)


def test_a_restart_keeps_tiles_resizes_them_or_starts_anew() -> None:
    loop = TileLoop(AutoTiles(instances=2, cells=8), GRID)
    state = fresh(loop)
    assert loop.adopt(state, cores=2) is state
    more = TileLoop(AutoTiles(instances=3, cells=8), GRID).adopt(state, cores=2)
    assert more.route.instances == 3
    assert Planner.from_json(more.planner).balance.order == (0, 1, 2)
    assert Planner.from_json(more.planner).map is not None
    elsewhere = CellGrid(8, (0.0, 0.0, 2.0, 2.0))
    moved = TileLoop(AutoTiles(instances=2, cells=8), elsewhere).adopt(state, cores=2)
    assert moved.route == even_tiles(elsewhere, 2)


@dataclass(frozen=True)
class Wrong(TilePolicy):
    """Plans that the loop must refuse."""

    instances: int = 2
    cells: int = 8
    how: str = ""

    def plan(self, snapshot: TileSnapshot, memory: Memory) -> Decision[TileRoute]:
        if self.how == "error":
            raise ZeroDivisionError("a bug")
        worse = TileRoute(GRID, 2, tuple(tile.given((0,)) for tile in snapshot.route.tiles))
        return planned(snapshot, worse, "worse", MeasuredTime()).decision()


@pytest.mark.parametrize(
    ("how", "told"), [("error", "refused: a bug"), ("worse", "refused: moves")]
)
def test_a_plan_that_breaks_a_rule_does_not_stop_the_query(how: str, told: str) -> None:
    loop = TileLoop(Wrong(how=how), GRID)
    state = fresh(loop)
    none = corners()
    reports = [report(0, {9: 40}, none, none), report(1, {60: 40}, none, none)]
    assert isinstance(state.route, TileRoute)
    turn, _ = loop.next_round(state.route, Planner.from_json(state.planner), reports, ())
    assert turn.route == state.route
    assert turn.reason.startswith(told)
