"""Segments: immutable Arrow files of one side's rows, sorted by (hash, time)."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from skewless.kernels.runs import SortedRun
from skewless.routing.partitions import as_bitmap, bitmap_meets, partition_of
from skewless.state.storage import MissingFileError, StateError, Storage

DIRECTORY = "segments"
HASH_COLUMN = "h"
# 64-byte aligned, uncompressed buffers: what can be mapped is used as it lies on the disk.
_OPTIONS = pa.ipc.IpcWriteOptions(use_threads=False)
# The times below which this share of the rows lie tells a few stray rows from the bulk.
_BULK_SHARE = 0.9


@dataclass(frozen=True)
class Segment:
    """What a commit knows of a segment without opening it. Times in microseconds."""

    name: str
    side: str
    instance: int  # which instance wrote it: neighbours of one instance are merged
    level: int  # how many times its rows were merged
    first_batch: int
    last_batch: int
    rows: int
    bytes: int
    min_time_us: int
    max_time_us: int
    bulk_time_us: int  # nine rows of ten are not newer
    partitions: str  # bitmap of the partitions that have rows here
    mixed_keys: bool
    marks: str | None = None  # file of match marks, for joins that must know who never matched

    def meets(self, partitions: frozenset[int]) -> bool:
        """Whether any row may be of these partitions."""
        return bitmap_meets(self.partitions, partitions)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @staticmethod
    def from_json(record: dict[str, Any]) -> "Segment":
        return Segment(**record)


def write_segment(
    storage: Storage,
    name: str,
    run: SortedRun,
    *,
    side: str,
    instance: int,
    level: int,
    batches: tuple[int, int],
    partitions: int,
) -> Segment:
    """Writes a run that has rows as one file and describes it."""
    batch = pa.RecordBatch.from_arrays(
        [pa.array(run.hashes), *run.rows.columns], names=[HASH_COLUMN, *run.rows.schema.names]
    )

    def write(out: pa.NativeFile) -> None:
        with pa.ipc.new_file(out, batch.schema, options=_OPTIONS) as file:
            file.write_batch(batch)

    storage.write(f"{DIRECTORY}/{name}", write)
    present = np.unique(partition_of(run.hashes, partitions))
    bulk = int(_BULK_SHARE * (len(run) - 1))
    return Segment(
        name=name,
        side=side,
        instance=instance,
        level=level,
        first_batch=batches[0],
        last_batch=batches[1],
        rows=len(run),
        bytes=batch.get_total_buffer_size(),
        min_time_us=int(run.times.min()),
        max_time_us=int(run.times.max()),
        bulk_time_us=int(np.partition(run.times, bulk)[bulk]),
        partitions=as_bitmap(present),
        mixed_keys=run.mixed_keys,
    )


def open_segment(storage: Storage, segment: Segment, time_column: str) -> SortedRun:
    """Maps a segment into memory; nothing is copied when the storage is local."""
    name = f"{DIRECTORY}/{segment.name}"
    try:
        with pa.ipc.open_file(storage.open_input(name)) as file:
            batches = [file.get_batch(i) for i in range(file.num_record_batches)]
            for batch in batches:
                batch.validate()
    except MissingFileError as failure:
        raise StateError(
            f"{storage.path(name)}: a segment of the last commit is missing; restore the file from "
            "a backup, or start over with a new checkpointLocation"
        ) from failure
    except (pa.ArrowInvalid, OSError, ValueError) as failure:
        raise _corrupt(storage, name, str(failure)) from failure
    if len(batches) != 1 or batches[0].num_rows != segment.rows:
        found = sum(b.num_rows for b in batches)
        raise _corrupt(storage, name, f"it holds {found} rows, the commit says {segment.rows}")
    batch = batches[0]
    if HASH_COLUMN not in batch.schema.names or time_column not in batch.schema.names:
        raise _corrupt(storage, name, "its columns are not those of a segment")
    return SortedRun(
        hashes=batch.column(HASH_COLUMN).to_numpy(),
        times=times_us(batch.column(time_column)),
        rows=batch.select([c for c in batch.schema.names if c != HASH_COLUMN]),
        mixed_keys=segment.mixed_keys,
    )


def times_us(column: pa.Array) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """A timestamp column without nulls as microseconds, not copied."""
    numbers: np.ndarray[tuple[int], np.dtype[np.int64]] = column.view(pa.int64()).to_numpy()
    return numbers


def _corrupt(storage: Storage, name: str, why: str) -> StateError:
    return StateError(
        f"{storage.path(name)}: the segment is corrupt ({why}); restore the file from a backup, or "
        "start over with a new checkpointLocation"
    )
