"""The policy Mixed: little state moves, and the key table stays within its limit."""

from dataclasses import dataclass

from skewless.errors import bad_argument
from skewless.planning.keys.mixed import mixed
from skewless.planning.keys.plan import KeyPlan
from skewless.planning.keys.policy import LimitedTablePolicy, check_choice
from skewless.planning.keys.snapshot import KeySnapshot


@dataclass(frozen=True)
class Mixed(LimitedTablePolicy):
    """Little state moves and the table stays within its limit: the paper's own policy.

    `beta` weighs a key's cost against its state. `compact` plans on records of keys that are alike
    to degree R, a power of two; None plans on the keys themselves. `brute_force` tries every number
    of table entries to clean.

    >>> Mixed(threshold=0.02).table(cores=8).instances
    8
    """

    beta: float = 1.5
    compact: int | None = None
    brute_force: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice(self.beta, self.compact)
        if not isinstance(self.brute_force, bool):
            raise bad_argument("brute_force", self.brute_force, "True or False")

    def _planned(self, snapshot: KeySnapshot, theta_max: float) -> KeyPlan:
        return mixed(
            snapshot,
            theta_max,
            table_limit=self.table_limit,
            beta=self.beta,
            compact=self.compact,
            brute_force=self.brute_force,
        )
