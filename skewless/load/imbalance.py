"""How unevenly the instances are loaded."""

import numpy as np
import numpy.typing as npt

Loads = npt.NDArray[np.float64]


def imbalance(loads: Loads) -> float:
    """The imbalance degree LI of eq. 13: the larger distance of an extreme from the mean (eq. 14),
    as a share of the mean. Without any load it is 0.

    >>> round(imbalance(np.array([21.5, 7.5])), 4)
    0.4828
    """
    mean = float(loads.mean())
    if mean <= 0:
        return 0.0
    return max(float(loads.max()) - mean, mean - float(loads.min())) / mean


def overload(loads: Loads) -> float:
    """The upper half of eq. 13: how far the straggler is above the mean. A batch ends with its
    straggler, so this is the time lost; an instance with little to do costs nothing.

    >>> overload(np.array([3.0, 3.0, 0.0]))
    0.5
    """
    mean = float(loads.mean())
    return (float(loads.max()) - mean) / mean if mean > 0 else 0.0


def falls(before: Loads, after: Loads) -> bool:
    """Whether the loads fall, compared from the heaviest instance down.

    The imbalance degree alone is too coarse: of two equal stragglers one may be relieved, and LI
    stays. Moves that pass this test cannot form a cycle, because the order is total.

    >>> falls(np.array([5.0, 5.0, 1.0]), np.array([3.0, 5.0, 3.0]))
    True
    >>> falls(np.array([5.0, 1.0]), np.array([1.0, 5.0]))
    False
    """
    old, new = np.sort(before)[::-1], np.sort(after)[::-1]
    # Sums of the same numbers in another order differ in their last digits.
    scale = max(float(old[0]), float(new[0]), 0.0)
    different = np.flatnonzero(np.abs(old - new) > 1e-9 * scale)
    return bool(different.size) and bool(new[different[0]] < old[different[0]])
