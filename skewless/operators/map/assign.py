"""What an input partition does with its rows: names the instance of each by its estimated cost."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from skewless.planning.shuffle.policy import Dealing


@dataclass(frozen=True)
class AssignTask:
    """The same for all partitions of a batch, and picklable.

    Deterministic: a task that Spark runs again on the same rows in the same order sends each where
    it went the first time. Should they come in another order, Spark's checksums of shuffled rows
    tell, and all that depends on them is repeated.
    """

    dealing: Dealing
    batch: int

    def run(self, partition: int, hashes: Iterator[pa.Int64Array]) -> Iterator[pa.Int32Array]:
        """The instances of rows, from their hashes: nothing else of a row is looked at.

        Loads are carried from one Arrow batch to the next.
        """
        dealing = self.dealing
        # Neighbouring partitions begin with neighbouring instances, and each batch one further on.
        offset = (partition + self.batch) % dealing.instances
        loads = np.zeros(dealing.instances)
        dealt = 0
        for column in hashes:
            if dealing.sketches:
                keys = column.to_numpy().view(np.uint64)
                assigned, loads = dealing.assign(keys, loads, offset)
            else:
                turns = np.arange(len(column)) + (offset + dealt)
                assigned = (turns % dealing.instances).astype(np.int32)
                dealt += len(column)
            yield pa.array(assigned, pa.int32())
