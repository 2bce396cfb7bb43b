"""Segments: immutable Arrow files of one side's rows, sorted by (hash, time).

Where rows are found by several hashes, the file has two parts, Arrow streams both: the rows, and
behind them the postings, sorted by (hash, time), each with the number of its row.
"""

import base64
import zlib
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from skewless.errors import bad_argument
from skewless.kernels.runs import SortedRun
from skewless.routing.partitions import Packed, as_flags, packed, partition_of, unpacked
from skewless.state.naming import SEGMENTS, folder_of, is_plain_name
from skewless.state.storage import MissingFileError, StateError, Storage

HASH_COLUMN = "h"
_POSTING_TIME, _POSTING_ROW = "t", "at"
_ALIGNED = 64
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
    partitions: Packed  # those that have rows here, packed
    of_partitions: int  # how many there were when it was written
    mixed_keys: bool
    checksum: int  # CRC-32 of the file
    index_offset: int = 0  # where the postings begin in the file; 0: rows are their own

    def __post_init__(self) -> None:
        # A record that names a file elsewhere must not make us read it.
        if not is_plain_name(self.name):
            raise bad_argument("name", self.name, "the name of a file, without a folder")

    @property
    def path(self) -> str:
        """Where its file is in the state directory."""
        return f"{SEGMENTS}/{folder_of(self.name)}/{self.name}"

    def meets(self, partitions: frozenset[int], of: int) -> bool:
        """Whether any row may be of these partitions, of so many."""
        if of != self.of_partitions:
            return bool(partitions)  # keys were dealt out in another way when it was written
        return bool(as_flags(partitions, of)[unpacked(self.partitions)].any())

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "partitions": base64.b64encode(self.partitions).decode()}

    @staticmethod
    def from_json(record: dict[str, Any]) -> "Segment":
        return Segment(**{**record, "partitions": base64.b64decode(record["partitions"])})


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
    memory = pa.BufferOutputStream()
    index_offset = 0
    if run.at is None:
        batch = pa.RecordBatch.from_arrays(
            [pa.array(run.hashes), *run.rows.columns], names=[HASH_COLUMN, *run.rows.schema.names]
        )
        with pa.ipc.new_file(memory, batch.schema, options=_OPTIONS) as file:
            file.write_batch(batch)
        size = batch.get_total_buffer_size()
    else:
        _append(memory, run.rows)
        memory.write(b"\0" * (-memory.tell() % _ALIGNED))
        index_offset = memory.tell()
        postings = pa.RecordBatch.from_arrays(
            [pa.array(part) for part in (run.hashes, run.times, run.at)],
            names=[HASH_COLUMN, _POSTING_TIME, _POSTING_ROW],
        )
        _append(memory, postings)
        size = run.rows.get_total_buffer_size() + postings.get_total_buffer_size()
    content = memory.getvalue()
    storage.write(f"{SEGMENTS}/{folder_of(name)}/{name}", lambda out: out.write(content))
    present = run.present
    if present is None:
        present = np.unique(partition_of(run.hashes, partitions))
    bulk = int(_BULK_SHARE * (len(run) - 1))
    return Segment(
        name=name,
        side=side,
        instance=instance,
        level=level,
        first_batch=batches[0],
        last_batch=batches[1],
        rows=run.rows.num_rows,
        bytes=size,
        min_time_us=int(run.times.min()),
        max_time_us=int(run.times.max()),
        bulk_time_us=int(np.partition(run.times, bulk)[bulk]),
        partitions=packed(present),
        of_partitions=partitions,
        mixed_keys=run.mixed_keys,
        checksum=zlib.crc32(content),
        index_offset=index_offset,
    )


def _append(memory: pa.BufferOutputStream, batch: pa.RecordBatch) -> None:
    """One part of a file with two."""
    with pa.ipc.new_stream(memory, batch.schema, options=_OPTIONS) as stream:
        stream.write_batch(batch)


def _part(content: pa.Buffer) -> pa.RecordBatch:
    with pa.ipc.open_stream(content) as stream:
        return stream.read_next_batch()


def open_segment(storage: Storage, segment: Segment, time_column: str) -> SortedRun:
    """Maps a segment into memory; nothing is copied when the storage is local."""
    name = segment.path
    try:
        content = storage.read_mapped(name)
    except MissingFileError as failure:
        raise StateError(
            f"{storage.path(name)}: a segment of the last commit is missing; {_REMEDY}"
        ) from failure
    _check(storage, name, segment, content)
    if segment.index_offset:
        postings = _part(content.slice(segment.index_offset))
        return SortedRun(
            hashes=postings.column(HASH_COLUMN).to_numpy(),
            times=postings.column(_POSTING_TIME).to_numpy(),
            rows=_part(content.slice(0, segment.index_offset)),
            mixed_keys=False,
            at=postings.column(_POSTING_ROW).to_numpy(),
        )
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
