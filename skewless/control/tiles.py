"""The control loop of maps: from what tasks report of points and subscriptions to new tiles."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

import numpy as np

from skewless.control.loads import BatchLoads, loads_of
from skewless.control.loop import Clock, Round, decided
from skewless.control.memory import Balance, Planner
from skewless.control.restart import adopt
from skewless.control.scaling import rescaled
from skewless.load.corners import CornerCounts
from skewless.load.lines import fade
from skewless.load.report import Report
from skewless.planning.decision import Decision
from skewless.planning.snapshot import Loads
from skewless.planning.tiles.measure import MeasuredTime, instance_loads
from skewless.planning.tiles.policy import TilePolicy
from skewless.planning.tiles.snapshot import TileSnapshot
from skewless.routing.cells import CellGrid
from skewless.routing.tiles import TileRoute
from skewless.state.commit import OperatorState
from skewless.state.segment import Segment


@dataclass(frozen=True)
class MapRecord:
    """What is remembered of a map besides loads: points as they fade, and all subscriptions."""

    faded: Loads
    subscriptions: CornerCounts

    @staticmethod
    def empty(side: int) -> "MapRecord":
        return MapRecord(np.zeros(side * side), CornerCounts.empty(side))

    def to_json(self) -> dict[str, Any]:
        return {
            "faded": np.round(self.faded, 3).tolist(),
            "subscriptions": self.subscriptions.to_json(),
        }

    @staticmethod
    def from_json(record: dict[str, Any]) -> "MapRecord":
        subscriptions = CornerCounts.from_json(record["subscriptions"])
        return MapRecord(np.array(record["faded"], np.float64), subscriptions)


@dataclass(frozen=True)
class Arrived:
    """What a batch has brought to a map, counted by cell."""

    points: Loads
    begun: CornerCounts
    gone: CornerCounts

    @staticmethod
    def of(reports: Sequence[Report], side: int) -> "Arrived":
        points = np.zeros(side * side)
        begun, gone = CornerCounts.empty(side), CornerCounts.empty(side)
        for report in reports:
            counted = report.partitions
            np.add.at(points, counted.partitions, counted.rows)
            if report.corners is not None:
                begun += CornerCounts.from_json(report.corners["begun"])
                gone += CornerCounts.from_json(report.corners["gone"])
        return Arrived(points, begun, gone)


@dataclass(frozen=True)
class TileLoop:
    """Asks a policy after every batch, checks its decision, and applies it."""

    policy: TilePolicy
    grid: CellGrid
    clock: Clock = perf_counter

    def start(self, cores: int) -> TileRoute:
        """The tiles of the first batch."""
        return self.policy.tiles(self.grid, cores)

    def adopt(self, state: OperatorState, cores: int) -> OperatorState:
        """A committed state under this policy, on this map."""
        route = state.route
        known = isinstance(route, TileRoute) and route.grid == self.grid
        return adopt(self.policy, state, cores, start=self.start, keeps_route=known)

    def planner(
        self, balance: Balance, record: MapRecord, last: Round | None = None
    ) -> dict[str, Any]:
        """`OperatorState.planner` after a turn, or before the first."""
        told = None if last is None else last.to_json()
        described = self.policy.describe()
        return Planner(described, balance, told, map=record.to_json()).to_json()

    def next_round(
        self,
        route: TileRoute,
        planner: Planner,
        reports: Sequence[Report],
        segments: Sequence[Segment],
    ) -> tuple[Round, MapRecord]:
        """The turn after a batch, from the reports of its tasks."""
        started = self.clock()
        loads, balance = loads_of(planner.balance, route.partitions, reports, segments)
        record = MapRecord.empty(self.grid.side)
        if planner.map is not None and planner.map["subscriptions"]["side"] == self.grid.side:
            record = MapRecord.from_json(planner.map)
        return self.turn(
            route, balance, loads, record, Arrived.of(reports, self.grid.side), started
        )

    def turn(
        self,
        route: TileRoute,
        balance: Balance,
        loads: BatchLoads,
        record: MapRecord,
        arrived: Arrived,
        started: float | None = None,
    ) -> tuple[Round, MapRecord]:
        """The turn after a batch with these loads and arrivals."""
        started = self.clock() if started is None else started
        record = MapRecord(
            fade(record.faded, arrived.points), record.subscriptions + arrived.begun - arrived.gone
        )
        resized, balance = rescaled(self.policy, route, balance, loads.work_ms)
        assert isinstance(resized, TileRoute), "a map stays a map"
        snapshot = TileSnapshot(
            resized,
            loads.load,
            arrived.points,
            record.faded,
            record.subscriptions,
            arrived.begun,
        )
        balance = replace(balance, batches=balance.batches + 1)
        reason = f"plans every {self.policy.every} batches"
        decision: Decision[TileRoute] = Decision(None, reason, balance.memory)
        if balance.batches % self.policy.every == 0:
            limits = self.policy.limits(route.partitions)
            decision = decided(self.policy, snapshot, balance.memory, limits)
        following = decision.route or resized
        heaviest = np.argsort(-instance_loads(snapshot, following, MeasuredTime()), kind="stable")
        balance = replace(balance, memory=decision.memory, order=tuple(heaviest.tolist()))
        plan_ms = 1e3 * (self.clock() - started)
        return Round(balance, following, decision.plan, decision.reason, plan_ms), record
