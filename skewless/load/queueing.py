"""An instance as an M/M/1 queue: how long a row stays (eq. 15–21)."""

import numpy as np
import numpy.typing as npt

Loads = npt.NDArray[np.float64]


def idle_probability(rate: Loads, service: Loads) -> Loads:
    """Eq. 18: nothing waits, 1 − E/μ. (The sum that the paper prints starts at λ = 1, not 0.)

    >>> idle_probability(np.array([80.0]), np.array([100.0])).round(9).tolist()
    [0.2]
    """
    return np.maximum(1 - rate / service, 0.0)


def occupancy_probability(rate: Loads, service: Loads, rows: int) -> Loads:
    """Eq. 17: exactly so many rows are in the instance.

    >>> occupancy_probability(np.array([80.0]), np.array([100.0]), rows=1).round(9).tolist()
    [0.16]
    """
    return (rate / service) ** rows * idle_probability(rate, service)


def queue_length(rate: Loads, service: Loads) -> Loads:
    """Eq. 16 and 19: E/(μ − E) rows on average; infinite when rows come faster than they go.

    >>> queue_length(np.array([80.0]), np.array([100.0])).tolist()
    [4.0]
    """
    return rate * sojourn(rate, service)


def sojourn(rate: Loads, service: Loads) -> Loads:
    """Eq. 15 and 20: a row stays for 1/(μ − E) on average; infinite from E = μ on.

    >>> sojourn(np.array([80.0]), np.array([100.0])).tolist()
    [0.05]
    """
    spare = service - rate
    stays: Loads = np.full(np.shape(spare), np.inf)
    np.divide(1.0, spare, out=stays, where=spare > 0)
    return stays


def sojourn_in_window(memory: Loads, service: Loads, window: float) -> Loads:
    """Eq. 21: the same from the rows held during a window W, because memory = E·W (eq. 8).

    >>> sojourn_in_window(np.array([800.0]), np.array([100.0]), window=10.0).tolist()
    [0.05]
    """
    return sojourn(memory / window, service)
