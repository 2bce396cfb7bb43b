"""The policy MinMig: the least state moves, and the key table grows as it may."""

from dataclasses import dataclass

from skewless.planning.keys.minmig import min_mig
from skewless.planning.keys.plan import KeyPlan
from skewless.planning.keys.policy import KeyTablePolicy, check_choice
from skewless.planning.keys.snapshot import KeySnapshot


@dataclass(frozen=True)
class MinMig(KeyTablePolicy):
    """The least state moves, and the table grows as it may.

    >>> MinMig(instances=4, beta=1.0).describe()["beta"]
    1.0
    """

    beta: float = 1.5
    compact: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice(self.beta, self.compact)

    def _planned(self, snapshot: KeySnapshot, theta_max: float) -> KeyPlan:
        return min_mig(snapshot, theta_max, beta=self.beta, compact=self.compact)
