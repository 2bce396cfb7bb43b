"""How much of the windows can be probed: a fraction that follows the input rates (Algorithm 1)."""

from math import isfinite

from skewless.errors import bad_argument

# A fraction of zero would never grow again, whatever the boost.
LEAST_FRACTION = 1e-3


def adapted(fraction: float, fetched: float, arrived: float, boost: float = 1.2) -> float:
    """The fraction for the next period, from the rows that arrived in this one and were fetched.

    β = fetched ÷ arrived. Below 1 the join is too slow: r ← β·r, because comparisons are what takes
    its time. Otherwise it may have time to spare: r ← min(1, boost·r). A period in which nothing
    arrived counts as kept up with. The fraction never falls below `LEAST_FRACTION`.

    >>> adapted(0.8, fetched=500, arrived=1_000)
    0.4
    >>> adapted(0.5, fetched=1_000, arrived=1_000)
    0.6
    """
    if not 0 < fraction <= 1:
        raise bad_argument("fraction", fraction, "a number above 0 and up to 1")
    for name, rows in (("fetched", fetched), ("arrived", arrived)):
        if not (rows >= 0 and isfinite(rows)):
            raise bad_argument(name, rows, "a number of at least 0")
    if not (boost >= 1 and isfinite(boost)):
        raise bad_argument("boost", boost, "a number of at least 1")
    if fetched >= arrived:
        return min(1.0, boost * fraction)
    return max(LEAST_FRACTION, fetched / arrived * fraction)
