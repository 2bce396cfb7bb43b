"""The baseline FastJoin: moves units off the straggler greedily, the best per stored row first."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from skewless.load.imbalance import imbalance
from skewless.planning.checks import (
    check_number,
)
from skewless.planning.decision import Decision, Memory
from skewless.planning.measure import StoredTimesQueued
from skewless.planning.partitions.policy import PartitionPolicy
from skewless.planning.plan import Plan, moves_between, stay
from skewless.planning.snapshot import Loads, Snapshot
from skewless.routing.partitions import PartitionTable
from skewless.routing.route import Route

_MEASURE = StoredTimesQueued()


@dataclass(frozen=True)
class Totals:
    """The rows that an instance keeps and the rows that wait for it; its load is their product."""

    stored: float
    queued: float

    @property
    def load(self) -> float:
        return self.stored * self.queued


def choose_units(
    stored: Loads, queued: Loads, straggler: Totals, lightest: Totals
) -> npt.NDArray[np.int64]:
    """Which units (keys or partitions) of the straggler go to the lightest instance.

    A unit k closes the gap between the two products by
    F_k = queued_k · (stored_h + stored_l) + stored_k · (queued_h + queued_l); the terms in which
    two moved units meet cancel out, so the F_k add up. Units go in the order of F_k per stored row
    moved, as long as the gap does not flip.

    >>> choose_units(np.array([5.0, 1.0]), np.array([5.0, 1.0]), Totals(6, 6), Totals(0, 0))
    array([1])
    """
    closes = queued * (straggler.stored + lightest.stored) + stored * (
        straggler.queued + lightest.queued
    )
    gap = straggler.load - lightest.load
    chosen = []
    for unit in np.argsort(-closes / np.maximum(stored, 1.0), kind="stable").tolist():
        if 0 < closes[unit] <= gap:
            gap -= float(closes[unit])
            chosen.append(unit)
    return np.array(sorted(chosen), np.int64)


@dataclass(frozen=True)
class FastJoin(PartitionPolicy):
    """Relieves the straggler when it has more than `trigger` times the lightest one's load.

    It plans once every `every` batches.

    >>> FastJoin(instances=4).table(cores=2).partitions
    256
    """

    trigger: float = 2.2
    every: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number("trigger", self.trigger, 1.0)

    def plan(self, snapshot: Snapshot, memory: Memory) -> Decision[Route]:
        """One straggler and one lightest instance a round, as in the paper."""
        loads = _MEASURE.loads(snapshot, snapshot.table)
        before = imbalance(loads)
        high, low = int(loads.argmax()), int(loads.argmin())
        if loads[high] <= self.trigger * loads[low]:
            reason = f"max/min load is within the trigger of {self.trigger:g}"
            return stay(snapshot, reason, before, _MEASURE).decision()
        owned = np.flatnonzero(snapshot.table.owners == high)
        totals = [
            Totals(
                float(snapshot.stored[snapshot.table.owners == i].sum()),
                float(snapshot.queued[snapshot.table.owners == i].sum()),
            )
            for i in (high, low)
        ]
        chosen = owned[choose_units(snapshot.stored[owned], snapshot.queued[owned], *totals)]
        if not chosen.size:
            reason = f"no partition of instance {high} fits into the gap to instance {low}"
            return stay(snapshot, reason, before, _MEASURE).decision()
        owners = snapshot.table.owners.copy()
        owners[chosen] = low
        table = PartitionTable(snapshot.table.instances, tuple(owners.tolist()))
        after = imbalance(_MEASURE.loads(snapshot, table))
        plan = Plan(
            table=table,
            moves=moves_between(snapshot.table, table),
            splits=(),
            reason=f"instance {high} had more than {self.trigger:g} times the load of {low}",
            imbalance_before=before,
            imbalance_after=after,
            moved_rows=float(snapshot.stored[chosen].sum()),
            measure=_MEASURE,
        )
        return plan.decision()
