"""How the rows of a map travel: the user's columns under short names, beside hash and instance."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from skewless.engine.columns import CONTROL_CODE, HASH, INSTANCE, SIDE, slot_name


@dataclass(frozen=True)
class MapLayout:
    """The user's columns by slot: a column of theirs may have any name, also that of a helper."""

    columns: tuple[str, ...]

    @property
    def slots(self) -> tuple[str, ...]:
        return tuple(slot_name(i) for i in range(len(self.columns)))

    def unpack(
        self, batch: pa.RecordBatch
    ) -> tuple[pa.RecordBatch, npt.NDArray[np.uint64], int | None]:
        """The rows as the user knows them, their hashes, and the instance if the rows tell."""
        names = batch.schema.names
        instance = None
        if INSTANCE in names and batch.num_rows:
            instance = int(batch.column(INSTANCE)[0].as_py())
        if SIDE in names:
            control = pc.equal(batch.column(SIDE), CONTROL_CODE).fill_null(False)
            if pc.any(control).as_py():
                batch = batch.filter(pc.invert(control))
        rows = pa.RecordBatch.from_arrays(
            [batch.column(slot) for slot in self.slots], names=list(self.columns)
        )
        return rows, batch.column(HASH).to_numpy().view(np.uint64), instance
