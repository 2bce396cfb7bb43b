"""Queries and a session that stand in for Spark's, so that a demo takes seconds."""

import threading
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from .records import record


class FakeQuery:
    """Takes up all files that are new at each look, as a micro-batch would."""

    def __init__(self, orders: str, drivers: str, fail_at: int | None) -> None:
        self._folders = [Path(orders), Path(drivers)]
        self._seen: set[Path] = set()
        self._records: list[dict[str, Any]] = []
        self._fail_at = fail_at
        self._ended = threading.Event()

    @property
    def isActive(self) -> bool:  # noqa: N802 - Spark's name
        return not self._ended.is_set()

    def exception(self) -> Exception | None:
        return RuntimeError("the batch broke") if self._ended.is_set() else None

    @property
    def recentProgress(self) -> list[dict[str, Any]]:  # noqa: N802 - Spark's name
        return self._records

    @property
    def lastProgress(self) -> dict[str, Any] | None:  # noqa: N802 - Spark's name
        rows = []
        for folder in self._folders:
            new = sorted(set(folder.glob("part-*")) - self._seen)
            self._seen.update(new)
            rows.append(sum(self.rows_of(file) for file in new))
        if sum(rows):
            self._records.append(self.told(len(self._records), rows))
        if len(self._records) == self._fail_at:
            self._ended.set()
        return self._records[-1] if self._records else None

    def rows_of(self, file: Path) -> int:
        """Rows of a file that the query takes up."""
        return int(pq.read_metadata(file).num_rows)

    def told(self, number: int, rows: list[int]) -> dict[str, Any]:
        """The record of a batch with so many rows of each folder."""
        return record(number, rows=(rows[0], rows[1]))

    def awaitTermination(self, timeout: float) -> bool:  # noqa: N802 - Spark's name
        return self._ended.wait(timeout)

    def stop(self) -> None:
        self._ended.set()


class FakeSession:
    stopped = False

    def stop(self) -> None:
        self.stopped = True
