"""MinTable (Alg. 2): everything home first, then as few and as costly keys as possible away."""

from skewless.planning.keys.llfd import Packing, pack
from skewless.planning.keys.plan import KeyPlan
from skewless.planning.keys.planner import planned
from skewless.planning.keys.snapshot import KeySnapshot
from skewless.planning.keys.units import Units


def pack_min_table(units: Units, theta_max: float) -> Packing:
    """Phase I cleans the whole table; ψ is the highest cost first."""
    return pack(units, units.home, units.by_cost, theta_max)


def min_table(
    snapshot: KeySnapshot,
    theta_max: float,
    *,
    table_limit: int | None = None,
    compact: int | None = None,
) -> KeyPlan:
    """The plan with the smallest table, whatever state has to move for it."""
    return planned(
        snapshot,
        lambda units: pack_min_table(units, theta_max),
        reason="a new table, of the costliest keys of overloaded instances",
        compact=compact,
        table_limit=table_limit,
    )
