"""Chooses the instance of every row of an input partition by its estimated cost."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from math import gcd

import numpy as np
import pyarrow as pa

from skewless.planning.shuffle.dealing import Dealing

_GOLDEN = (5**0.5 - 1) / 2


@cache
def _stride(instances: int) -> int:
    """A step that visits every instance; consecutive visits are far apart.

    >>> [n * _stride(10) % 10 for n in range(10)]
    [0, 7, 4, 1, 8, 5, 2, 9, 6, 3]
    """
    steps = (n for n in range(1, instances + 1) if gcd(n, instances) == 1)
    return min(steps, key=lambda n: abs(n - _GOLDEN * instances))


@dataclass(frozen=True)
class AssignTask:
    """The same for all partitions of a batch, and picklable.

    Deterministic: if Spark runs a task again on the same rows in the same order, every row goes to
    the same instance. If the order differs, Spark notices it by the checksums of the shuffle, and
    runs the dependent tasks again or fails the batch.
    """

    dealing: Dealing
    batch: int

    def run(self, partition: int, hashes: Iterator[pa.Int64Array]) -> Iterator[pa.Int32Array]:
        """The instances of rows, from their hashes alone.

        Loads are carried over from one Arrow batch to the next.
        """
        dealing = self.dealing
        # Partitions start at instances far apart, so that their heaviest rows rarely meet. Every
        # batch starts one instance further on.
        offset = (partition * _stride(dealing.instances) + self.batch) % dealing.instances
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
