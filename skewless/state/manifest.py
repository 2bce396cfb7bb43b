"""Manifests: what is known of the segments of a batch, written once and named by every commit.

A commit that described all live segments would grow with the state, and so would every task that is
sent their description. So the segments that a batch adds are described in one file of columns. A
commit names the manifests it needs and says which of their segments are live; a task is sent the
same names, reads a manifest once per process, and looks at the segments it needs alone.
"""

import threading
import zlib
from collections import OrderedDict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from skewless.routing.partitions import as_flags
from skewless.state.naming import MANIFESTS, is_plain_name
from skewless.state.segment import Segment
from skewless.state.storage import MissingFileError, StateError, Storage

_REMEDY = "restore the file from a backup, or start over with a new checkpointLocation"
_KINDS = {str: pa.string(), int: pa.int64(), bool: pa.bool_(), bytes: pa.binary()}
_SCHEMA = pa.schema([(f.name, _KINDS[f.type]) for f in fields(Segment)])  # type: ignore[index]
Flags = npt.NDArray[np.bool_]


class Segments(Protocol):
    """The live segments of an operator, as a task looks at them."""

    def __iter__(self) -> Iterator[Segment]: ...

    def meeting(self, side: str, partitions: frozenset[int], of: int) -> list[Segment]:
        """Those of a side that may have rows of these partitions, of so many."""
        ...

    def written_by(self, instance: int, of: int) -> list[Segment]:
        """Those that one of so many instances is to merge: its own, and its share of those of
        instances that are no more."""
        ...

    def oldest_batch(self, side: str, but: Collection[str]) -> int | None:
        """The first batch that any segment of a side has rows of, some segments left out."""
        ...


class Manifest(NamedTuple):
    """A manifest file, and which of its segments are live (a hexadecimal bitmap; None: all)."""

    name: str
    checksum: int
    live: str | None = None

    def flags(self, count: int) -> Flags:
        if self.live is None:
            return np.ones(count, np.bool_)
        bits = np.frombuffer(bytes.fromhex(self.live), np.uint8)
        return np.unpackbits(bits, count=count).astype(np.bool_)

    @staticmethod
    def of(name: str, checksum: int, flags: Flags) -> "Manifest":
        live = None if flags.all() else np.packbits(flags).tobytes().hex()
        return Manifest(name, checksum, live)

    @staticmethod
    def from_json(record: Sequence[Any]) -> "Manifest":
        manifest = Manifest(*record)
        if not is_plain_name(manifest.name):
            raise ValueError(f"{manifest.name!r} is not the name of a manifest")
        return manifest


