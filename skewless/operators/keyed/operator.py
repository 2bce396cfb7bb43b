"""The keyed operator as the engine sees it: tasks for every batch, and the state after it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import pyarrow as pa

from skewless.control.loop import ControlLoop
from skewless.control.memory import Balance, Planner
from skewless.engine.chunks import Limits
from skewless.engine.operator import Operator
from skewless.engine.progress import account
from skewless.engine.setting import Setting
from skewless.errors import SkewlessError, bad_argument
from skewless.load.report import Report
from skewless.operators.keyed.emission import EmitTask
from skewless.operators.keyed.layout import INPUT, Layout
from skewless.operators.keyed.lifetimes import Lifetimes
from skewless.operators.keyed.pairing import pair_schema
from skewless.operators.keyed.process import Agg, Count, Function, Process, SelfJoin
from skewless.operators.keyed.summary import Summary
from skewless.operators.keyed.task import KeyedTask
from skewless.operators.keyed.windows import SessionWindow, Window, Windows
from skewless.planning.auto import Auto
from skewless.planning.policy import RoutingPolicy
from skewless.routing.route import Route
from skewless.routing.table import TableRoute, as_table
from skewless.state.commit import OperatorState
from skewless.state.compaction import expired
from skewless.state.manifest import Segments
from skewless.state.segment import Segment
from skewless.state.storage import Storage
from skewless.state.watermark import Delays

MODES = ("append", "update")
# How far the watermark of the result lags behind the oldest row that it may still have.
_OUTPUT_LAG_US = 1_000


@dataclass(frozen=True)
class KeyedOperator(Operator):
    """Work per key, with or without windows.

    `mode` is Spark's output mode: "append" gives a group once, when the watermark has passed its
    window's end; "update" gives the groups that a batch has changed.
    """

    layout: Layout
    process: Process
    window: Window
    delays: Delays
    policy: RoutingPolicy
    fingerprint: dict[str, Any]
    mode: str = "append"
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        if set(self.delays.by_side) != {INPUT}:
            raise bad_argument("watermark", dict(self.delays.by_side), f"one delay, of {INPUT!r}")
        if self.policy.start(1).replicates:
            raise bad_argument("balance", self.policy, "a policy that sends a row to one instance")
        check_mode(self.mode, self.process, self.window, self.delays.by_side[INPUT])
        if self.policy.needs_combinable and not self.combinable:
            raise bad_argument(
                "balance",
                f"{type(self.policy).__name__} with {self.process!r} in mode {self.mode!r}",
                "it for sk.Count and sk.Agg in append mode only: two instances share a key, and "
                "their parts must be added up; choose sk.Mixed, for example",
            )
        _check_process(self.layout, self.process, self.window)

    @property
    def modes(self) -> tuple[str, ...]:
        """The output modes that there are to choose from."""
        return MODES

    def in_mode(self, mode: str) -> "KeyedOperator":
        """The same work in another output mode."""
        return replace(self, mode=mode, fingerprint={**self.fingerprint, "outputMode": mode})

    @property
    def appends(self) -> bool:
        """Whether there is an append mode: groups end, or rows are given at once."""
        return default_mode(self.process, self.window, self.delays.by_side[INPUT]) == "append"

    @property
    def combinable(self) -> bool:
        """Whether the rows of a key may be on several instances in one batch.

        Partials are added up when their group closes. What is given at once (changed groups,
        pairs, what a function returns) needs a key's rows together.
        """
        return self.mode == "append" and isinstance(self.process, Count | Agg)

    @cached_property
    def _policy(self) -> RoutingPolicy:
        """The policy in force: one that would share keys out must not count on it."""
        if self.combinable or not isinstance(self.policy, Auto):
            return self.policy
        return replace(self.policy, split=False)

    @property
    def _loop(self) -> ControlLoop:
        return ControlLoop(self._policy)

    @property
    def emits(self) -> bool:
        """Whether rows are given only when the watermark of the batch is known."""
        return self.mode == "append" and _waits(self.process, self.window)

    @property
    def waits(self) -> bool:
        return self.emits

    @cached_property
    def lifetimes(self) -> Lifetimes:
        return Lifetimes(self.process, self.window, self.delays.by_side[INPUT])

    @cached_property
    def output_schema(self) -> pa.Schema:
        if isinstance(self.process, SelfJoin):
            return pair_schema(self.layout, self.process.suffix)
        if isinstance(self.process, Function):
            return self.process.schema
        return Summary(self.layout, self.process.measures, self.window).output_schema

    def initial_state(self, cores: int) -> OperatorState:
        route = self._loop.start(cores)
        return OperatorState(
            route=route,
            max_time_us={INPUT: None},
            watermark_us=None,
            planner=self._loop.planner(Balance.initial(route.instances)),
        )

    def adopt(self, state: OperatorState, cores: int) -> OperatorState:
        return self._loop.adopt(state, cores)

    def order(self, state: OperatorState) -> tuple[int, ...]:
        """The instances in the order in which their tasks should start."""
        return Planner.from_json(state.planner).balance.order

    def task(self, state: OperatorState, setting: Setting) -> KeyedTask:
        """The first half of a batch: what is done with its rows."""
        return KeyedTask(
            setting=setting,
            layout=self.layout,
            process=self.process,
            window=self.window,
            mode=self.mode,
            delays=self.delays,
            route=as_table(state.route),
            watermark_us=state.watermark_us,
            previous_us=state.previous_us,
            max_time_us=state.max_time_us[INPUT],
            detail=self._policy.detail,
            limits=self.limits,
        )

    def advance(
        self, state: OperatorState, reports: Sequence[Report], elapsed_ms: float | None
    ) -> OperatorState:
        """The state after a batch: later watermark, new segments in, old ones out.

        Segments go one batch after their last row is due: the emission still reads them.
        """
        times = [state.max_time_us[INPUT], *(r.max_time_us[INPUT] for r in reports)]
        max_time = {INPUT: max((t for t in times if t is not None), default=None)}
        watermark = self.delays.watermark(max_time, state.watermark_us)
        gone = {name for report in reports for name in report.replaced}
        segments: list[Segment] = [s for s in state.segments if s.name not in gone]
        segments += [s for report in reports for s in report.segments]
        keep = self.lifetimes.keep_from_us(self._emitted(state.watermark_us, watermark))
        live = tuple(s for s in segments if not expired(s, keep))
        balance = Planner.from_json(state.planner).balance
        turn = self._loop.next_round(state.route, balance, reports, live)
        turn = replace(turn, route=self._allowed(turn.route))
        return replace(
            state,
            route=turn.route,
            max_time_us=max_time,
            watermark_us=watermark,
            segments=live,
            previous_us=state.watermark_us,
            planner=self._loop.planner(turn.balance, turn),
        )

    def emission(
        self,
        before: OperatorState,
        after: OperatorState,
        storage: Storage,
        stored: Callable[[], Segments],
        batch: int,
    ) -> EmitTask | None:
        """The second half of a batch, from the states around it; None: there is nothing to give."""
        if after.watermark_us is None:
            return None
        if not any(self._has_due(s, before, after.watermark_us) for s in after.segments):
            return None
        return EmitTask(
            storage=storage,
            layout=self.layout,
            process=self.process,
            window=self.window,
            route=as_table(before.route),
            segments=stored(),
            after_us=before.watermark_us,
            until_us=after.watermark_us,
            batch=batch,
            limits=self.limits,
        )

    @property
    def gives_watermark(self) -> bool:
        """Whether the result can have a watermark at all."""
        return self.delays.by_side[INPUT] is not None

    def output_watermark_us(self, state: OperatorState) -> int | None:
        """No later row has an event, or a window that starts, at this time or before it.

        Of sessions only the ends are sure: they may have started at any time.
        """
        if state.watermark_us is None:
            return None
        return state.watermark_us - self.lifetimes.reach_us() - _OUTPUT_LAG_US

    def progress(self, state: OperatorState, reports: Sequence[Report]) -> dict[str, Any]:
        """What `lastProgress["skewless"]["operators"]` says of this operator."""
        counts = {
            "rows": sum(r.rows[INPUT] for r in reports),
            "late": sum(r.late[INPUT] for r in reports),
            "nullKeys": sum(r.null_keys[INPUT] for r in reports),
            "badRows": sum(r.bad_rows[INPUT] for r in reports),
        }
        stored = sum(s.rows for s in state.segments)
        return account("keyed", self._policy, state, reports, counts, stored)

    def _emitted(self, before_us: int | None, after_us: int | None) -> int | None:
        """Up to which moment nothing stored is needed any more, once a batch is done."""
        return before_us if self.emits else after_us

    def _has_due(self, segment: Segment, before: OperatorState, until_us: int) -> bool:
        if self.lifetimes.earliest_due_us(segment.min_time_us) > until_us:
            return False
        return before.watermark_us is None or segment.max_time_us > before.watermark_us

    def _allowed(self, route: Route) -> TableRoute:
        """A plan as this operator can run it: no row has a second instance to visit."""
        route = as_table(route)
        if self.combinable:
            splits = tuple(replace(s, lines=len(s.members)) for s in route.splits)
            return replace(route, splits=splits)
        whole = tuple(e for e in route.entries if len(e.members) == 1)
        return replace(route, entries=whole, splits=())


def layout_of(
    schema: pa.Schema, by: Sequence[str], time: str, process: Process, *, hash_is_key: bool = False
) -> Layout:
    """The layout of an input whose tasks get no more columns than the process needs."""
    others = [name for name in schema.names if name not in by and name != time]
    if isinstance(process, Count | Agg):
        used = {m.column for m in process.measures}
        others = [name for name in others if name in used]
    return Layout(schema, tuple(by), time, tuple(others), hash_is_key)


def check_mode(mode: object, process: Process, window: Window, delay_us: int | None) -> None:
    """Refuses an output mode under which the operator could never give anything, as Spark does."""
    if mode not in MODES:
        raise bad_argument("outputMode", mode, "'append' or 'update'")
    if isinstance(window, SessionWindow) and mode == "update":
        raise bad_argument("outputMode", mode, "'append', because a session may still grow")
    if mode == "append" and _waits(process, window):
        update = 'call .outputMode("update"), which gives the groups that a batch has changed'
        if window is None:
            raise bad_argument(
                "outputMode",
                mode,
                f"'update', because without a window no group ends: {update}",
            )
        if delay_us is None:
            raise bad_argument(
                "watermark", None, f"a duration, because a window must close; or {update}"
            )


def _waits(process: Process, window: Window) -> bool:
    """Whether append mode has to wait for windows to close."""
    if isinstance(process, Function):
        return window is not None
    return isinstance(process, Count | Agg)


def default_mode(process: Process, window: Window, delay_us: int | None = 0) -> str:
    """The mode until a query says its own: append, unless nothing would ever come."""
    if isinstance(window, SessionWindow) or not _waits(process, window):
        return "append"
    return "update" if window is None or delay_us is None else "append"


def _check_process(layout: Layout, process: Process, window: Window) -> None:
    if isinstance(process, SelfJoin):
        if window is not None:
            raise bad_argument("window", window, "None, because `within` says what SelfJoin keeps")
        pair_schema(layout, process.suffix)
    elif isinstance(process, Function):
        if isinstance(window, SessionWindow):
            raise bad_argument("window", window, "a duration or None, where process is a function")
        if window is not None and window.column in layout.schema.names:
            raise bad_argument(
                "df",
                f"a column {window.column!r}",
                "an input without it: a function is given one of this name; drop or rename it",
            )
        _check_state_schema(layout, process, window)
    else:
        for measure in process.measures:
            if measure.column is not None and measure.column not in layout.schema.names:
                raise bad_argument("process", measure.column, f"one of {layout.schema.names}")
        names = Summary(layout, process.measures, window).output_schema.names
        if len(set(names)) < len(names):
            raise bad_argument(
                "process", names, "output names that are neither keys nor the window"
            )


def _check_state_schema(layout: Layout, process: Function, window: Window) -> None:
    schema = process.state_schema
    if schema is None:
        return
    needed = [*layout.by, *([window.column] if isinstance(window, Windows) else [])]
    missing = [name for name in needed if name not in schema.names]
    if missing:
        raise SkewlessError(
            f"state_schema: lacks {missing}; the state of a key is told by {needed}, which the "
            "function must return with it"
        )
    for name in layout.by:
        given, key = schema.field(name).type, layout.schema.field(name).type
        if not _holds(given, key):
            raise bad_argument(
                "state_schema", f"{name}: {given}", f"the type of the key, which is {key}"
            )


def _holds(given: pa.DataType, key: pa.DataType) -> bool:
    """Whether a column of the state can hold a key as it is."""
    kinds = pa.types
    families = (kinds.is_integer, kinds.is_timestamp, _is_text)
    return bool(given == key or any(of(given) and of(key) for of in families))


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))
