"""How far the sketch's estimate of a cost is from the truth, in theory (POSG, §IV-B)."""

import numpy as np
import numpy.typing as npt

from skewless.errors import bad_argument

Floats = npt.NDArray[np.float64]


def expected_estimate(costs: Floats, columns: int) -> Floats:
    """E{W/F} of every item in one row of `columns` cells, where all items are equally frequent.

    Theorem 4.3, whose k is the number of columns. With few columns every estimate is near the mean.

    >>> costs = np.repeat(np.arange(1.0, 65.0), 64)
    >>> expected_estimate(costs, 55)[[0, -1]].round(3).tolist()
    [32.085, 32.915]
    """
    n = len(costs)
    if n < 2:
        raise bad_argument("costs", n, "the costs of at least two items")
    total = costs.sum()
    alone = 1 - (1 - 1 / columns) ** n
    expected: Floats = (total - costs) / (n - 1)
    expected -= columns * (total - n * costs) / (n * (n - 1)) * alone
    return expected


def markov_bound(expected: float, at_least: float, rows: int) -> float:
    """An upper bound of the probability that the estimates of all rows are `at_least` so high.

    >>> round(markov_bound(33.0, 48.0, rows=10), 4)
    0.0236
    """
    if at_least <= 0:
        raise bad_argument("at_least", at_least, "a number above 0")
    return min(1.0, expected / at_least) ** rows
