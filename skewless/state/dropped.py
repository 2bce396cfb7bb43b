"""Files of rows that tasks have dropped, from which dead letters are made before the commit."""

import zlib
from dataclasses import dataclass

import pyarrow as pa

from skewless.state.naming import DROPPED, folder_of
from skewless.state.storage import StateError, Storage

# The columns of a file. A row is one column, so its own columns may have any name.
REASON, ROW = "reason", "row"


@dataclass(frozen=True)
class DroppedFile:
    """Rows of one input of an operator."""

    name: str
    side: str
    rows: int
    checksum: int  # CRC-32 of the file

    @property
    def path(self) -> str:
        """Where it is in the state directory."""
        return f"{DROPPED}/{folder_of(self.name)}/{self.name}"


def write_dropped(
    storage: Storage, name: str, side: str, reasons: pa.Array, rows: pa.StructArray
) -> DroppedFile:
    batch = pa.RecordBatch.from_arrays([reasons, rows], names=[REASON, ROW])
    memory = pa.BufferOutputStream()
    with pa.ipc.new_file(memory, batch.schema) as file:
        file.write_batch(batch)
    content = memory.getvalue()
    file = DroppedFile(name, side, batch.num_rows, zlib.crc32(content))
    storage.write(file.path, lambda out: out.write(content))
    return file


def read_dropped(storage: Storage, file: DroppedFile) -> pa.RecordBatch:
    """The rows of a file: why each was dropped, and the row itself."""
    content = storage.read_mapped(file.path)
    if zlib.crc32(content) != file.checksum:
        raise StateError(
            f"{storage.path(file.path)}: the file of dropped rows is corrupt (its checksum is "
            "wrong); nothing of the batch was committed: start the query again to run it once more"
        )
    with pa.ipc.open_file(content) as opened:
        return opened.get_batch(0)
