"""The rows that a task drops because they are late or bad: a few are shown, or all are kept."""

import math
import uuid
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from skewless.engine.badrows import shown_value
from skewless.kernels.pieces import pieces
from skewless.load.report import DroppedRow
from skewless.state.dropped import DroppedFile, write_dropped
from skewless.state.naming import BatchNames
from skewless.state.storage import Storage

# So many rows of an operator are shown in the progress of a batch, where all are not kept,
SAMPLES = 5
# and so many columns of each.
_COLUMNS = 30
_LONGEST = 200
# So much waits to be written: few files, and little memory.
_WAITING_BYTES = 16 * 2**20
_FILE_BYTES = 256 * 2**20
_WAITING_ROWS = 1024


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
        self._waiting: dict[str, list[tuple[str, pa.RecordBatch]]] = {}
        self._waiting_bytes = 0
        self._single: list[tuple[str, dict[str, Any], pa.Schema, str]] = []
        self.files: list[DroppedFile] = []
        self.samples: list[DroppedRow] = []

    def take(
        self, side: str, rows: pa.RecordBatch, chosen: npt.NDArray[np.bool_], reason: str
    ) -> int:
        """Drops some rows of an input, under the names that its user knows; how many they are."""
        count = int(chosen.sum())
        if count and (self._keep or len(self.samples) < SAMPLES):
            at = np.flatnonzero(chosen)
            self._add(side, rows.take(pa.array(at if self._keep else at[:SAMPLES])), reason)
        return count

    def take_row(self, side: str, row: dict[str, Any], schema: pa.Schema, reason: str) -> None:
        """Drops one row, as a function of single rows has it."""
        if self._keep or len(self.samples) < SAMPLES:
            self._single.append((side, row, schema, reason))
            if not self._keep or len(self._single) >= _WAITING_ROWS:
                self._gather()

    def flush(self, instance: int) -> None:
        """Writes what waits, if it is much; called often enough to keep memory small."""
        if self._waiting_bytes >= _WAITING_BYTES:
            self._write(instance)

    def close(self, instance: int) -> None:
        """Writes what still waits."""
        self._gather()
        self._write(instance)

    def _gather(self) -> None:
        """Makes batches of single rows: one for those that were dropped for the same reason."""
        alike: dict[tuple[str, str], tuple[pa.Schema, list[dict[str, Any]]]] = {}
        for side, row, schema, reason in self._single:
            alike.setdefault((side, reason), (schema, []))[1].append(row)
        self._single = []
        for (side, reason), (schema, rows) in alike.items():
            self._add(side, pa.RecordBatch.from_pylist(rows, schema), reason)

    def _add(self, side: str, rows: pa.RecordBatch, reason: str) -> None:
        if self._keep:
            self._waiting.setdefault(side, []).append((reason, rows))
            self._waiting_bytes += rows.nbytes
            return
        for at in range(min(rows.num_rows, SAMPLES - len(self.samples))):
            self.samples.append(DroppedRow(side, reason, _shown(rows, at)))

    def _write(self, instance: int) -> None:
        for side, waiting in self._waiting.items():
            cut = [(why, piece) for why, rows in waiting for piece in pieces(rows, _FILE_BYTES)]
            while cut:
                size = 0
                together: list[tuple[str, pa.RecordBatch]] = []
                while cut and (not together or size + cut[0][1].nbytes <= _FILE_BYTES):
                    size += cut[0][1].nbytes
                    together.append(cut.pop(0))
                self.files.append(self._written(instance, side, together))
        self._waiting, self._waiting_bytes = {}, 0

    def _written(
        self, instance: int, side: str, rows: list[tuple[str, pa.RecordBatch]]
    ) -> DroppedFile:
        part = f"{self._nonce}-{len(self.files):04d}"
        return write_dropped(
            self._storage,
            self._names.segment(instance, side, part),
            side,
            pa.concat_arrays([pa.repeat(pa.scalar(why), piece.num_rows) for why, piece in rows]),
            pa.concat_arrays([piece.to_struct_array() for _, piece in rows]),
        )


def _shown(rows: pa.RecordBatch, at: int) -> dict[str, Any]:
    names = rows.schema.names
    shown = {name: _plain(shown_value(rows.column(name)[at])) for name in names[:_COLUMNS]}
    if len(names) > _COLUMNS:
        shown["…"] = f"{len(names) - _COLUMNS} more columns"
    return shown


def _plain(value: Any) -> Any:
    """A value that every reader of JSON knows, and that nobody has to scroll through."""
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    text = value.isoformat() if hasattr(value, "isoformat") else str(value)
    return text if len(text) <= 2 * _LONGEST else f"{text[:_LONGEST]}…"