@dataclass(frozen=True)
class _Table:
    """The segments of one manifest as columns; objects are made of those that are asked for."""

    columns: pa.RecordBatch

    @cached_property
    def names(self) -> npt.NDArray[np.object_]:
        return self._column("name")

    @cached_property
    def first_batches(self) -> npt.NDArray[np.int64]:
        return self._column("first_batch")

    @cached_property
    def sides(self) -> npt.NDArray[np.object_]:
        return self._column("side")

    @cached_property
    def instances(self) -> npt.NDArray[np.int64]:
        return self._column("instance")

    @cached_property
    def _of_partitions(self) -> npt.NDArray[np.int64]:
        return self._column("of_partitions")

    @cached_property
    def _partitions(self) -> tuple[npt.NDArray[np.uint16], npt.NDArray[np.int64]]:
        """The partitions of all segments one after the other, and how many each has."""
        packed = self.columns.column("partitions").to_pylist()
        counts = np.array([len(p) // 2 for p in packed], np.int64)
        return np.frombuffer(b"".join(packed), "<u2"), counts

    def meets(self, partitions: frozenset[int], of: int) -> Flags:
        """`Segment.meets` of all segments."""
        values, counts = self._partitions
        foreign = self._of_partitions != of
        wanted = as_flags(partitions, of)
        # Those of segments that were dealt out in another way may be out of range.
        hits = wanted[np.minimum(values, of - 1)]
        owner = np.repeat(np.arange(len(counts)), counts)
        found = np.bincount(owner[hits], minlength=len(counts)) > 0
        return np.where(foreign, bool(partitions), found)

    def take(self, chosen: Flags) -> list[Segment]:
        rows = self.columns.filter(pa.array(chosen)).to_pylist()
        return [Segment(**row) for row in rows]

    def _column(self, name: str) -> Any:
        return self.columns.column(name).to_numpy(zero_copy_only=False)

    def __len__(self) -> int:
        return int(self.columns.num_rows)


@dataclass(frozen=True)
class StoredSegments:
    """Live segments by the manifests that describe them; small to send, however many they are."""

    storage: Storage
    manifests: tuple[Manifest, ...] = ()

    def __iter__(self) -> Iterator[Segment]:
        for manifest, table in self._tables():
            yield from table.take(manifest.flags(len(table)))

    def meeting(self, side: str, partitions: frozenset[int], of: int) -> list[Segment]:
        found: list[Segment] = []
        for manifest, table in self._tables():
            chosen = manifest.flags(len(table)) & (table.sides == side)
            found += table.take(chosen & table.meets(partitions, of))
        return found

    def written_by(self, instance: int, of: int) -> list[Segment]:
        found: list[Segment] = []
        for manifest, table in self._tables():
            found += table.take(manifest.flags(len(table)) & (table.instances % of == instance))
        return found

    def oldest_batch(self, side: str, but: Collection[str]) -> int | None:
        found: list[int] = []
        for manifest, table in self._tables():
            chosen = manifest.flags(len(table)) & (table.sides == side)
            chosen &= ~np.isin(table.names, list(but))
            found += table.first_batches[chosen].tolist()
        return min(found, default=None)

    def _tables(self) -> Iterator[tuple[Manifest, _Table]]:
        for manifest in self.manifests:
            yield manifest, _read(self.storage, manifest)


def write_manifest(storage: Storage, name: str, segments: Sequence[Segment]) -> Manifest:
    """Describes segments in a file of their own."""
    columns = [
        pa.array([getattr(s, field.name) for s in segments], field.type) for field in _SCHEMA
    ]
    batch = pa.RecordBatch.from_arrays(columns, schema=_SCHEMA)
    memory = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="lz4", use_threads=False)
    with pa.ipc.new_file(memory, _SCHEMA, options=options) as file:
        file.write_batch(batch)
    content = memory.getvalue()
    storage.write(f"{MANIFESTS}/{name}", lambda out: out.write(content))
    manifest = Manifest(name, zlib.crc32(content))
    _remember(storage, manifest, _Table(batch))
    return manifest


# Manifests are immutable: a process reads each of them once. So many batches of them are kept.
_KEPT = 512
_tables: OrderedDict[tuple[str, str, int], _Table] = OrderedDict()
_lock = threading.Lock()


def _read(storage: Storage, manifest: Manifest) -> _Table:
    key = (storage.uri, manifest.name, manifest.checksum)
    with _lock:
        if key in _tables:
            _tables.move_to_end(key)
            return _tables[key]
    name = f"{MANIFESTS}/{manifest.name}"
    try:
        content = storage.read_bytes(name)
    except MissingFileError as failure:
        raise MissingFileError(
            f"{storage.path(name)}: a manifest of the commit is missing; {_REMEDY}"
        ) from failure
    if zlib.crc32(content) != manifest.checksum:
        raise StateError(
            f"{storage.path(name)}: the manifest is corrupt (its checksum is wrong); {_REMEDY}"
        )
    with pa.ipc.open_file(content) as file:
        table = _Table(file.get_batch(0))
    _remember(storage, manifest, table)
    return table


def _remember(storage: Storage, manifest: Manifest, table: _Table) -> None:
    with _lock:
        _tables[storage.uri, manifest.name, manifest.checksum] = table
        while len(_tables) > _KEPT:
            _tables.popitem(last=False)
