"""Takes rows in as Spark hands them to a task: in pieces, and without the control row."""

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from skewless.engine.columns import CONTROL_CODE, INSTANCE, LEFT_CODE, SIDE
from skewless.kernels.pieces import ARRAY_BYTES
from skewless.kernels.runs import concatenate


@dataclass(frozen=True)
class Taken:
    """What came in, by side."""

    rows: dict[str, int]  # at home here
    replicas: dict[str, int]  # at home elsewhere
    late: dict[str, int]
    null_keys: dict[str, int]
    bad_rows: dict[str, int]
    max_time_us: dict[str, int | None]


def gather(
    batches: Iterator[pa.RecordBatch], run_bytes: int, array_bytes: int = ARRAY_BYTES
) -> Iterator[tuple[pa.RecordBatch, bool]]:
    """The input in pieces of about `run_bytes`, each with whether it is the last."""
    pending: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        if size >= run_bytes:
            yield concatenate(pending, array_bytes), False
            pending, size = [], 0
        if batch.num_rows:
            pending.append(batch)
            size += batch.nbytes
    if pending:
        yield concatenate(pending, array_bytes), True


def without_control(rows: pa.RecordBatch) -> tuple[pa.RecordBatch, int | None]:
    """Takes the control row out, and reads the instance where the rows carry it."""
    named = None
    if INSTANCE in rows.schema.names and rows.num_rows:
        named = int(rows.column(INSTANCE)[0].as_py())
    # Rows of a single input have no side.
    data = rows.column(SIDE).fill_null(LEFT_CODE).to_numpy() != CONTROL_CODE
    return rows if data.all() else rows.filter(pa.array(data)), named


def named_instance(batches: Iterator[pa.RecordBatch]) -> int | None:
    """The instance that the rows name, where they do.

    All of them are read: Spark does not use a worker again that has left some of its input.
    """
    named = None
    for batch in batches:
        if batch.num_rows and INSTANCE in batch.schema.names:
            named = int(batch.column(INSTANCE)[0].as_py())
    return named
