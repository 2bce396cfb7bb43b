"""The queue of an instance on the paper's worked example, and at the edges."""

import numpy as np
import pytest

from skewless.load.queueing import (
    idle_probability,
    occupancy_probability,
    queue_length,
    sojourn,
    sojourn_in_window,
)

E, MU = np.array([80.0]), np.array([100.0])


def test_the_worked_example_of_the_queue() -> None:
    assert queue_length(E, MU).tolist() == [4]
    assert sojourn(E, MU).tolist() == [0.05]
    assert sojourn_in_window(memory=800.0 * E / 80, service=MU, window=10.0).tolist() == [0.05]


def test_the_occupancies_are_a_distribution_with_the_queue_length_as_mean() -> None:
    rows = range(400)
    chances = [float(occupancy_probability(E, MU, n)[0]) for n in rows]
    assert chances[0] == pytest.approx(float(idle_probability(E, MU)[0]))
    assert sum(chances) == pytest.approx(1)  # eq. 17 and 18
    assert sum(n * p for n, p in zip(rows, chances, strict=True)) == pytest.approx(4)  # eq. 16


def test_a_queue_that_grows_for_ever_has_an_infinite_sojourn() -> None:
    assert np.isinf(sojourn(np.array([100.0, 120.0]), np.array([100.0, 100.0]))).all()
