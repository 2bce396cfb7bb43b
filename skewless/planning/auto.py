"""The default policy: keeps every instance equally busy, and splits keys that none can hold."""

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from skewless.errors import bad_argument
from skewless.load.imbalance import falls, overload
from skewless.planning.checks import check_number, check_whole
from skewless.planning.decision import Decision, Limits, Memory
from skewless.planning.measure import Measured, without_split_keys
from skewless.planning.partitions.hotkeys import SplitChoice, choose_splits
from skewless.planning.partitions.search import rebalance, standing
from skewless.planning.plan import Plan, moves_between, shared_by, stay
from skewless.planning.policy import RoutingPolicy
from skewless.planning.scaling import (
    BUSY_MS,
    Instances,
    check_range,
    largest,
    wanted,
)
from skewless.planning.snapshot import Loads, Snapshot
from skewless.routing.partitions import MAX_PARTITIONS, PartitionTable, round_robin
from skewless.routing.route import Route

_MEASURE = Measured()
_PARTITIONS = 256
_PARTITIONS_PER_INSTANCE = 16
# When Auto rebalances, it aims at this share of the threshold. Small changes of the load then do
# not trigger it again.
AIM = 0.5
# One batch above the threshold may be noise, so Auto waits for a second one. An instance that
# exceeds the threshold this many times over is relieved at once.
ALARM = 3.0


@dataclass(frozen=True)
class Auto(RoutingPolicy):
    """One instance per core of the session, unless `instances` says otherwise.

    `instances` may be a range (lowest, highest). Auto adds instances when all of them work for
    longer than `busy_ms` per batch, and removes some when all are idle.

    It moves partitions when the straggler is more than `threshold` above the best load that can be
    reached, at most `max_moves` per round (None: a quarter of all). It splits hot keys if `split`
    is True. It plans once every `every` batches.

    >>> Auto().table(cores=8).instances
    8
    """

    instances: Instances = None
    threshold: float = 0.1
    max_moves: int | None = None
    split: bool = True
    every: int = 1
    busy_ms: float = BUSY_MS

    def __post_init__(self) -> None:
        check_range(self.instances)
        check_number("busy_ms", self.busy_ms, 0.0)
        check_number("threshold", self.threshold, 0.0)
        check_whole("every", self.every, 1, 1_000_000)
        if self.max_moves is not None:
            check_whole("max_moves", self.max_moves, 1, MAX_PARTITIONS)
        if not isinstance(self.split, bool):
            raise bad_argument("split", self.split, "True or False")

    def table(self, cores: int) -> PartitionTable:
        most = largest(self.instances, cores)
        # More partitions than with plain hashing, because partitions are what can be moved.
        per_instance = max(_PARTITIONS_PER_INSTANCE, -(-_PARTITIONS // most))
        partitions = min(per_instance, MAX_PARTITIONS // most) * most
        return round_robin(wanted(self.instances, cores), partitions)

    def plan(self, snapshot: Snapshot, memory: Memory) -> Decision[Route]:
        loads = _MEASURE.loads(snapshot, snapshot.table, snapshot.splits)
        keys = self._split_keys(snapshot, loads, memory)
        rest, shares = without_split_keys(snapshot, keys.splits)
        owners = snapshot.table.owners
        balance = standing(rest, owners, shares)
        above = np.flatnonzero(balance.excess > self.threshold).tolist()
        after_this = {
            "above": above,
            "cool": {str(key): rounds for key, rounds in keys.cool_rounds.items()},
        }
        acts = (
            not set(above).isdisjoint(memory.get("above", ()))
            or balance.excess.max() > ALARM * self.threshold
        )
        changes_splits = set(keys.splits) != set(snapshot.splits)
        if not (acts or changes_splits):
            within = f"the straggler is within {self.threshold:.0%} of what can be reached"
            reason = f"instance {above[0]} may be a straggler: waits a round" if above else within
            return stay(snapshot, reason, overload(loads)).decision(after_this)
        new = owners
        if above:
            new = rebalance(
                rest,
                snapshot.stored,
                owners,
                shares,
                tolerance=AIM * self.threshold,
                max_moves=self.limits(snapshot.table.partitions).max_moves,
            )
        plan = self._plan(snapshot, new, keys, loads)
        after = _MEASURE.loads(snapshot, plan.table, plan.splits)
        same_places = not plan.moves and shared_by(plan.splits) == shared_by(snapshot.splits)
        if same_places and changes_splits:
            told = replace(plan, reason="split keys take a grid with fewer replicas")
            return told.decision(after_this)
        if not (falls(loads, after) or keys.folded):
            plan = stay(snapshot, "no move would relieve the straggler", overload(loads))
        return plan.decision(after_this)

    def limits(self, partitions: int) -> Limits:
        return Limits(max_moves=self.max_moves or max(1, partitions // 4))

    def _split_keys(self, snapshot: Snapshot, loads: Loads, memory: Memory) -> SplitChoice:
        if not self.split:
            return SplitChoice((), {}, 0, len(snapshot.splits))
        cool = {int(key): int(rounds) for key, rounds in memory.get("cool", {}).items()}
        return choose_splits(snapshot, loads, cool)

    def _plan(
        self, snapshot: Snapshot, owners: npt.NDArray[np.int64], keys: SplitChoice, loads: Loads
    ) -> Plan:
        table = snapshot.table
        if (owners != table.owners).any():
            table = PartitionTable(table.instances, tuple(owners.tolist()))
        moves = moves_between(snapshot.table, table)
        before = overload(loads)
        after = overload(_MEASURE.loads(snapshot, table, keys.splits))
        parts = [f"the straggler is {before:.0%} above the mean"]
        if keys.split:
            parts.append(f"hot keys split: {keys.split}")
        if keys.folded:
            parts.append(f"cool keys folded back: {keys.folded}")
        if moves:
            parts.append(f"partitions moved: {len(moves)}")
        return Plan(
            table=table,
            moves=moves,
            splits=keys.splits,
            reason="; ".join(parts),
            imbalance_before=before,
            imbalance_after=after,
            moved_rows=float(snapshot.stored[[move.partition for move in moves]].sum()),
        )
