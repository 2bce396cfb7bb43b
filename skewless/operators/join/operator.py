"""The join as the engine sees it: a task for every batch, and the state after it."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from skewless.load.report import Report
from skewless.operators.join.bounds import SIDES, Bounds, merged_max
from skewless.operators.join.layout import Layout
from skewless.operators.join.task import JoinTask, Limits
from skewless.planning.policy import Policy
from skewless.routing.partitions import as_bitmap
from skewless.state.commit import OperatorState
from skewless.state.compaction import choose_merges, expired
from skewless.state.faults import Faults
from skewless.state.naming import BatchNames
from skewless.state.segment import Segment
from skewless.state.storage import Storage
from skewless.state.watermark import Delays


@dataclass(frozen=True)
class JoinOperator:
    """An inner join of two sides by equal keys and bounded event time."""

    layout: Layout
    bounds: Bounds
    delays: Delays
    policy: Policy
    fingerprint: dict[str, Any]
    limits: Limits = field(default_factory=Limits)

    def initial_state(self, cores: int) -> OperatorState:
        return OperatorState(
            table=self.policy.table(cores),
            max_time_us=dict.fromkeys(SIDES),
            watermark_us=None,
            planner=self.policy.describe(),
        )

    def adopt(self, state: OperatorState, cores: int) -> OperatorState:
        """The committed state under today's policy; state is shared, so nothing has to move."""
        table = self.policy.table(cores)
        same_policy = state.planner == self.policy.describe()
        if same_policy and table.instances == state.table.instances:
            return state
        segments = state.segments
        if table.partitions != state.table.partitions:
            everywhere = as_bitmap(range(table.partitions))
            segments = tuple(replace(s, partitions=everywhere) for s in segments)
        return replace(state, table=table, segments=segments, planner=self.policy.describe())

    def task(
        self,
        state: OperatorState,
        storage: Storage,
        names: BatchNames,
        *,
        drop_bad_rows: bool,
        faults: Faults,
    ) -> JoinTask:
        keep = self.bounds.keep_from_us(state.watermark_us, self.delays)
        return JoinTask(
            storage=storage,
            names=names,
            layout=self.layout,
            bounds=self.bounds,
            delays=self.delays,
            table=state.table,
            watermark_us=state.watermark_us,
            max_time_us=state.max_time_us,
            segments=state.segments,
            merges=tuple(choose_merges(state.segments, keep, self.bounds.window_us(self.delays))),
            drop_bad_rows=drop_bad_rows,
            faults=faults,
            limits=self.limits,
        )

    def advance(self, state: OperatorState, reports: Sequence[Report]) -> OperatorState:
        """The state after a batch: later watermark, new segments in, old ones out."""
        max_time = state.max_time_us
        for report in reports:
            max_time = merged_max(max_time, report.max_time_us)
        watermark = self.delays.watermark(max_time, state.watermark_us)
        keep = self.bounds.keep_from_us(watermark, self.delays)
        gone = {name for report in reports for name in report.replaced}
        segments: list[Segment] = [s for s in state.segments if s.name not in gone]
        segments += [s for report in reports for s in report.segments]
        return replace(
            state,
            max_time_us=max_time,
            watermark_us=watermark,
            segments=tuple(s for s in segments if not expired(s, keep)),
        )

    def progress(self, state: OperatorState, reports: Sequence[Report]) -> dict[str, Any]:
        """What `lastProgress["skewless"]["operators"]` says of this join."""
        by_instance = sorted(reports, key=lambda r: r.instance)
        cpu = [r.cpu_ms for r in by_instance]
        mean = sum(cpu) / len(cpu)
        return {
            "operator": "join",
            "instances": state.table.instances,
            "watermark": _iso(state.watermark_us),
            "rows": _total(reports, "rows"),
            "late": _total(reports, "late"),
            "nullKeys": _total(reports, "null_keys"),
            "badRows": _total(reports, "bad_rows"),
            "matches": sum(r.matches for r in reports),
            "load": {
                "cpuMs": [round(c, 3) for c in cpu],
                "rows": [sum(r.rows.values()) for r in by_instance],
                "matches": [r.matches for r in by_instance],
            },
            "imbalance": round(max(cpu) / mean, 4) if mean else 1.0,
            "balance": self.policy.describe(),
            "state": {
                "rows": {
                    side: sum(s.rows for s in state.segments if s.side == side) for side in SIDES
                },
                "bytes": sum(s.bytes for s in state.segments),
                "segments": len(state.segments),
                "merged": sum(len(r.replaced) for r in reports),
            },
            "peakMemoryBytes": max(r.peak_memory_bytes for r in reports),
        }


def _total(reports: Sequence[Report], counter: str) -> dict[str, int]:
    return {side: sum(getattr(r, counter)[side] for r in reports) for side in SIDES}


def _iso(time_us: int | None) -> str | None:
    if time_us is None:
        return None
    try:
        moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=time_us)
    except OverflowError:  # outside the years 1 to 9999, where Spark's timestamps may still be
        return f"{time_us} µs"
    return moment.isoformat().replace("+00:00", "Z")
