"""The baseline Readj: keys go home, heavy ones are moved and swapped."""

from dataclasses import dataclass

from skewless.planning.keys.plan import KeyPlan
from skewless.planning.keys.policy import LimitedTablePolicy
from skewless.planning.keys.readj import readj
from skewless.planning.keys.snapshot import KeySnapshot


@dataclass(frozen=True)
class Readj(LimitedTablePolicy):
    """The baseline that sends keys home, and moves and swaps heavy keys.

    >>> Readj(instances=4).table(cores=2).partitions
    256
    """

    def _planned(self, snapshot: KeySnapshot, theta_max: float) -> KeyPlan:
        return readj(snapshot, theta_max, table_limit=self.table_limit)
