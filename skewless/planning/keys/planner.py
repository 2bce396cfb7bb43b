"""From a packing of units to a plan: on keys as they are, or on compact statistics."""

from collections.abc import Callable

import numpy as np

from skewless.planning.keys.compact import compact as compacted
from skewless.planning.keys.llfd import Packing
from skewless.planning.keys.plan import KeyPlan, if_it_pays
from skewless.planning.keys.snapshot import Instances, KeySnapshot
from skewless.planning.keys.units import Units, units_of


def planned(
    snapshot: KeySnapshot,
    packer: Callable[[Units], Packing],
    *,
    reason: str,
    compact: int | None = None,
    table_limit: int | None = None,
) -> KeyPlan:
    """The plan of a packer, if it pays; on records of degree `compact` if that is given."""
    if compact is None:
        placed = packer(units_of(snapshot)).instances()
    else:
        few = compacted(snapshot, compact)
        placed = few.expand(packer(few.units), snapshot)
    if table_limit is not None:
        placed = within_limit(snapshot, placed, table_limit)
    return if_it_pays(snapshot, placed, reason, table_limit)


def within_limit(snapshot: KeySnapshot, placed: Instances, table_limit: int) -> Instances:
    """The placement with no more keys away from home than the table may have; the costliest
    stay away, the others go home."""
    away = np.flatnonzero(placed != snapshot.home)
    over = len(away) - table_limit
    if over <= 0:
        return placed
    cheapest = away[np.argsort(snapshot.cost[away], kind="stable")[:over]]
    trimmed = placed.copy()
    trimmed[cheapest] = snapshot.home[cheapest]
    return trimmed
