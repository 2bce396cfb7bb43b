"""Segments, states and commits to test with; every field can be set."""

from typing import Any

from skewless.routing.partitions import packed, round_robin
from skewless.routing.table import TableRoute
from skewless.state.commit import Commit, OperatorState
from skewless.state.segment import Segment


def segment(name: str = "s", **fields: Any) -> Segment:
    values: dict[str, Any] = {
        "side": "left",
        "instance": 0,
        "level": 0,
        "first_batch": 0,
        "last_batch": 0,
        "rows": 1,
        "bytes": 100,
        "min_time_us": 0,
        "max_time_us": 0,
        "bulk_time_us": 0,
        "partitions": packed([0]),
        "of_partitions": 4,
        "mixed_keys": False,
        "checksum": 0,
    }
    return Segment(name, **{**values, **fields})


def operator_state(*segments: Segment, **fields: Any) -> OperatorState:
    values: dict[str, Any] = {
        "route": TableRoute(round_robin(2, 4)),
        "max_time_us": {"left": 5, "right": None},
        "watermark_us": None,
        "segments": segments,
    }
    return OperatorState(**{**values, **fields})


def commit(batch: int, *segments: Segment, **fields: Any) -> Commit:
    values: dict[str, Any] = {
        "fingerprint": {"operators": []},
        "operators": (operator_state(*segments),),
        "progress": {"batchId": batch},
    }
    return Commit(batch, **{**values, **fields})
