"""The rows that a task drops because they are late or bad: a few are shown, or all are kept."""

import math
import uuid
from typing import Any

import pyarrow as pa

from skewless.engine.badrows import shown_value
from skewless.load.report import DroppedRow
from skewless.state.dropped import DroppedFile, write_dropped
from skewless.state.naming import BatchNames
from skewless.state.storage import Storage

# So many rows of an operator are shown in the progress of a batch, where all are not kept,
SAMPLES = 5
# and so many columns of each.
_COLUMNS = 30


class Dropped:
    """What one instance drops of a batch.

    `keep` writes every row to a file, from which the dead letters of the batch are made. Otherwise
    the first few are remembered for the report.
    """

    def __init__(self, storage: Storage, names: BatchNames, *, keep: bool) -> None:
        self._storage = storage
        self._names = names
        self._keep = keep
        # A report names only files that its own run has written.
        self._nonce = uuid.uuid4().hex[:8]
        self._pending: list[tuple[str, str, pa.RecordBatch]] = []
        self.files: list[DroppedFile] = []
        self.samples: list[DroppedRow] = []

    @property
    def wants_more(self) -> bool:
        """Whether another row would leave a trace."""
        return self._keep or len(self.samples) < SAMPLES

    def add(self, side: str, rows: pa.RecordBatch, reason: str) -> None:
        """Rows of an input, under the names that its user knows."""
        if not rows.num_rows:
            return
        if self._keep:
            self._pending.append((side, reason, rows))
            return
        for at in range(min(rows.num_rows, SAMPLES - len(self.samples))):
            self.samples.append(DroppedRow(side, reason, _shown(rows, at)))

    def flush(self, instance: int) -> None:
        """Writes what was added since the last time; called often enough to keep memory small."""
        for side in dict.fromkeys(side for side, _, _ in self._pending):
            mine = [(reason, rows) for s, reason, rows in self._pending if s == side]
            part = f"{self._nonce}-{len(self.files):04d}"
            reasons = [pa.repeat(pa.scalar(reason), rows.num_rows) for reason, rows in mine]
            structs = [rows.to_struct_array() for _, rows in mine]
            self.files.append(
                write_dropped(
                    self._storage,
                    self._names.segment(instance, side, part),
                    side,
                    pa.concat_arrays(reasons),
                    pa.concat_arrays(structs),
                )
            )
        self._pending = []


def _shown(rows: pa.RecordBatch, at: int) -> dict[str, Any]:
    names = rows.schema.names
    shown = {name: _plain(shown_value(rows.column(name)[at])) for name in names[:_COLUMNS]}
    if len(names) > _COLUMNS:
        shown["…"] = f"{len(names) - _COLUMNS} more columns"
    return shown


def _plain(value: Any) -> Any:
    """A value that every reader of JSON knows."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    return value.isoformat() if hasattr(value, "isoformat") else str(value)
