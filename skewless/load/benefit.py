"""What a migration brings and what it costs (eq. 22–25)."""

import numpy as np
import numpy.typing as npt

from skewless.load.queueing import sojourn

Loads = npt.NDArray[np.float64]


def resource_benefit(moved_load: Loads) -> Loads:
    """Eq. 22 and 23: the gap between straggler and lightest closes by twice what moves.

    >>> resource_benefit(np.array([3.0])).tolist()
    [6.0]
    """
    return 2 * moved_load


def latency_benefit(
    rate_high: Loads,
    rate_low: Loads,
    moved_rate: Loads,
    service_high: Loads,
    service_low: Loads,
) -> Loads:
    """Eq. 24: the fall of the time a row stays, on the straggler and on the lightest instance.

    Processors are alike and moving rows does not change how fast they are, so μ' = μ.

    >>> one = np.array([1.0])
    >>> latency_benefit(80 * one, 20 * one, 30 * one, 100 * one, 100 * one).round(4).tolist()
    [0.0225]
    """
    high = sojourn(rate_high, service_high) - sojourn(rate_high - moved_rate, service_high)
    low = sojourn(rate_low, service_low) - sojourn(rate_low + moved_rate, service_low)
    return high + low


def migration_impact(resource: Loads, latency: Loads, moved_rows: Loads) -> Loads:
    """Eq. 25: benefit per row moved; larger is better. A partition without rows counts as one row.

    >>> migration_impact(np.array([6.0]), np.array([2.0]), np.array([4.0])).tolist()
    [2.0]
    """
    return (resource + latency) / np.maximum(moved_rows, 1.0)
