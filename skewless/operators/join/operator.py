"""The join as the engine sees it: a task for every batch, and the state after it."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from skewless.control.loop import ControlLoop
from skewless.control.memory import Balance, Planner
from skewless.engine.chunks import Limits
from skewless.engine.progress import account
from skewless.engine.setting import Setting
from skewless.kernels.conditions import SetCondition
from skewless.load.report import Report
from skewless.operators.join.bounds import SIDES, Bounds, merged_max
from skewless.operators.join.layout import Layout
from skewless.operators.join.task import JoinTask
from skewless.planning.policy import RoutingPolicy
from skewless.state.commit import OperatorState
from skewless.state.compaction import expired
from skewless.state.segment import Segment
from skewless.state.watermark import Delays

# How far the watermark of the result lags behind the oldest row that a pair may still have.
_OUTPUT_LAG_US = 1_000


@dataclass(frozen=True)
class JoinOperator:
    """An inner join of two sides by equal keys or common items, and bounded event time."""

    layout: Layout
    bounds: Bounds
    delays: Delays
    policy: RoutingPolicy
    fingerprint: dict[str, Any]
    limits: Limits = field(default_factory=Limits)
    condition: SetCondition | None = None  # None: equal keys are all

    @property
    def _loop(self) -> ControlLoop:
        return ControlLoop(self.policy)

    def initial_state(self, cores: int) -> OperatorState:
        route = self._loop.start(cores)
        return OperatorState(
            route=route,
            max_time_us=dict.fromkeys(SIDES),
            watermark_us=None,
            planner=self._loop.planner(Balance.initial(route.instances)),
        )

    def adopt(self, state: OperatorState, cores: int) -> OperatorState:
        return self._loop.adopt(state, cores)

    def order(self, state: OperatorState) -> tuple[int, ...]:
        """The instances in the order in which their tasks should start."""
        return Planner.from_json(state.planner).balance.order

    def task(self, state: OperatorState, setting: Setting) -> JoinTask:
        return JoinTask(
            setting=setting,
            layout=self.layout,
            bounds=self.bounds,
            delays=self.delays,
            route=state.route,
            watermark_us=state.watermark_us,
            max_time_us=state.max_time_us,
            condition=self.condition,
            detail=self.policy.detail,
            limits=self.limits,
        )

    @property
    def emits(self) -> bool:
        """Pairs are given at once; an inner join has nothing else to give."""
        return False

    @property
    def waits(self) -> bool:
        return False

    def advance(
        self, state: OperatorState, reports: Sequence[Report], elapsed_ms: float
    ) -> OperatorState:
        """The state after a batch: later watermark, new segments in, old ones out.

        Where rows are due when they leave, segments go one batch later: the emission reads them.
        """
        max_time = state.max_time_us
        for report in reports:
            max_time = merged_max(max_time, report.max_time_us)
        watermark = self.delays.watermark(max_time, state.watermark_us)
        passed = state.watermark_us if self.emits else watermark
        keep = self.bounds.keep_from_us(passed, self.delays)
        gone = {name for report in reports for name in report.replaced}
        segments: list[Segment] = [s for s in state.segments if s.name not in gone]
        segments += [s for report in reports for s in report.segments]
        live = tuple(s for s in segments if not expired(s, keep))
        balance = Planner.from_json(state.planner).balance
        turn = self._loop.next_round(state.route, balance, reports, live)
        return replace(
            state,
            route=turn.route,
            max_time_us=max_time,
            watermark_us=watermark,
            segments=live,
            planner=self._loop.planner(turn.balance, turn),
        )

    @property
    def gives_watermark(self) -> bool:
        """Whether the result can have a watermark at all: no row may be late without limit."""
        ends = (self.bounds.lower_us, self.bounds.upper_us, *self.delays.by_side.values())
        return None not in ends

    def output_watermark_us(self, state: OperatorState) -> int | None:
        """No later pair has a row of this time or before it, as for Spark's chained joins."""
        if state.watermark_us is None or not self.gives_watermark:
            return None
        wider = max(abs(self.bounds.lower_us or 0), abs(self.bounds.upper_us or 0))
        return state.watermark_us - wider - _OUTPUT_LAG_US

    def progress(self, state: OperatorState, reports: Sequence[Report]) -> dict[str, Any]:
        """What `lastProgress["skewless"]["operators"]` says of this join."""
        counts = {
            "rows": _total(reports, "rows"),
            "replicas": _total(reports, "replicas"),
            "late": _total(reports, "late"),
            "nullKeys": _total(reports, "null_keys"),
            "badRows": _total(reports, "bad_rows"),
            "comparisons": sum(r.comparisons for r in reports),
        }
        stored = {side: sum(s.rows for s in state.segments if s.side == side) for side in SIDES}
        return account("join", self.policy, state, reports, counts, stored)


def _total(reports: Sequence[Report], counter: str) -> dict[str, int]:
    return {side: sum(getattr(r, counter)[side] for r in reports) for side in SIDES}
