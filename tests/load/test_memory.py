"""The memory that a process has held."""

import numpy as np

from skewless.load.memory import peak_memory_bytes


def test_the_peak_stays_after_the_memory_is_gone() -> None:
    size = 64 * 2**20
    held = np.ones(size, np.uint8)
    assert held[-1] == 1
    peak = peak_memory_bytes()
    assert peak > size
    del held
    assert peak_memory_bytes() >= peak
