"""Files of rows that tasks have dropped, from which dead letters are made before the commit."""

from dataclasses import dataclass

import pyarrow as pa

from skewless.state.naming import DROPPED, folder_of
from skewless.state.storage import Storage

# The columns of a file. A row is one column, so its own columns may have any name.
REASON, ROW = "reason", "row"


@dataclass(frozen=True)
class DroppedFile:
    """Rows of one input of an operator."""

    name: str
    side: str
    rows: int


def write_dropped(
    storage: Storage, name: str, side: str, reasons: pa.Array, rows: pa.StructArray
) -> DroppedFile:
    batch = pa.RecordBatch.from_arrays([reasons, rows], names=[REASON, ROW])
    memory = pa.BufferOutputStream()
    with pa.ipc.new_file(memory, batch.schema) as file:
        file.write_batch(batch)
    content = memory.getvalue()
    storage.write(f"{DROPPED}/{folder_of(name)}/{name}", lambda out: out.write(content))
    return DroppedFile(name, side, batch.num_rows)


def read_dropped(storage: Storage, name: str) -> pa.RecordBatch:
    """The rows of a file: why each was dropped, and the row itself."""
    with pa.ipc.open_file(storage.read_mapped(f"{DROPPED}/{folder_of(name)}/{name}")) as file:
        return file.get_batch(0)
