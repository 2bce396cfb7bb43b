"""The paper's resource model: what a partition costs in memory and in comparisons (eq. 7–12)."""

import numpy as np
import numpy.typing as npt

Loads = npt.NDArray[np.float64]


def memory(stored: Loads, queued: Loads) -> Loads:
    """Eq. 7 (summed over partitions: eq. 8): the rows kept and the rows that wait.

    >>> memory(np.array([4.0, 2.0]), np.array([3.0, 2.0])).tolist()
    [7.0, 4.0]
    """
    return stored + queued


def compute(stored: Loads, queued: Loads) -> Loads:
    """Eq. 9 (summed: eq. 10): every waiting row is compared with every row kept.

    >>> compute(np.array([4.0, 2.0]), np.array([3.0, 2.0])).tolist()
    [12.0, 4.0]
    """
    return stored * queued


def resources(stored: Loads, queued: Loads, gamma: float) -> Loads:
    """Eq. 11: memory weighted by γ, comparisons by 1 − γ.

    >>> resources(np.array([4.0, 2.0]), np.array([3.0, 2.0]), gamma=0.5).tolist()
    [9.5, 4.0]
    """
    return gamma * memory(stored, queued) + (1 - gamma) * compute(stored, queued)


def per_instance(values: Loads, owners: npt.NDArray[np.int64], instances: int) -> Loads:
    """Eq. 8, 10 and 12: an instance is the sum of its partitions.

    >>> per_instance(np.array([1.0, 2.0, 4.0]), np.array([0, 2, 0]), instances=3).tolist()
    [5.0, 0.0, 2.0]
    """
    summed = np.bincount(owners, weights=values, minlength=instances)
    return summed.astype(np.float64, copy=False)
