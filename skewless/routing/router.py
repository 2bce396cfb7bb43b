"""What every router promises: each row is stored once, each pair of equal keys meets once."""

from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
import numpy.typing as npt

Hashes = npt.NDArray[np.uint64]
Instances = npt.NDArray[np.int64]
Side = Literal["left", "right"]

Meeting = Literal["at own home", "where stored", "at crossing"]


@dataclass(frozen=True)
class Visits:
    """Which instances the rows of a batch are sent to, one entry per visit.

    `row` counts within the batch and rises; `home` marks the one visit that stores the row.
    """

    row: Instances
    instance: Instances
    home: npt.NDArray[np.bool_]


class Router(Protocol):
    """Sends the rows of one side to instances.

    Contract (eq. 5 and 6): every row has exactly one home, and every pair of a left and a right row
    with equal keys meets on exactly one instance. Two rows of one batch meet where both visit, and
    `meeting` says where a new row meets a stored one:

    - "at own home": on the new row's home; state is shared, any instance reads it.
    - "where stored": on the stored row's home, which the new row visits. Two rows of one batch
      then meet on the left row's home only, because both visit every member.
    - "at crossing": on the one instance that both rows were sent to.
    """

    @property
    def instances(self) -> int: ...

    @property
    def meeting(self) -> Meeting: ...

    def visits(self, side: Side, hashes: Hashes, spread: Hashes) -> Visits:
        """Where rows go. `spread` is any even, reproducible number of a row: a replayed batch must
        take the same ways."""
        ...


def scaled(spread: Hashes, size: int | Instances) -> Instances:
    """An even number from 0 to size − 1, from the upper half of an even 64-bit one.

    >>> scaled(np.array([0, 2**63, 2**64 - 1], np.uint64), 3).tolist()
    [0, 1, 2]
    """
    upper = spread >> np.uint64(32)
    return (upper * np.asarray(size, np.uint64) >> np.uint64(32)).astype(np.int64)
