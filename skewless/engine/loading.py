"""What tasks that store a table tell of it: rows of their job, so that only accepted runs count."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from skewless.state.segment import Segment

SEGMENT, BAD_ROWS = "segment", "badRows"
SCHEMA = pa.schema([(SEGMENT, pa.string()), (BAD_ROWS, pa.int64())])


def told(segment: Segment | None, bad_rows: int) -> pa.RecordBatch:
    """What is told of one piece of the table; None: it had no row that can match."""
    described = None if segment is None else json.dumps(segment.to_json())
    return pa.RecordBatch.from_pylist([{SEGMENT: described, BAD_ROWS: bad_rows}], SCHEMA)


@dataclass(frozen=True)
class Loaded:
    """The copy of a table that the tasks of a job have stored."""

    segments: tuple[Segment, ...]
    bad_rows: int

    @staticmethod
    def of(rows: Iterable[Mapping[str, Any]]) -> "Loaded":
        """From what the tasks have told."""
        pieces = list(rows)
        described = [row[SEGMENT] for row in pieces if row[SEGMENT] is not None]
        segments = tuple(Segment.from_json(json.loads(text)) for text in described)
        return Loaded(segments, sum(row[BAD_ROWS] for row in pieces))
