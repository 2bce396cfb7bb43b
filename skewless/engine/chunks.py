"""Hands over joined pairs in batches that are neither tiny nor huge."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa

from skewless.kernels.conditions import Condition
from skewless.kernels.equijoin import Probe
from skewless.kernels.ordering import IndexArray
from skewless.kernels.pieces import ARRAY_BYTES, cuts, pieces
from skewless.kernels.runs import SortedRun, concatenate
from skewless.kernels.widths import bytes_at, bytes_between, varying_columns


@dataclass(frozen=True)
class Limits:
    """How much a task holds at once."""

    run_bytes: int = 256 * 2**20  # input sorted at a time; more input becomes several runs
    chunk_bytes: int = 4 * 2**20  # joined pairs handed over at a time
    chunk_rows: int = 65_536
    array_bytes: int = ARRAY_BYTES  # rows in one Arrow array; more need 64-bit offsets


def bounded(batch: pa.RecordBatch, limits: Limits) -> Iterator[pa.RecordBatch]:
    """A batch in pieces that are not too large to hand over."""
    return pieces(batch, limits.chunk_bytes, limits.chunk_rows)


class Watch(Protocol):
    """Sees the pairs of postings that a probe has compared, and those that match."""

    def compared(self, needle: IndexArray, stored: IndexArray) -> None: ...
    def matched(self, needle: IndexArray, stored: IndexArray) -> None: ...


class Chunks:
    """Joins small batches of pairs into larger ones and keeps large ones bounded."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._pending: list[pa.RecordBatch] = []
        self._pending_rows = 0
        self._pending_bytes = 0
        self._schema: pa.Schema | None = None

    def portions(
        self,
        found: Probe,
        keys: Sequence[str],
        condition: Condition | None = None,
        watch: Watch | None = None,
    ) -> Iterator[tuple[IndexArray, IndexArray]]:
        """The pairs of a probe as row numbers, (needle, stored), as many as may exist at once.

        With a condition the pairs of the probe are candidates, and those that fulfil it are given.
        Mean widths say how many pairs that is, and rows of one size need no more. Where a column
        has values of any size, one huge value of a hot key can be in every pair of a portion: its
        true bytes are added up, and a portion far above the limit is cut.
        """
        if condition is not None:
            yield from self._qualifying(found, keys, condition, watch)
            return
        limit = self._limits.chunk_bytes
        width = found.needles.row_bytes + found.stored.row_bytes
        at_once = int(max(1, min(self._limits.chunk_rows, limit / width)))
        sides = [varying_columns(run.rows) for run in (found.needles, found.stored)]
        for needle, stored in found.pairs(keys, at_once):
            if watch is not None:
                watch.compared(needle, stored)
                watch.matched(needle, stored)
            # Rows around the mean are not cut: twice the limit passes.
            if not any(sides) or _bytes_of_pairs(sides, needle, stored) <= 2 * limit:
                yield needle, stored
                continue
            upto = np.cumsum(bytes_at(sides[0], needle) + bytes_at(sides[1], stored))
            for begin, end in cuts(upto, limit):
                yield needle[begin:end], stored[begin:end]

    def _qualifying(
        self, found: Probe, keys: Sequence[str], condition: Condition, watch: Watch | None
    ) -> Iterator[tuple[IndexArray, IndexArray]]:
        """The pairs that fulfil a condition: a candidate is two numbers, whatever its rows are."""
        needles, stored = found.needles, found.stored
        for needle, other in found.pairs(keys, self._limits.chunk_rows):
            chosen = condition.qualifying(needles, stored, needle, other)
            if watch is not None:
                watch.compared(needle, other)
                watch.matched(needle[chosen], other[chosen])
            left, right = needles.rows_of(needle[chosen]), stored.rows_of(other[chosen])
            yield from self.cut(needles, stored, left, right)

    def cut(
        self, needles: SortedRun, stored: SortedRun, left: IndexArray, right: IndexArray
    ) -> Iterator[tuple[IndexArray, IndexArray]]:
        """Pairs of rows of two runs in portions that may exist at once."""
        if not len(left):
            return
        upto = np.cumsum(
            bytes_at(needles.rows.columns, left) + bytes_at(stored.rows.columns, right)
        )
        for begin, end in cuts(upto, self._limits.chunk_bytes):
            yield left[begin:end], right[begin:end]

    def add(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        if not batch.num_rows:
            return
        if self._schema is None:
            self._schema = batch.schema
        elif not batch.schema.equals(self._schema):
            # Stored under another time zone of the session: one stream has one schema.
            batch = batch.cast(self._schema)
        size = batch.get_total_buffer_size()
        if size > self._limits.chunk_bytes:
            yield from self.flush()  # a large batch is not copied to be joined with what waits
        self._pending.append(batch)
        self._pending_rows += batch.num_rows
        self._pending_bytes += size
        enough = self._pending_rows * 2 > self._limits.chunk_rows
        if enough or self._pending_bytes * 2 > self._limits.chunk_bytes:
            yield from self.flush()

    def flush(self) -> Iterator[pa.RecordBatch]:
        if self._pending:
            # Arrow would copy a single batch, too.
            batch = self._pending[0] if len(self._pending) == 1 else concatenate(self._pending)
            self._pending, self._pending_rows, self._pending_bytes = [], 0, 0
            yield batch


def _bytes_of_pairs(sides: Sequence[list[pa.Array]], needle: IndexArray, stored: IndexArray) -> int:
    """At most so many bytes; found by needle, not by pair: what a needle meets are neighbours."""
    if not len(needle):
        return 0
    first = np.flatnonzero(np.diff(needle, prepend=-1))
    end = np.append(first[1:], len(needle))
    needles = bytes_at(sides[0], needle[first]) * (end - first)
    return int((needles + bytes_between(sides[1], stored[first], stored[end - 1] + 1)).sum())
