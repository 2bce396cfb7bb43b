"""Ls-Stream: stragglers hand partitions to the lightest instances, chosen by annealing."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from skewless.load.imbalance import imbalance
from skewless.load.resources import per_instance, resources
from skewless.planning.checks import (
    check_number,
    check_whole,
)
from skewless.planning.decision import Decision, Memory
from skewless.planning.measure import Resources
from skewless.planning.partitions.annealing import Straggler, choose_migrations
from skewless.planning.partitions.policy import PartitionPolicy
from skewless.planning.plan import Plan, moves_between, stay
from skewless.planning.snapshot import Loads, Snapshot
from skewless.routing.partitions import PartitionTable
from skewless.routing.route import Route

Owners = npt.NDArray[np.int64]

# Pairings of stragglers with the lightest instances in one round, and partitions that are weighed
# in them; what is left waits for the next round.
_PAIRINGS = 64
_WEIGHED = 2**17


@dataclass(frozen=True)
class LsStream(PartitionPolicy):
    """The paper's policy: migrates when the imbalance degree passes `threshold` (α).

    `gamma` (γ) weighs memory against comparisons; `cooling` (η) is what is left of the temperature
    after each step of the annealing. It plans once every `every` batches.

    >>> LsStream(instances=4).table(cores=2).partitions
    256
    """

    threshold: float = 1.0
    gamma: float = 0.5
    cooling: float = 0.8
    seed: int = 0
    every: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number("threshold", self.threshold, 0.0)
        check_number("gamma", self.gamma, 0.0, 1.0)
        check_number("cooling", self.cooling, 0.0, 0.99)
        check_whole("seed", self.seed, 0, 2**63)

    def plan(self, snapshot: Snapshot, memory: Memory) -> Decision[Route]:
        measure = Resources(self.gamma)
        before = imbalance(measure.loads(snapshot, snapshot.table))
        if before <= self.threshold:
            reason = f"imbalance degree {before:.2f} is within {self.threshold:g}"
            return stay(snapshot, reason, before, measure).decision(memory)
        rounds = int(memory.get("rounds", 0)) + 1
        owners = self._migrate(snapshot, np.random.default_rng([self.seed, rounds]))
        table = PartitionTable(snapshot.table.instances, tuple(owners.tolist()))
        moves = moves_between(snapshot.table, table)
        if not moves:
            reason = f"imbalance degree {before:.2f}: no partition of a straggler can move"
            return stay(snapshot, reason, before, measure).decision({"rounds": rounds})
        after = imbalance(measure.loads(snapshot, table))
        sources = len({move.source for move in moves})
        plan = Plan(
            table=table,
            moves=moves,
            splits=(),
            reason=f"imbalance degree {before:.2f} is above {self.threshold:g}: {len(moves)} "
            f"partitions leave {sources} stragglers",
            imbalance_before=before,
            imbalance_after=after,
            moved_rows=float(snapshot.stored[[move.partition for move in moves]].sum()),
            measure=measure,
        )
        return plan.decision({"rounds": rounds})

    def _migrate(self, snapshot: Snapshot, rng: np.random.Generator) -> Owners:
        """Pair stragglers with the lightest instances until LI ≤ α or nothing improves."""
        owners = snapshot.table.owners.copy()
        instances = snapshot.table.instances
        loads = resources(snapshot.stored, snapshot.queued, self.gamma)
        by_instance = per_instance(loads, owners, instances)
        weighed, one_pair = 0, False
        for _ in range(_PAIRINGS):
            if imbalance(by_instance) <= self.threshold or weighed > _WEIGHED:
                break
            pairs = self._pairs(loads, owners, by_instance, one_pair)
            if not pairs:
                break
            weighed += int(np.isin(owners, [high for high, _ in pairs]).sum())
            # Not every straggler fits its own partner, but the heaviest fits the lightest.
            one_pair = not self._relieve(pairs, snapshot, loads, by_instance, owners, rng)
            by_instance = per_instance(loads, owners, instances)
        return owners

    def _pairs(
        self, loads: Loads, owners: Owners, by_instance: Loads, one: bool
    ) -> list[tuple[int, int]]:
        """The heaviest with the lightest, the second heaviest with the second lightest, …"""
        mean, low, high = (float(f(by_instance)) for f in (np.mean, np.min, np.max))
        # Eq. 31: one whose smallest partition is too large for the lightest cannot be relieved.
        smallest = np.full(len(by_instance), np.inf)
        np.minimum.at(smallest, owners, np.where(loads > 0, loads, np.inf))
        movable = 2 * smallest < by_instance - low
        above = int(((by_instance > mean * (1 + self.threshold)) & movable).sum())
        # Idle instances count when they are what makes LI: beside a straggler that cannot be
        # relieved there will always be some, and filling them would bring LI no further down.
        below = 0
        if mean - low >= high - mean:
            below = int((by_instance < mean * (1 - self.threshold)).sum())
        count = min(max(above, below), len(by_instance) // 2, 1 if one else len(by_instance))
        order = by_instance.argsort(kind="stable")
        heaviest = order[::-1][movable[order[::-1]]][:count].tolist()
        pairs = zip(heaviest, order[:count].tolist(), strict=False)
        return [(h, light) for h, light in pairs if by_instance[h] > by_instance[light]]

    def _relieve(
        self,
        pairs: list[tuple[int, int]],
        snapshot: Snapshot,
        loads: Loads,
        by_instance: Loads,
        owners: Owners,
        rng: np.random.Generator,
    ) -> bool:
        """Move what annealing chooses for every pair; whether anything moved."""
        ceiling = float(by_instance.mean()) * (1 + self.threshold)
        rates = per_instance(snapshot.queued, owners, len(by_instance))
        order = owners.argsort(kind="stable")
        ends = np.searchsorted(owners[order], np.arange(len(by_instance) + 1))
        owned = [order[ends[high] : ends[high + 1]] for high, _ in pairs]
        stragglers = [
            Straggler(
                load=float(by_instance[high]),
                load_of_lightest=float(by_instance[low]),
                rate=float(rates[high]),
                rate_of_lightest=float(rates[low]),
                loads=loads[units],
                rates=snapshot.queued[units],
                rows=snapshot.stored[units],
            )
            for (high, low), units in zip(pairs, owned, strict=True)
        ]
        chosen = choose_migrations(stragglers, ceiling, self.cooling, rng)
        for (_, low), units, leaving in zip(pairs, owned, chosen, strict=True):
            owners[units[leaving]] = low
        return any(leaving.size for leaving in chosen)
