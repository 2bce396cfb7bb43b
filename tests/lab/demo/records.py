"""Progress records in the form that a query with one join reports them."""

from datetime import UTC, datetime
from typing import Any


def record(
    number: int,
    *,
    end_s: float | None = None,
    duration_ms: int = 500,
    rows: tuple[int, int] = (100, 900),
    matches: int = 5_000,
    cpu_ms: tuple[float, ...] = (30.0, 10.0),
    reason: str = "plain hashing moves nothing",
    moves: tuple[tuple[int, int, int], ...] = (),
    splits: tuple[int, ...] = (),
    expected: float | None = 0.0,
) -> dict[str, Any]:
    """Batch `number`, which by default ended `number` + 1 seconds after 2024-03-04T08:00:00Z."""
    base_s = datetime(2024, 3, 4, 8, tzinfo=UTC).timestamp()
    end = base_s + (number + 1 if end_s is None else end_s)
    start = datetime.fromtimestamp(end - duration_ms / 1000, UTC)
    none = {"left": 0, "right": 0}
    join = {
        "operator": "join",
        "instances": len(cpu_ms),
        "watermark": "2024-03-04T07:59:00+00:00",
        "rows": {"left": rows[0], "right": rows[1]},
        "late": none,
        "nullKeys": none,
        "badRows": none,
        "matches": matches,
        "load": {"cpuMs": list(cpu_ms), "rows": [1] * len(cpu_ms), "matches": [1] * len(cpu_ms)},
        "imbalance": max(cpu_ms) * len(cpu_ms) / sum(cpu_ms),
        "balance": {
            "policy": "Auto",
            "reason": reason,
            "moves": [list(move) for move in moves],
            "movedRows": 0,
            "splits": [{"hash": h, "members": [0, 1], "lines": 1} for h in splits],
            "imbalanceBefore": 0.5,
            "imbalanceAfter": expected,
            "planMs": 1.0,
        },
        "state": {"rows": {"left": 10, "right": 90}, "bytes": 4_000, "segments": 2},
    }
    return {
        "batchId": number,
        "timestamp": start.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "durationMs": {"triggerExecution": duration_ms, "addBatch": duration_ms - 100},
        "skewless": {"batchId": number, "operators": [join], "durationMs": {}},
    }
