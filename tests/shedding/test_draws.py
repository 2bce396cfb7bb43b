"""Draws are uniform, repeatable, and independent from batch to batch and from use to use."""

import numpy as np

from skewless.shedding.draws import uniform

HASHES = np.arange(20_000, dtype=np.uint64)
TIMES = np.zeros(20_000, np.int64)


def test_draws_are_uniform() -> None:
    for hashes, times in ((HASHES, TIMES), (TIMES.view(np.uint64), np.arange(20_000))):
        counts, _ = np.histogram(uniform(hashes, times, 3, 0), bins=10, range=(0, 1))
        # Five standard deviations of a binomial of 2,000.
        assert np.abs(counts - 2_000).max() < 5 * (2_000 * 0.9) ** 0.5


def test_a_replay_draws_the_same_whatever_the_order_of_the_rows() -> None:
    order = np.random.default_rng(1).permutation(len(HASHES))
    again = uniform(HASHES[order], TIMES[order], 3, 0)
    assert np.array_equal(again, uniform(HASHES, TIMES, 3, 0)[order])


def test_batches_and_uses_are_independent() -> None:
    first = uniform(HASHES, TIMES, 3, 0)
    for other in (uniform(HASHES, TIMES, 4, 0), uniform(HASHES, TIMES, 3, 1)):
        assert abs(np.corrcoef(first, other)[0, 1]) < 0.05
