"""Subscriptions as the engine sees them: a task for every batch, and the state after it."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from skewless.control.memory import Balance, Planner
from skewless.control.tiles import MapRecord, TileLoop
from skewless.engine.chunks import Limits
from skewless.engine.operator import Operator
from skewless.engine.progress import account
from skewless.engine.setting import Setting
from skewless.load.report import Report
from skewless.operators.subscribe.layout import POINTS, QUERIES, SIDES, Layout
from skewless.operators.subscribe.task import SubscribeTask
from skewless.operators.subscribe.window import PastWindow
from skewless.planning.tiles.policy import TilePolicy
from skewless.routing.cells import CellGrid
from skewless.routing.tiles import TileRoute
from skewless.state.commit import OperatorState
from skewless.state.compaction import expired
from skewless.state.segment import Segment
from skewless.state.watermark import Delays


@dataclass(frozen=True)
class SubscribeOperator(Operator):
    """Reports points to those who have subscribed to their place."""

    layout: Layout
    grid: CellGrid
    policy: TilePolicy
    fingerprint: dict[str, Any]
    window: PastWindow | None = None
    delays: Delays = field(default_factory=lambda: Delays({}))
    limits: Limits = field(default_factory=Limits)

    @property
    def _loop(self) -> TileLoop:
        return TileLoop(self.policy, self.grid)

    def initial_state(self, cores: int) -> OperatorState:
        route = self._loop.start(cores)
        record = MapRecord.empty(self.grid.side)
        return OperatorState(
            route=route,
            max_time_us=dict.fromkeys(SIDES),
            watermark_us=None,
            planner=self._loop.planner(Balance.initial(route.instances), record),
        )

    def adopt(self, state: OperatorState, cores: int) -> OperatorState:
        return self._loop.adopt(state, cores)

    def order(self, state: OperatorState) -> tuple[int, ...]:
        """The instances in the order in which their tasks should start."""
        return Planner.from_json(state.planner).balance.order

    def task(self, state: OperatorState, setting: Setting) -> SubscribeTask:
        return SubscribeTask(
            setting=setting,
            layout=self.layout,
            route=_tiles(state),
            window=self.window,
            watermark_us=state.watermark_us,
            reads_time=POINTS not in self.delays.given,
            limits=self.limits,
        )

    def advance(
        self, state: OperatorState, reports: Sequence[Report], elapsed_ms: float | None
    ) -> OperatorState:
        """The state after a batch: new segments in, merged ones and points of the past out."""
        seen = [state.max_time_us[POINTS], *(r.max_time_us[POINTS] for r in reports)]
        newest = max((t for t in seen if t is not None), default=None)
        max_time: dict[str, int | None] = {POINTS: newest, QUERIES: None}
        watermark = self.delays.watermark(max_time, state.watermark_us)
        gone = {name for report in reports for name in report.replaced}
        segments: list[Segment] = [s for s in state.segments if s.name not in gone]
        segments += [s for report in reports for s in report.segments]
        past = None if self.window is None else self.window.keep_from_us(watermark)
        live = tuple(s for s in segments if not expired(s, {POINTS: past, QUERIES: None}))
        planner = Planner.from_json(state.planner)
        turn, record = self._loop.next_round(_tiles(state), planner, reports, live)
        return replace(
            state,
            route=turn.route,
            max_time_us=max_time,
            watermark_us=watermark,
            segments=live,
            planner=self._loop.planner(turn.balance, record, turn),
        )

    def output_watermark_us(self, state: OperatorState) -> int | None:
        """None: event time passes through unchanged."""
        return None

    def progress(self, state: OperatorState, reports: Sequence[Report]) -> dict[str, Any]:
        """What `lastProgress["skewless"]["operators"]` says of these subscriptions."""
        counts = {
            "rows": _total(reports, "rows"),
            "replicas": _total(reports, "replicas"),
            "late": _total(reports, "late"),
            "nullPlaces": sum(r.null_keys[POINTS] for r in reports),
            "badRows": _total(reports, "bad_rows"),
            "comparisons": sum(r.comparisons for r in reports),
        }
        stored = {side: sum(s.rows for s in state.segments if s.side == side) for side in SIDES}
        record = account("subscribe", self.policy, state, reports, counts, stored)
        planner = Planner.from_json(state.planner)
        assert planner.map is not None, "a map has a record"
        record["subscriptions"] = MapRecord.from_json(planner.map).subscriptions.total
        return record


def _tiles(state: OperatorState) -> TileRoute:
    assert isinstance(state.route, TileRoute), "adopted"
    return state.route


def _total(reports: Sequence[Report], counter: str) -> dict[str, int]:
    return {side: sum(getattr(r, counter)[side] for r in reports) for side in SIDES}
