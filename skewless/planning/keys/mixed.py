"""Mixed (Alg. 4): cleans as much of the table as its limit asks for, then moves little state."""

from itertools import chain

import numpy as np

from skewless.load.imbalance import imbalance
from skewless.planning.keys.descending import descending
from skewless.planning.keys.llfd import Packing, pack
from skewless.planning.keys.mintable import pack_min_table
from skewless.planning.keys.plan import KeyPlan
from skewless.planning.keys.planner import planned
from skewless.planning.keys.snapshot import Instances, KeySnapshot
from skewless.planning.keys.units import Counts, Units

# How finely the number of entries to clean is looked for, in parts of the table.
_PARTS = 100


def pack_mixed(units: Units, theta_max: float, beta: float, table_limit: int) -> Packing:
    """Cleans n keys and packs, with n grown by the overrun until the table fits.

    The paper prints n as the overrun of the last try alone. Here it is added up, and grows by at
    least twice as much in every step, so that there are few; then the smallest n that fits is
    looked for by halving, to a hundredth of the table. When all is clean and the table still does
    not fit, ψ becomes the highest cost first, which is MinTable.
    """
    order = descending(units.priority(beta))
    entries, counts = _entries(units)
    everything = int(counts[-1])

    def attempt(n: int) -> tuple[Packing, int]:
        packing = pack(units, _cleaned(units, entries, counts, n), order, theta_max)
        return packing, packing.table_size(units) - table_limit

    packing, over = attempt(0)
    too_few, enough, step = 0, 0, 0
    while over > 0:
        if enough >= everything:
            return pack_min_table(units, theta_max)
        step = max(over, 2 * step)
        too_few, enough = enough, min(enough + step, everything)
        packing, over = attempt(enough)
    while enough - too_few > max(1, everything // _PARTS):
        middle = (too_few + enough) // 2
        fewer, over = attempt(middle)
        if over > 0:
            too_few = middle
        else:
            packing, enough = fewer, middle
    return packing


def pack_mixed_bf(units: Units, theta_max: float, beta: float, table_limit: int) -> Packing:
    """Every n from 0 to the whole table: of those that fit it and balance, the cheapest move."""
    order = descending(units.priority(beta))
    entries, counts = _entries(units)

    def merit(packing: Packing) -> tuple[int, float, float]:
        over = max(0, packing.table_size(units) - table_limit)
        uneven = max(0.0, imbalance(packing.loads(units)) - theta_max)
        # What is left beyond rounding counts before what moves.
        return over, round(uneven, 9), packing.migration(units)

    tries = (
        pack(units, _cleaned(units, entries, counts, int(n)), order, theta_max)
        for n in np.unique(counts)
    )
    return min(chain(tries, [pack_min_table(units, theta_max)]), key=merit)


def _entries(units: Units) -> tuple[Instances, Counts]:
    """The units in the table, smallest state first (η), and how many keys come before each."""
    away = np.flatnonzero(units.standing != units.home)
    entries = away[np.argsort(units.state[away], kind="stable")]
    return entries, np.concatenate([[0], np.cumsum(units.count[entries])])


def _cleaned(units: Units, entries: Instances, counts: Counts, n: int) -> Instances:
    """Where the units are when the first n keys, or the few more that a record has, are home."""
    back = entries[: int(np.searchsorted(counts, n))]
    if not back.size:
        return units.standing
    placed = units.standing.copy()
    placed[back] = units.home[back]
    return placed


def mixed(
    snapshot: KeySnapshot,
    theta_max: float,
    *,
    table_limit: int,
    beta: float = 1.5,
    compact: int | None = None,
    brute_force: bool = False,
) -> KeyPlan:
    """The plan that moves little state with a table within its limit."""
    packer = pack_mixed_bf if brute_force else pack_mixed
    return planned(
        snapshot,
        lambda units: packer(units, theta_max, beta, table_limit),
        reason="keys that cost much and store little leave overloaded instances; the table fits",
        compact=compact,
        table_limit=table_limit,
    )
