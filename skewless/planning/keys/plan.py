"""What a key-table planner proposes, and the check before it is enacted."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from skewless.load.imbalance import falls, imbalance
from skewless.planning.keys.snapshot import Floats, Hashes, Instances, KeySnapshot
from skewless.planning.plan import MovesError, NoGainError, PlacementError, PlanError, SplitError
from skewless.routing.entries import Entry
from skewless.routing.partitions import partition_of

# No second instance: the key is whole.
WHOLE = -1


class TableLimitError(PlanError):
    """The new table has more entries than it may have."""


@dataclass(frozen=True, eq=False)
class KeyPlan:
    """The complete next key table, and why.

    `hashes` and `instances` are its entries: the keys that are not at home, and where they are.
    `seconds` is for partial key grouping: the other instance that shares the key's rows evenly, or
    -1 where the key is whole. `moved` are the keys whose instance changes; `migration` is the state
    that goes with them. Skewness is the largest θ(d), before and after. Doing nothing is a plan:
    the table as it was. In a `combinable` plan partial results are merged further down: no state
    moves, and where the keys were does not matter.
    """

    hashes: Hashes
    instances: Instances
    seconds: Instances
    moved: Hashes
    migration: float
    skewness_before: float
    skewness_after: float
    reason: str
    combinable: bool = False

    @property
    def does_nothing(self) -> bool:
        """Whether every key stays where it is."""
        return not self.moved.size

    @property
    def table_size(self) -> int:
        return len(self.hashes)

    def entries(self, partitions: int) -> tuple[Entry, ...]:
        """The key table as a route takes it: keys with an instance of their own, or two."""
        places = partition_of(self.hashes, partitions).tolist()
        chosen = zip(
            self.hashes.tolist(),
            places,
            self.instances.tolist(),
            self.seconds.tolist(),
            strict=True,
        )
        return tuple(
            Entry(h, place, (first,) if second == WHOLE else (first, second))
            for h, place, first, second in chosen
        )


def plan_of(
    snapshot: KeySnapshot,
    placed: Instances,
    reason: str,
    *,
    seconds: Instances | None = None,
    combinable: bool = False,
) -> KeyPlan:
    """The plan that places the snapshot's keys so. Keys with a second instance have half their cost
    there. What can be combined leaves its state where it is: nothing migrates."""
    away = placed != snapshot.home
    if seconds is not None:
        away |= seconds != WHOLE
    entries = np.flatnonzero(away)
    moves = placed != snapshot.current
    if combinable:
        moves = np.zeros_like(moves)
    return KeyPlan(
        hashes=snapshot.hashes[entries],
        instances=placed[entries],
        seconds=np.full(len(entries), WHOLE) if seconds is None else seconds[entries],
        moved=snapshot.hashes[moves],
        migration=float(snapshot.state[moves].sum()),
        skewness_before=snapshot.skewness,
        skewness_after=imbalance(loads_after(snapshot, placed, seconds)),
        reason=reason,
        combinable=combinable,
    )


def stay(snapshot: KeySnapshot, reason: str) -> KeyPlan:
    """The plan that moves no key, but those whose instance is gone: they go home."""
    return plan_of(snapshot, snapshot.standing, reason)


def if_it_pays(
    snapshot: KeySnapshot, placed: Instances, reason: str, table_limit: int | None = None
) -> KeyPlan:
    """The plan that places the keys so, or the one that does nothing if the loads do not fall.

    What brings a table that is over its limit within it may cost balance.
    """
    shrinks = table_limit is not None and snapshot.table_size > table_limit >= np.count_nonzero(
        placed != snapshot.home
    )
    if shrinks or falls(snapshot.loads, snapshot.loads_of(placed)):
        return plan_of(snapshot, placed, reason)
    return stay(snapshot, "no move would even out the load")


def loads_after(
    snapshot: KeySnapshot, placed: Instances, seconds: Instances | None = None
) -> Floats:
    """L(d) of every instance under a placement in which some keys are shared by two."""
    if seconds is None or not (shared := np.flatnonzero(seconds != WHOLE)).size:
        return snapshot.loads_of(placed)
    first = snapshot.cost.copy()
    first[shared] /= 2
    own = np.bincount(placed, first, snapshot.instances)
    others = np.bincount(seconds[shared], first[shared], snapshot.instances)
    return snapshot.rest + own + others


def placement(plan: KeyPlan, snapshot: KeySnapshot) -> Instances:
    """Where every key of the snapshot is under the plan."""
    placed = snapshot.home.copy()
    placed[_positions(plan.hashes, snapshot)] = plan.instances
    return placed


def planned_loads(plan: KeyPlan, snapshot: KeySnapshot) -> Floats:
    """L(d) of every instance under the plan."""
    seconds = np.full(snapshot.keys, WHOLE)
    seconds[_positions(plan.hashes, snapshot)] = plan.seconds
    return loads_after(snapshot, placement(plan, snapshot), seconds)


def validate_keys(plan: KeyPlan, snapshot: KeySnapshot, table_limit: int | None = None) -> None:
    """Raise the `PlanError` that says what is wrong with a plan; a sound one passes silently.

    Doing nothing is always sound, even with a table that is over the limit: shrinking it is the
    next plan's task.
    """
    positions = _positions(plan.hashes, snapshot)
    _check_entries(plan, snapshot, positions)
    placed = placement(plan, snapshot)
    before = snapshot.home if plan.combinable else snapshot.standing
    if not plan.combinable:
        _check_moves(plan, snapshot, placed)
    shared = bool((plan.seconds != WHOLE).any())
    if not shared and np.array_equal(placed, before):
        return
    if table_limit is not None and plan.table_size > table_limit:
        raise TableLimitError(
            f"hashes: got a table of {plan.table_size:,} entries; takes at most {table_limit:,}"
        )
    shrinks = table_limit is not None and snapshot.table_size > table_limit
    old, new = snapshot.loads_of(before), planned_loads(plan, snapshot)
    if not (shrinks or falls(old, new)):
        raise NoGainError(
            f"moved: {plan.moved.size:,} keys move, but the straggler's load goes from "
            f"{old.max():g} to {new.max():g}"
        )


def _positions(hashes: Hashes, snapshot: KeySnapshot) -> npt.NDArray[np.int64]:
    """Where the hashes are in the snapshot."""
    if not hashes.size:
        return np.empty(0, np.int64)
    order = np.argsort(snapshot.hashes, kind="stable")
    found = np.searchsorted(snapshot.hashes, hashes, sorter=order)
    positions = order[np.minimum(found, snapshot.keys - 1)] if snapshot.keys else found
    unknown = (
        np.ones(hashes.size, bool) if not snapshot.keys else snapshot.hashes[positions] != hashes
    )
    if unknown.any():
        raise PlacementError(
            f"hashes: got key {int(hashes[unknown][0]):#018x}; takes keys of the snapshot"
        )
    return positions


def _check_entries(plan: KeyPlan, snapshot: KeySnapshot, positions: npt.NDArray[np.int64]) -> None:
    if not plan.hashes.shape == plan.instances.shape == plan.seconds.shape:
        raise PlacementError("instances, seconds: takes one of each per key of the table")
    if len(np.unique(plan.hashes)) != plan.hashes.size:
        raise PlacementError("hashes: got a key twice; takes each key once")
    last = snapshot.instances - 1
    for name, least in (("instances", 0), ("seconds", WHOLE)):
        of = getattr(plan, name)
        wrong = of[(of < least) | (of > last)]
        if wrong.size:
            raise PlacementError(f"{name}: got {int(wrong[0])}; takes {least} to {last}")
    whole = plan.seconds == WHOLE
    if (whole & (plan.instances == snapshot.home[positions])).any():
        raise PlacementError("hashes: got a key that is at home; takes those that are not")
    if not plan.combinable and not whole.all():
        raise SplitError(
            "seconds: got a key on two instances; takes that for combinable plans only"
        )
    if (plan.seconds == plan.instances).any():
        raise SplitError("seconds: got the key's first instance; takes another one, or -1")


def _check_moves(plan: KeyPlan, snapshot: KeySnapshot, placed: Instances) -> None:
    moves = placed != snapshot.current
    if not np.array_equal(np.sort(snapshot.hashes[moves]), np.sort(plan.moved)):
        raise MovesError(
            f"moved: got {plan.moved.size:,} keys; takes the {int(moves.sum()):,} whose instance "
            "changes"
        )
    migration = float(snapshot.state[moves].sum())
    if not np.isclose(migration, plan.migration):
        raise MovesError(f"migration: got {plan.migration:g}; takes {migration:g}")
