"""The lookup as the engine sees it: a copy of the table, a task for every batch."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from skewless.control.loop import ControlLoop
from skewless.control.memory import Balance, Planner
from skewless.engine.moments import shown_time
from skewless.engine.operator import Operator
from skewless.engine.progress import account
from skewless.engine.setting import Setting
from skewless.load.report import Report
from skewless.operators.join.bounds import SIDES
from skewless.operators.lookup.loading import LoadTask
from skewless.operators.lookup.task import LookupTask
from skewless.operators.lookup.terms import Terms
from skewless.planning.policy import RoutingPolicy
from skewless.state.commit import OperatorState
from skewless.state.segment import Segment


@dataclass(frozen=True)
class LookupOperator(Operator):
    """Joins a stream with a table, of which it keeps a copy."""

    terms: Terms
    policy: RoutingPolicy
    fingerprint: dict[str, Any]
    refresh_us: int | None = None  # None: the table is read once

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

    def loading(self, state: OperatorState, setting: Setting, now_us: int) -> LoadTask | None:
        if not self._is_due(state, now_us):
            return None
        return LoadTask(self.terms, setting, state.route.partitions)

    def _is_due(self, state: OperatorState, now_us: int) -> bool:
        if state.read_us is None:
            return True
        # A clock that was set back must not put off the next read.
        age_us = abs(now_us - state.read_us)
        return self.refresh_us is not None and age_us >= self.refresh_us

    def loaded(
        self, state: OperatorState, segments: Sequence[Segment], now_us: int
    ) -> OperatorState:
        """The new copy takes the place of the old one: rows that are gone are found no more."""
        return replace(state, segments=tuple(segments), read_us=now_us)

    def task(self, state: OperatorState, setting: Setting) -> LookupTask:
        return LookupTask(self.terms, setting, state.route, self.policy.detail)

    def advance(
        self, state: OperatorState, reports: Sequence[Report], elapsed_ms: float | None
    ) -> OperatorState:
        """Another route, perhaps; rows of the stream leave nothing behind."""
        balance = Planner.from_json(state.planner).balance
        turn = self._loop.next_round(state.route, balance, reports, state.segments)
        return replace(state, route=turn.route, planner=self._loop.planner(turn.balance, turn))

    def output_watermark_us(self, state: OperatorState) -> int | None:
        """Never asked for: the event time of the stream goes through unchanged."""
        return None

    def progress(self, state: OperatorState, reports: Sequence[Report]) -> dict[str, Any]:
        """What `lastProgress["skewless"]["operators"]` says of this lookup."""
        stream = self.terms.stream
        counts = {
            "rows": {stream: sum(r.rows[stream] for r in reports)},
            "late": {stream: 0},
            "nullKeys": {stream: sum(r.null_keys[stream] for r in reports)},
            "badRows": {stream: sum(r.bad_rows[stream] for r in reports)},
            "comparisons": sum(r.comparisons for r in reports),
        }
        stored = {self.terms.table: sum(s.rows for s in state.segments)}
        record = account("lookup", self.policy, state, reports, counts, stored)
        return {**record, "tableReadAt": shown_time(state.read_us)}
