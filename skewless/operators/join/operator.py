"""The join as the engine sees it: a task for every batch, and the state after it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from skewless.control.loop import ControlLoop
from skewless.control.memory import Balance, Planner
from skewless.control.probing import ProbingControl
from skewless.engine.chunks import Limits
from skewless.engine.operator import Operator
from skewless.engine.progress import account
from skewless.engine.setting import Setting
from skewless.errors import bad_argument
from skewless.kernels.predicate import Predicate
from skewless.load.report import Report
from skewless.operators.join.bounds import LEFT, LONE, RIGHT, SIDES, Bounds, merged_max
from skewless.operators.join.choosing import Chooser
from skewless.operators.join.due import Due
from skewless.operators.join.emission import EmitTask
from skewless.operators.join.how import INNER, How
from skewless.operators.join.layout import Layout
from skewless.operators.join.task import JoinTask, Matching
from skewless.planning.policy import RoutingPolicy
from skewless.shedding.plan import ProbePlan
from skewless.shedding.policy import Shed, Shedding
from skewless.shedding.windows import BasicWindows
from skewless.state.commit import OperatorState
from skewless.state.compaction import expired
from skewless.state.manifest import Segments
from skewless.state.segment import Segment
from skewless.state.storage import Storage
from skewless.state.watermark import Delays

# How far the watermark of the result lags behind the oldest row that a pair may still have.
_OUTPUT_LAG_US = 1_000


@dataclass(frozen=True)
class JoinOperator(Operator):
    """A join of two sides by keys, common items or distance, and bounded event time."""

    layout: Layout
    bounds: Bounds
    delays: Delays
    policy: RoutingPolicy
    fingerprint: dict[str, Any]
    limits: Limits = field(default_factory=Limits)
    condition: Matching | None = None  # None: equal keys are all
    where: Predicate | None = None  # what pairs have to fulfil, too
    chooser: Chooser | None = None  # None: a pair is given as soon as it is found
    how: How = INNER
    shedding: Shedding | None = None
    interval_us: int | None = None  # of the trigger

    def __post_init__(self) -> None:
        self.how.check(self.bounds, self.delays)
        if self.how != INNER and self.shedding is not None:
            takes = f"None, because how={self.how.name!r} has to know of every match"
            raise bad_argument("shed", self.shedding, takes)
        if self.chooser is None:
            return
        if self.how.name not in ("inner", "left"):
            takes = "'inner' or 'left', where one of the rows that match is chosen"
            raise bad_argument("how", self.how.name, takes)
        if self.bounds.upper_us is None:
            takes = "an upper bound, because a left row waits until no right row can reach it"
            raise bad_argument("within", "no upper bound", takes)
        if self.delays.by_side[RIGHT] is None:
            takes = "a duration for the right side, because left rows wait for its watermark"
            raise bad_argument("watermark", None, takes)
        if self.shedding is not None:
            takes = "None, because rows are chosen of all that there are"
            raise bad_argument("shed", self.shedding, takes)

    @property
    def emits(self) -> bool:
        """Whether the watermark of a batch may make rows due."""
        return bool(self._awaited)

    @property
    def _awaited(self) -> tuple[str, ...]:
        """The sides whose matches are asked for once more when their rows leave."""
        return (LEFT,) if self.waits else self.how.awaited

    @property
    def waits(self) -> bool:
        return self.chooser is not None

    @property
    def sheds(self) -> bool:
        return self.shedding is not None

    def triggered(self, interval_us: int | None) -> "JoinOperator":
        """The same in a query whose trigger has this interval, if any."""
        if self.shedding is not None:
            self.shedding.limit_us(interval_us)
        return replace(self, interval_us=interval_us)

    @cached_property
    def _probing(self) -> ProbingControl | None:
        if self.shedding is None:
            return None
        parts = self.shedding.basic_windows if isinstance(self.shedding, Shed) else 1
        windows = BasicWindows.over(self.bounds.lower_us, self.bounds.upper_us, parts)
        return ProbingControl(
            self.shedding, windows, self.shedding.limit_us(self.interval_us) / 1e3
        )

    @property
    def _loop(self) -> ControlLoop:
        return ControlLoop(self.policy)

    def initial_state(self, cores: int) -> OperatorState:
        route = self._loop.start(cores)
        return OperatorState(
            route=route,
            max_time_us=dict.fromkeys(SIDES),
            watermark_us=None,
            planner=self._loop.planner(
                Balance.initial(route.instances),
                probing=None if self._probing is None else self._probing.start(cores),
            ),
        )

    def adopt(self, state: OperatorState, cores: int) -> OperatorState:
        state = self._loop.adopt(state, cores)
        if self._probing is None:
            return state
        planner = Planner.from_json(state.planner)
        probing = self._probing.adopt(planner.probing, cores)
        if probing is planner.probing:
            return state
        return replace(state, planner=replace(planner, probing=probing).to_json())

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
            where=self.where,
            detail=self.policy.detail,
            probing=self._plan(state, setting.names.batch),
            how=self.how,
            waits=self.waits,
            limits=self.limits,
        )

    def _plan(self, state: OperatorState, batch: int) -> ProbePlan | None:
        """How much the tasks of a batch may probe; None: everything."""
        if self._probing is None:
            return None
        record = Planner.from_json(state.planner).probing
        assert record is not None, "adopted"
        return self._probing.plan(record, state.route.instances, batch)

    def advance(
        self, state: OperatorState, reports: Sequence[Report], elapsed_ms: float | None
    ) -> OperatorState:
        """The state after a batch: later watermark, new segments in, old ones out.

        Where rows are due when they leave, segments go one batch later: the emission reads them.
        """
        max_time = state.max_time_us
        for report in reports:
            max_time = merged_max(max_time, report.max_time_us)
        watermark = self.delays.watermark(max_time, state.watermark_us)
        passed = state.watermark_us if self.emits else watermark
        keep = self.bounds.stored_from_us(passed, self.delays, self._awaited)
        gone = {name for report in reports for name in report.replaced}
        segments: list[Segment] = [s for s in state.segments if s.name not in gone]
        segments += [s for report in reports for s in report.segments]
        # Rows that are due in the batch in which they come have yet to be given.
        new = {s.name for r in reports for s in r.segments if s.level == 0} if self.emits else set()
        live = tuple(s for s in segments if s.name in new or not expired(s, keep))
        planner = Planner.from_json(state.planner)
        # Rows without a key are nobody's load: they are given and never looked up.
        keyed = tuple(s for s in live if s.side in SIDES)
        turn = self._loop.next_round(state.route, planner.balance, reports, keyed)
        probing = None
        if self._probing is not None:
            assert planner.probing is not None, "adopted"
            probing = self._probing.after(planner.probing, reports, elapsed_ms)
        return replace(
            state,
            route=turn.route,
            max_time_us=max_time,
            watermark_us=watermark,
            segments=live,
            planner=self._loop.planner(turn.balance, turn, probing),
        )

    def emission(
        self,
        before: OperatorState,
        after: OperatorState,
        storage: Storage,
        stored: Callable[[], Segments],
        batch: int,
    ) -> EmitTask | None:
        """The task that gives the rows which have become due; None: there are none."""
        sides = () if self.how.is_semi else self._awaited
        due = {
            side: passed
            for side in sides
            if (passed := self._due(side, before, after, batch)) is not None
        }
        if not due and not (self.how.is_semi and before.route.spreads):
            return None
        return EmitTask(
            storage=storage,
            layout=self.layout,
            bounds=self.bounds,
            route=before.route,
            segments=stored(),
            condition=self.condition,
            how=self.how,
            where=self.where,
            chooser=self.chooser,
            due=due,
            batch=batch,
            limits=self.limits,
        )

    def _due(
        self, side: str, before: OperatorState, after: OperatorState, batch: int
    ) -> Due | None:
        """Which rows of a side the watermark has passed; None: there are none."""
        marks = (before.watermark_us, after.watermark_us)
        passed = [self.bounds.keep_from_us(mark, self.delays)[side] for mark in marks]
        if passed[1] is None:
            return None
        due = Due(batch, passed[0], passed[1])
        stored = (s for s in after.segments if s.side in (side, LONE[side]))
        return due if any(map(due.may_be_in, stored)) else None

    @property
    def gives_watermark(self) -> bool:
        """Whether the result can have a watermark at all: no row may be late without limit."""
        ends = (self.bounds.lower_us, self.bounds.upper_us, *self.delays.by_side.values())
        return None not in ends

    def output_watermark_us(self, state: OperatorState) -> int | None:
        """No later pair has a row of this time or before it, as for Spark's chained joins."""
        if state.watermark_us is None or not self.gives_watermark:
            return None
        lower, upper = self.bounds.lower_us or 0, self.bounds.upper_us or 0
        lag_us = max(abs(lower), abs(upper))
        if self.waits:
            # Left rows from W − upper on are yet to be given, with right rows from `lower` on.
            lag_us = max(0, upper) + max(0, -lower)
        return state.watermark_us - lag_us - _OUTPUT_LAG_US

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
        stored = {
            side: sum(s.rows for s in state.segments if s.side in (side, LONE[side]))
            for side in SIDES
        }
        record = account("join", self.policy, state, reports, counts, stored)
        if self._probing is not None:
            probing = Planner.from_json(state.planner).probing
            assert probing is not None, "adopted"
            record["shed"] = self._probing.progress(probing, reports, state.route.instances)
        return record


def _total(reports: Sequence[Report], counter: str) -> dict[str, int]:
    return {side: sum(getattr(r, counter)[side] for r in reports) for side in SIDES}
