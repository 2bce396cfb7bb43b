"""Segments: immutable Arrow files of one side's rows, sorted by (hash, time)."""

import zlib
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from skewless.errors import bad_argument
from skewless.kernels.runs import SortedRun
from skewless.routing.partitions import as_bitmap, bitmap_meets, partition_of
from skewless.state.naming import SEGMENTS, is_plain_name
from skewless.state.storage import MissingFileError, StateError, Storage

HASH_COLUMN = "h"
# 64-byte aligned, uncompressed buffers: what can be mapped is used as it lies on the disk.
_OPTIONS = pa.ipc.IpcWriteOptions(use_threads=False)
# The times below which this share of the rows lie tells a few stray rows from the bulk.
_BULK_SHARE = 0.9
_REMEDY = "restore the file from a backup, or start over with a new checkpointLocation"
# Segments whose checksum this process has compared; live ones are far fewer.
_checked: set[tuple[str, str, int, int]] = set()
_CHECKED_KEPT = 100_000


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
    checksum: int  # CRC-32 of the file

    def __post_init__(self) -> None:
        # A record that names a file elsewhere must not make us read it.
        if not is_plain_name(self.name):
            raise bad_argument("name", self.name, "the name of a file, without a folder")

    def meets(self, partitions: frozenset[int]) -> bool:
        """Whether any row may be of these partitions."""
        return bitmap_meets(self.partitions, partitions)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @staticmethod
    def from_json(record: dict[str, Any]) -> "Segment":
        # Checkpoints of earlier versions have a field that nothing ever set.
        return Segment(**{name: value for name, value in record.items() if name != "marks"})


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

    memory = pa.BufferOutputStream()
    with pa.ipc.new_file(memory, batch.schema, options=_OPTIONS) as file:
        file.write_batch(batch)
    content = memory.getvalue()
    storage.write(f"{SEGMENTS}/{name}", lambda out: out.write(content))
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
        checksum=zlib.crc32(content),
    )


def open_segment(storage: Storage, segment: Segment, time_column: str) -> SortedRun:
    """Maps a segment into memory; nothing is copied when the storage is local."""
    name = f"{SEGMENTS}/{segment.name}"
    try:
        content = storage.read_mapped(name)
    except MissingFileError as failure:
        raise StateError(
            f"{storage.path(name)}: a segment of the last commit is missing; {_REMEDY}"
        ) from failure
    _check(storage, name, segment, content)
    with pa.ipc.open_file(content) as file:
        batch = file.get_batch(0)
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


def _check(storage: Storage, name: str, segment: Segment, content: pa.Buffer) -> None:
    """Compares the checksum the first time this process meets the file in its present form.

    Arrow trusts the offsets that it maps: a damaged file would not fail, it would end the process.
    """
    version = (storage.uri, name, content.size, storage.modified_ns(name))
    if version in _checked:
        return
    if zlib.crc32(content) != segment.checksum:
        raise StateError(
            f"{storage.path(name)}: the segment is corrupt (its checksum is wrong); {_REMEDY}"
        )
    if len(_checked) >= _CHECKED_KEPT:
        _checked.clear()
    _checked.add(version)
