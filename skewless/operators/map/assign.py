"""What an input partition does with its rows: names the instance of each by its estimated cost."""

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
    """A step that meets every instance, and those it has met lie well apart at any time.

    >>> [n * _stride(10) % 10 for n in range(10)]
    [0, 7, 4, 1, 8, 5, 2, 9, 6, 3]
    """
    steps = (n for n in range(1, instances + 1) if gcd(n, instances) == 1)
    return min(steps, key=lambda n: abs(n - _GOLDEN * instances))


@dataclass(frozen=True)
class AssignTask:
    """The same for all partitions of a batch, and picklable.

    Deterministic: a task that Spark runs again on the same rows in the same order sends each where
    it went the first time. Should they come in another order, Spark's checksums of shuffled rows
    tell, and it repeats all that depends on them, or fails the batch where it cannot.
    """

    dealing: Dealing
    batch: int

    def run(self, partition: int, hashes: Iterator[pa.Int64Array]) -> Iterator[pa.Int32Array]:
        """The instances of rows, from their hashes: nothing else of a row is looked at.

        Loads are carried from one Arrow batch to the next.
        """
        dealing = self.dealing
        # Partitions begin far from each other however many there are, so that the heaviest rows of
        # one meet those of others as late as can be; and each batch one further on.
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
