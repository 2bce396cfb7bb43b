"""Hands over joined pairs in batches that are neither tiny nor huge."""

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from skewless.kernels.equijoin import Probe
from skewless.kernels.runs import concatenate


@dataclass(frozen=True)
class Limits:
    """How much a task holds at once."""

    run_bytes: int = 256 * 2**20  # input sorted at a time; more input becomes several runs
    chunk_bytes: int = 4 * 2**20  # joined pairs handed over at a time
    chunk_rows: int = 65_536


class Chunks:
    """Joins small batches of pairs into larger ones and keeps large ones bounded."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._pending: list[pa.RecordBatch] = []
        self._pending_rows = 0
        self._pending_bytes = 0
        self._schema: pa.Schema | None = None

    def rows_at_once(self, found: Probe) -> int:
        width = found.needles.row_bytes + found.stored.row_bytes
        return int(max(1, min(self._limits.chunk_rows, self._limits.chunk_bytes / width)))

    def add(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        if not batch.num_rows:
            return
        if self._schema is None:
            self._schema = batch.schema
        elif not batch.schema.equals(self._schema):
            # Stored under another time zone of the session: one stream has one schema.
            batch = batch.cast(self._schema)
        self._pending.append(batch)
        self._pending_rows += batch.num_rows
        self._pending_bytes += batch.get_total_buffer_size()
        enough = self._pending_rows * 2 > self._limits.chunk_rows
        if enough or self._pending_bytes * 2 > self._limits.chunk_bytes:
            yield from self.flush()

    def flush(self) -> Iterator[pa.RecordBatch]:
        if self._pending:
            batch = concatenate(self._pending)
            self._pending, self._pending_rows, self._pending_bytes = [], 0, 0
            yield batch
