"""Which direction of a join is worth more: one fraction per window (Algorithm 4)."""

from math import isfinite

from skewless.errors import bad_argument

Pair = tuple[float, float]


def directed(fraction: float, windows: Pair, productivity: Pair) -> Pair:
    """(r1, r2): as much as possible of the window with more matches per comparison, then the other.

    The comparisons stay the same: r1·w1 + r2·w2 = fraction·(w1 + w2), where `windows` are the
    lengths of both windows. Windows that are equally productive share the fraction. A window of
    length 0 has nothing to probe, and its fraction is 1.

    >>> directed(0.3, windows=(20.0, 20.0), productivity=(0.001, 0.004))
    (0.0, 0.6)
    >>> directed(0.75, windows=(20.0, 20.0), productivity=(0.004, 0.001))
    (1.0, 0.5)
    """
    if not 0 <= fraction <= 1:
        raise bad_argument("fraction", fraction, "a number from 0 to 1")
    for name, pair in (("windows", windows), ("productivity", productivity)):
        if len(pair) != 2 or not all(value >= 0 and isfinite(value) for value in pair):
            raise bad_argument(name, pair, "two numbers of at least 0")
    first, second = windows
    if productivity[0] > productivity[1]:
        return _raised(fraction, first, second)
    if productivity[0] < productivity[1]:
        other, best = _raised(fraction, second, first)
        return best, other
    return (fraction if first else 1.0), (fraction if second else 1.0)


def _raised(fraction: float, best: float, other: float) -> Pair:
    """The fractions of the better window and of the other one."""
    budget = fraction * (best + other)
    raised = min(1.0, budget / best) if best else 1.0
    rest = (budget - raised * best) / other if other else 1.0
    return raised, min(1.0, max(0.0, rest))
