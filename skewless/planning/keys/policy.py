"""What the key-table policies have in common: when they plan, and how the table is limited."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from skewless.load.heavy import EVERY_KEY_THAT_COUNTS, Detail
from skewless.planning.checks import check_number, check_whole
from skewless.planning.decision import Decision, Limits, Memory
from skewless.planning.hash import Hash
from skewless.planning.keys.hlhe import check_degree
from skewless.planning.keys.plan import KeyPlan, stay, validate_keys
from skewless.planning.keys.reach import reach
from skewless.planning.keys.snapshot import KeySnapshot, key_snapshot
from skewless.planning.policy import RoutingPolicy
from skewless.planning.scaling import (
    BUSY_MS,
    Instances,
    check_range,
    largest,
    wanted,
)
from skewless.planning.snapshot import Snapshot
from skewless.routing.partitions import PartitionTable, round_robin
from skewless.routing.route import Route
from skewless.routing.table import TableRoute

# When a policy rebalances, it aims at this share of the threshold. Small changes of the load then
# do not trigger it again.
AIM = 0.5
# One batch beyond the threshold may be noise, so a policy waits for a second one. It acts at once
# if the deviation is this many times the threshold.
ALARM = 3.0
MAX_TABLE = 2**24


@dataclass(frozen=True)
class KeyProposal:
    """A plan of keys with the measured keys that it was made for."""

    plan: KeyPlan
    keys: KeySnapshot

    def check(self, snapshot: Snapshot, limits: Limits) -> None:
        validate_keys(self.plan, self.keys, limits.table_limit)

    def told(self) -> dict[str, Any]:
        return {
            "moves": [],
            "movedKeys": len(self.plan.moved),
            "movedRows": round(self.plan.migration),
            "imbalanceBefore": round(self.plan.skewness_before, 4),
            "imbalanceAfter": round(self.plan.skewness_after, 4),
        }


@dataclass(frozen=True)
class KeyTablePolicy(RoutingPolicy):
    """Keys get an instance of their own where θ(d) is beyond `threshold` (θmax).

    `instances` may be a range (lowest, highest). Instances are added when all of them work for
    longer than `busy_ms` per batch, and removed when all are idle.

    θ(d) is measured from the best load that can be reached. Otherwise a key that is heavier than
    the mean would trigger a plan in every batch, and no plan would help.
    """

    detail: ClassVar[Detail] = EVERY_KEY_THAT_COUNTS

    instances: Instances = None
    threshold: float = 0.08
    every: int = 1
    busy_ms: float = BUSY_MS

    def __post_init__(self) -> None:
        check_range(self.instances)
        check_number("threshold", self.threshold, 0.0)
        check_number("busy_ms", self.busy_ms, 0.0)
        check_whole("every", self.every, 1, 1_000_000)

    def table(self, cores: int) -> PartitionTable:
        # Partitions for as many instances as there may come to be.
        most = Hash(largest(self.instances, cores)).table(cores)
        return round_robin(wanted(self.instances, cores), most.partitions)

    def plan(self, snapshot: Snapshot, memory: Memory) -> Decision[Route]:
        keys = key_snapshot(snapshot)
        plan, memory = self.plan_keys(keys, memory)
        route = TableRoute(snapshot.table, plan.entries(snapshot.table.partitions))
        return Decision(route, plan.reason, memory, KeyProposal(plan, keys))

    def plan_keys(self, snapshot: KeySnapshot, memory: Memory) -> tuple[KeyPlan, Memory]:
        """The next key table, with the memory for the next call."""
        deviations = reach(snapshot).deviations(snapshot.loads)
        off = np.flatnonzero(deviations > self.threshold).tolist()
        after = {"off": off}
        largest = float(deviations.max())
        too_large = self._too_large(snapshot)
        if not (off or too_large):
            reason = f"every instance is within {self.threshold:.0%} of what can be reached"
            return stay(snapshot, reason), after
        again = not set(off).isdisjoint(memory.get("off", ()))
        if not (again or too_large or largest > ALARM * self.threshold):
            reason = f"instance {off[0]} may be off by {deviations[off[0]]:.0%}: waits a round"
            return stay(snapshot, reason), after
        return self._planned(snapshot, AIM * self.threshold), after

    def _too_large(self, snapshot: KeySnapshot) -> bool:
        """Whether the table exceeds its limit, because the limit was lowered."""
        return False

    @abstractmethod
    def _planned(self, snapshot: KeySnapshot, theta_max: float) -> KeyPlan:
        """The plan, once the policy has decided to act."""


@dataclass(frozen=True)
class LimitedTablePolicy(KeyTablePolicy):
    """Policies whose table has at most `table_limit` entries."""

    table_limit: int = 3_000

    def __post_init__(self) -> None:
        super().__post_init__()
        check_whole("table_limit", self.table_limit, 0, MAX_TABLE)

    def limits(self, partitions: int) -> Limits:
        return Limits(table_limit=self.table_limit)

    def _too_large(self, snapshot: KeySnapshot) -> bool:
        return snapshot.table_size > self.table_limit


def check_choice(beta: float, compact: int | None) -> None:
    """Refuse a weight or a degree of discretisation by which no key can be chosen."""
    check_number("beta", beta, 0.0)
    if compact is not None:
        check_degree("compact", compact)
