"""A record of Spark's progress as a benchmark reads it."""

from typing import Any


def record(number: int, rows: int = 10) -> dict[str, Any]:
    return {
        "batchId": number,
        "numInputRows": rows,
        "durationMs": {"addBatch": 250},
        "sink": {"numOutputRows": 3},
    }
