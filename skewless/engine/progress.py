"""What every stateful operator tells of a batch in `lastProgress["skewless"]["operators"]`."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from skewless.control.memory import Planner
from skewless.engine.dropped import SAMPLES
from skewless.engine.moments import shown_time
from skewless.load.report import Report
from skewless.planning.policy import Policy
from skewless.state.commit import OperatorState


def dropped_samples(reports: Sequence[Report]) -> list[dict[str, Any]]:
    """A few of the rows that a batch has dropped, and why."""
    samples = [asdict(dropped) for report in reports for dropped in report.dropped]
    return samples[:SAMPLES]


def account(
    operator: str,
    policy: Policy[Any, Any],
    state: OperatorState,
    reports: Sequence[Report],
    counts: dict[str, Any],
    stored_rows: Any,
) -> dict[str, Any]:
    """The record of a batch; `counts` and `stored_rows` are per side where there are two."""
    by_instance = sorted(reports, key=lambda r: r.instance)
    cpu = [r.cpu_ms for r in by_instance]
    mean = sum(cpu) / len(cpu)
    return {
        "operator": operator,
        "instances": len(reports),
        "watermark": shown_time(state.watermark_us),
        **counts,
        "dropped": dropped_samples(reports),
        "matches": sum(r.matches for r in reports),
        "load": {
            "cpuMs": [round(c, 3) for c in cpu],
            "rows": [sum(r.rows.values()) for r in by_instance],
            "matches": [r.matches for r in by_instance],
        },
        "imbalance": round(max(cpu) / mean, 4) if mean else 1.0,
        "balance": {**policy.describe(), **(Planner.from_json(state.planner).round or {})},
        "state": {
            "rows": stored_rows,
            "bytes": sum(s.bytes for s in state.segments),
            "segments": len(state.segments),
            "merged": sum(len(r.replaced) for r in reports),
        },
        "peakMemoryBytes": max(r.peak_memory_bytes for r in reports),
    }
