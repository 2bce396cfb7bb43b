"""MinMig (Alg. 3): the keys that relieve most per row of state move, and no other does."""

from skewless.planning.keys.descending import descending
from skewless.planning.keys.llfd import Packing, pack
from skewless.planning.keys.plan import KeyPlan
from skewless.planning.keys.planner import planned
from skewless.planning.keys.snapshot import KeySnapshot
from skewless.planning.keys.units import Units


def pack_min_mig(units: Units, theta_max: float, beta: float) -> Packing:
    """Nothing is cleaned; ψ is the largest γ = c^β / S first."""
    return pack(units, units.standing, descending(units.priority(beta)), theta_max)


def min_mig(
    snapshot: KeySnapshot, theta_max: float, *, beta: float = 1.5, compact: int | None = None
) -> KeyPlan:
    """The plan that moves least state, however large the table grows."""
    return planned(
        snapshot,
        lambda units: pack_min_mig(units, theta_max, beta),
        reason="keys that cost much and store little leave overloaded instances",
        compact=compact,
    )
