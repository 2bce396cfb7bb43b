"""A planner's proposal, and the one place where it is checked before it is applied."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from skewless.errors import SkewlessError
from skewless.load.imbalance import falls
from skewless.planning.decision import Decision, Limits, Memory
from skewless.planning.measure import Measure, Measured
from skewless.planning.snapshot import Snapshot
from skewless.routing.partitions import PartitionTable, partition_of
from skewless.routing.route import Route
from skewless.routing.splits import Split as Split
from skewless.routing.table import TableRoute


@dataclass(frozen=True)
class Move:
    """A partition goes from one instance to another."""

    partition: int
    source: int
    target: int


@dataclass(frozen=True)
class Plan:
    """The complete next routing: a table, the keys that are split, and why.

    Doing nothing is also a plan: the same table and splits, with the reason. The imbalance is
    computed from the loads of `measure`, in the policy's own way: eq. 13, or for Auto how far the
    straggler is above the mean.
    """

    table: PartitionTable
    moves: tuple[Move, ...]
    splits: tuple[Split, ...]
    reason: str
    imbalance_before: float
    imbalance_after: float
    moved_rows: float
    measure: Measure = field(default_factory=Measured)

    @property
    def does_nothing(self) -> bool:
        """Whether nothing moves. Keys may still be split or folded back."""
        return not self.moves

    def decision(self, memory: Memory | None = None) -> Decision[Route]:
        """The decision to apply this plan."""
        return Decision(TableRoute(self.table, splits=self.splits), self.reason, memory or {}, self)

    def check(self, snapshot: Snapshot, limits: Limits) -> None:
        validate(self, snapshot, max_moves=limits.max_moves)

    def told(self) -> dict[str, Any]:
        return {
            "moves": [[m.partition, m.source, m.target] for m in self.moves],
            "movedKeys": 0,
            "movedRows": round(self.moved_rows),
            "imbalanceBefore": round(self.imbalance_before, 4),
            "imbalanceAfter": round(self.imbalance_after, 4),
        }


class PlanError(SkewlessError):
    """A plan that must not be applied. It is a bug of the planner, not a problem of the data."""


class PlacementError(PlanError):
    """The plan's table does not place the snapshot's partitions on the snapshot's instances."""


class MovesError(PlanError):
    """The listed moves are not the difference between the two tables."""


class TooManyMovesError(PlanError):
    """More partitions move than a round may move."""


class SplitError(PlanError):
    """A split that cannot be routed."""


class NoGainError(PlanError):
    """Something moves, but the instances are not more evenly loaded afterwards."""


def validate(plan: Plan, snapshot: Snapshot, *, max_moves: int | None = None) -> None:
    """Raise the `PlanError` that says what is wrong with a plan; return if it is valid.

    Doing nothing is always valid, and so is another grid for the same members. A plan that puts a
    cooled key back on one instance may cost balance. Every other plan must lower the loads.
    """
    _check_placement(plan, snapshot)
    _check_moves(plan, snapshot)
    if max_moves is not None and len(plan.moves) > max_moves:
        raise TooManyMovesError(f"moves: got {len(plan.moves)}; takes at most {max_moves} a round")
    _check_splits(plan, snapshot)
    kept = {split.hash for split in plan.splits}
    folds = any(split.hash not in kept for split in snapshot.splits)
    changes = bool(plan.moves) or shared_by(plan.splits) != shared_by(snapshot.splits)
    if changes and not folds:
        before = plan.measure.loads(snapshot, snapshot.table, snapshot.splits)
        after = plan.measure.loads(snapshot, plan.table, plan.splits)
        if not falls(before, after):
            raise NoGainError(
                f"moves: {len(plan.moves)} partitions move and {len(plan.splits)} keys are split, "
                f"but the straggler's load goes from {before.max():g} to {after.max():g}"
            )


def shared_by(splits: Sequence[Split]) -> dict[int, tuple[int, ...]]:
    """The members of each split key, whatever its grid."""
    return {split.hash: split.members for split in splits}


def moves_between(old: PartitionTable, new: PartitionTable) -> tuple[Move, ...]:
    """The partitions whose instance differs, in order.

    >>> moves_between(PartitionTable(2, (0, 0)), PartitionTable(2, (0, 1)))
    (Move(partition=1, source=0, target=1),)
    """
    changed = np.flatnonzero(old.owners != new.owners)
    return tuple(
        Move(p, source, target)
        for p, source, target in zip(
            changed.tolist(),
            old.owners[changed].tolist(),
            new.owners[changed].tolist(),
            strict=True,
        )
    )


def stay(snapshot: Snapshot, reason: str, imbalance: float, measure: Measure | None = None) -> Plan:
    """The plan that does nothing."""
    return Plan(
        table=snapshot.table,
        moves=(),
        splits=snapshot.splits,
        reason=reason,
        imbalance_before=imbalance,
        imbalance_after=imbalance,
        moved_rows=0.0,
        measure=measure or Measured(),
    )


def _check_placement(plan: Plan, snapshot: Snapshot) -> None:
    old, new = snapshot.table, plan.table
    if (new.partitions, new.instances) != (old.partitions, old.instances):
        raise PlacementError(
            f"table: got {new.partitions} partitions on {new.instances} instances; takes "
            f"{old.partitions} on {old.instances}"
        )


def _check_moves(plan: Plan, snapshot: Snapshot) -> None:
    expected = moves_between(snapshot.table, plan.table)
    listed = sorted(plan.moves, key=lambda move: move.partition)
    if tuple(listed) != expected:
        wrong = sorted(set(plan.moves) ^ set(expected), key=lambda move: move.partition)
        named = wrong[0] if wrong else f"{len(listed)} moves, some of them twice"
        raise MovesError(f"moves: got {named}; takes the difference between the two tables")
    moved = float(snapshot.stored[[move.partition for move in plan.moves]].sum())
    if not np.isclose(moved, plan.moved_rows):
        raise MovesError(f"moved_rows: got {plan.moved_rows:g}; takes {moved:g}")


def _check_splits(plan: Plan, snapshot: Snapshot) -> None:
    _refuse_repeated([split.hash for split in plan.splits], "splits", "one split per key")
    for split in plan.splits:
        named = f"split of key {split.hash:#018x}"
        _refuse_repeated(split.members, f"{named}: members", "distinct instances")
        if len(split.members) < 2:
            raise SplitError(f"{named}: got {len(split.members)} members; takes at least 2")
        for member in split.members:
            if not 0 <= member < snapshot.table.instances:
                raise SplitError(
                    f"{named}: got member {member}; takes instances from 0 to "
                    f"{snapshot.table.instances - 1}"
                )
        right = int(partition_of(np.array([split.hash], np.uint64), snapshot.table.partitions)[0])
        if split.partition != right:
            raise SplitError(f"{named}: got partition {split.partition}; takes {right}")
        if split.lines < 1 or len(split.members) % split.lines:
            takes = f"a divisor of its {len(split.members)} members"
            raise SplitError(f"{named}: got {split.lines} lines; takes {takes}")


def _refuse_repeated(values: Sequence[int], name: str, takes: str) -> None:
    if len(set(values)) != len(values):
        repeated = next(v for v in values if list(values).count(v) > 1)
        raise SplitError(f"{name}: got {repeated} twice; takes {takes}")
