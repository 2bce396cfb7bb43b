"""The resource model on the paper's worked example."""

import numpy as np
import pytest

from skewless.load.imbalance import imbalance
from skewless.load.resources import compute, memory, per_instance, resources

# Fig. 4: stored S and queued R of p0..p3; j0 = {p0, p1}, j1 = {p2, p3}.
STORED = np.array([4.0, 4.0, 2.0, 1.0])
QUEUED = np.array([3.0, 4.0, 2.0, 3.0])
OWNERS = np.array([0, 0, 1, 1])


def test_the_worked_example_of_the_resource_model() -> None:
    assert per_instance(memory(STORED, QUEUED), OWNERS, 2).tolist() == [15, 8]
    assert per_instance(compute(STORED, QUEUED), OWNERS, 2).tolist() == [28, 7]
    loads = per_instance(resources(STORED, QUEUED, gamma=0.5), OWNERS, 2)
    assert loads.tolist() == [21.5, 7.5]
    assert imbalance(loads) == pytest.approx(0.4828, abs=5e-5)
