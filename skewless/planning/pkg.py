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
    """Partial key grouping: two instances per key, for what can be combined only.

    Nothing migrates, so there is nothing to be patient about: it chooses anew in every round, from
    where the hash sends the keys.

    >>> PKG.needs_combinable
    True
    """

    needs_combinable: ClassVar[bool] = True

    def plan_keys(self, snapshot: KeySnapshot, memory: Memory) -> tuple[KeyPlan, Memory]:
        return self._planned(snapshot, self.threshold), {}

    def _planned(self, snapshot: KeySnapshot, theta_max: float) -> KeyPlan:
        return partial_key_grouping(snapshot, theta_max)
