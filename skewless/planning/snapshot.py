"""What a planner may know: the measured loads and the current table."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from skewless.errors import SkewlessError
from skewless.load.resources import per_instance
from skewless.routing.entries import Entry
from skewless.routing.partitions import PartitionTable
from skewless.routing.splits import Split

Loads = npt.NDArray[np.float64]


@dataclass(frozen=True)
class HotKey:
    """A key that is heavy enough to be reported by itself. Its partition's load includes `load`."""

    hash: int
    partition: int
    load: float
    left_rows: int
    right_rows: int


@dataclass(frozen=True)
class Snapshot:
    """The measured state of a stateful operator after a batch; read-only.

    Arrays have one entry per partition. `load` is measured work (wall time in ms per batch, spread
    over the partitions by their rows and matches); `stored` the rows in state;
    `queued` the rows that arrived in the batch. The cost of a split key on all instances
    counts in its partition and in its hot key; a split key that is missing from `hot_keys` has no
    load. `splits` and `entries` are the keys of the current route that do not follow their
    partition.
    """

    table: PartitionTable
    load: Loads
    stored: Loads
    queued: Loads
    hot_keys: tuple[HotKey, ...] = ()
    splits: tuple[Split, ...] = ()
    entries: tuple[Entry, ...] = ()

    def __post_init__(self) -> None:
        for name in ("load", "stored", "queued"):
            values = getattr(self, name)
            if values.shape != (self.table.partitions,):
                raise SkewlessError(
                    f"{name}: got {values.shape} values; takes one per partition "
                    f"({self.table.partitions})"
                )
            if not np.isfinite(values).all() or (values < 0).any():
                raise SkewlessError(f"{name}: takes finite values of at least 0")

    def by_instance(self, values: Loads) -> Loads:
        """The sum per instance of a value per partition."""
        return per_instance(values, self.table.owners, self.table.instances)
