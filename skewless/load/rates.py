"""Input rates of the instances, smoothed (eq. 3 and 4)."""

import numpy as np
import numpy.typing as npt

Loads = npt.NDArray[np.float64]


def input_rates(sent: Loads) -> Loads:
    """Eq. 3: what an instance receives is the sum over the dispatchers (rows of `sent`).

    >>> input_rates(np.array([[1.0, 2.0], [3.0, 4.0]])).tolist()
    [4.0, 6.0]
    """
    total: Loads = sent.sum(axis=0)
    return total


def trimmed_mean(samples: Loads) -> Loads:
    """Eq. 4: the mean over a short period (first axis) without its highest and lowest sample.

    The paper subtracts the two and still divides by the whole period; the divisor here is the
    number of samples that are left. Two samples or fewer are averaged as they are.

    >>> trimmed_mean(np.array([[10.0], [90.0], [20.0], [30.0]])).tolist()
    [25.0]
    """
    if samples.shape[0] == 0:
        raise ValueError("samples: takes at least one")
    mean: Loads
    if samples.shape[0] <= 2:
        mean = samples.mean(axis=0)
    else:
        inner = samples.sum(axis=0) - samples.max(axis=0) - samples.min(axis=0)
        mean = inner / (samples.shape[0] - 2)
    return mean
