"""The work of the map benchmark: waiting, as for a database, and a note of every wait."""

import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NamedTuple

import pyarrow as pa

SCHEMA = "batch int, id long, mention string, kind string, cost_ms double"
RESULT = "id long"
_RESULT = pa.schema([("id", pa.int64())])
# Of this process: one file for all tasks that it runs, so that no two write to the same.
_notes: dict[str, IO[str]] = {}


class Wait(NamedTuple):
    """One call: the row's batch and number, and when it began and ended, by the machine's clock."""

    batch: int
    id: int
    began_s: float
    ended_s: float


@dataclass(frozen=True)
class Waiting:
    """The function that all engines call for every row; a class, so that it pickles by name.

    The notes are the same for all engines, whatever an engine tells of itself: they say how long
    the work of a batch took from its first to its last row, and that no row was done twice.
    """

    notes: str  # a folder

    def __call__(self, row: dict[str, Any]) -> dict[str, Any]:
        began_s = time.perf_counter()
        time.sleep(row["cost_ms"] / 1e3)
        ended_s = time.perf_counter()
        self._file().write(f"{row['batch']} {row['id']} {began_s:.6f} {ended_s:.6f}\n")
        return {"id": row["id"]}

    def over_batches(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The same work as Spark's `mapInArrow` takes it."""
        for batch in batches:
            yield pa.RecordBatch.from_pylist([self(row) for row in batch.to_pylist()], _RESULT)

    def _file(self) -> IO[str]:
        if self.notes not in _notes:
            path = Path(self.notes) / f"{os.getpid()}"
            _notes[self.notes] = path.open("a", buffering=1, encoding="utf-8")
        return _notes[self.notes]


def read_notes(folder: Path) -> dict[int, list[Wait]]:
    """All calls by their batch."""
    found: dict[int, list[Wait]] = {}
    for path in folder.iterdir():
        for line in path.read_text(encoding="utf-8").splitlines():
            batch, number, began_s, ended_s = line.split()
            wait = Wait(int(batch), int(number), float(began_s), float(ended_s))
            found.setdefault(wait.batch, []).append(wait)
    return found


@dataclass(frozen=True)
class MapBatch:
    """One micro-batch: all of it, and the part in which rows were worked on."""

    number: int
    seconds: float  # durationMs.addBatch
    rows: int  # calls, each of another row
    repeated: int  # calls beyond the first of a row
    makespan_s: float  # from the first call's beginning to the last one's end
    work_s: float  # of all calls together


def batch_of(number: int, seconds: float, waits: Sequence[Wait]) -> MapBatch:
    """What the notes tell of a batch.

    >>> batch_of(0, 0.5, [Wait(0, 1, 7.0, 7.25), Wait(0, 2, 7.0, 7.125)]).makespan_s
    0.25
    """
    rows = len({wait.id for wait in waits})
    began = min((wait.began_s for wait in waits), default=0.0)
    ended = max((wait.ended_s for wait in waits), default=0.0)
    return MapBatch(
        number,
        seconds,
        rows,
        repeated=len(waits) - rows,
        makespan_s=ended - began,
        work_s=sum(wait.ended_s - wait.began_s for wait in waits),
    )
