"""The policy MinTable: the smallest key table, whatever state has to move for it."""

from dataclasses import dataclass

from skewless.planning.keys.mintable import min_table
from skewless.planning.keys.plan import KeyPlan
from skewless.planning.keys.policy import LimitedTablePolicy, check_choice
from skewless.planning.keys.snapshot import KeySnapshot


@dataclass(frozen=True)
class MinTable(LimitedTablePolicy):
    """The smallest table, whatever state has to move for it.

    >>> MinTable(instances=4).describe()["table_limit"]
    3000
    """

    compact: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice(1.0, self.compact)

    def _planned(self, snapshot: KeySnapshot, theta_max: float) -> KeyPlan:
        return min_table(snapshot, theta_max, table_limit=self.table_limit, compact=self.compact)
