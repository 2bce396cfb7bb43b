"""Partial key grouping: a key may use two instances, where parts can be combined."""

from dataclasses import dataclass
from typing import ClassVar

from skewless.planning.decision import Memory
from skewless.planning.keys.pkg import partial_key_grouping
from skewless.planning.keys.plan import KeyPlan
from skewless.planning.keys.policy import KeyTablePolicy
from skewless.planning.keys.snapshot import KeySnapshot


@dataclass(frozen=True)
class PKG(KeyTablePolicy):
    """Partial key grouping: two instances per key, only where results can be combined.

    No state migrates, so it does not wait for a second round. It chooses again in every round,
    starting from the instances that the hash gives.

    >>> PKG.needs_combinable
    True
    """

    needs_combinable: ClassVar[bool] = True

    def plan_keys(self, snapshot: KeySnapshot, memory: Memory) -> tuple[KeyPlan, Memory]:
        return self._planned(snapshot, self.threshold), {}

    def _planned(self, snapshot: KeySnapshot, theta_max: float) -> KeyPlan:
        return partial_key_grouping(snapshot, theta_max)
