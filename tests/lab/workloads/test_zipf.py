"""The Zipf sampler: its distribution, its determinism, and that ranks are not keys."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skewless.lab.workloads import Zipf


def chi_squared(counts: np.ndarray, expected: np.ndarray) -> float:
    return float(((counts - expected) ** 2 / expected).sum())


@pytest.mark.parametrize("exponent", [0.0, 0.4, 0.8, 1.0, 1.5])
def test_frequencies_follow_the_probabilities(exponent: float) -> None:
    keys, draws = 50, 200_000
    zipf = Zipf(exponent, keys, np.random.default_rng(11))
    counts = np.bincount(zipf.sample(draws), minlength=keys)
    # 49 degrees of freedom: 94.6 is exceeded with a probability of 1 in 10,000.
    assert chi_squared(counts, zipf.probabilities() * draws) < 94.6


@given(
    exponent=st.floats(0, 3),
    keys=st.integers(1, 2_000),
    seed=st.integers(0, 2**32),
)
def test_probabilities_are_a_permuted_zipf_law(exponent: float, keys: int, seed: int) -> None:
    zipf = Zipf(exponent, keys, np.random.default_rng(seed))
    law = np.arange(1, keys + 1, dtype=np.float64) ** -exponent
    by_rank = np.sort(zipf.probabilities())[::-1]
    np.testing.assert_allclose(by_rank, law / law.sum(), rtol=1e-6, atol=1e-12)
    sample = zipf.sample(100)
    assert sample.dtype == np.int64
    assert sample.min() >= 0
    assert sample.max() < keys


def test_the_hottest_key_is_not_always_key_zero() -> None:
    hottest = {
        int(np.argmax(Zipf(1.0, 1_000, np.random.default_rng(seed)).probabilities()))
        for seed in range(20)
    }
    assert len(hottest) > 15


def test_equal_seeds_give_equal_samples() -> None:
    first, second, other = (
        Zipf(0.9, 10_000, np.random.default_rng(seed)).sample(5_000) for seed in (3, 3, 4)
    )
    np.testing.assert_array_equal(first, second)
    assert not np.array_equal(first, other)


def test_a_million_keys_at_the_share_the_law_gives_the_hottest() -> None:
    zipf = Zipf(1.0, 1_000_000, np.random.default_rng(5))
    counts = np.bincount(zipf.sample(400_000), minlength=1_000_000)
    harmonic = (1.0 / np.arange(1, 1_000_001)).sum()
    assert counts.max() / 400_000 == pytest.approx(1 / harmonic, rel=0.05)


@pytest.mark.parametrize(
    ("exponent", "keys"), [(-0.1, 10), (float("nan"), 10), (float("inf"), 10), (1.0, 0)]
)
def test_arguments_without_a_meaning_are_refused(exponent: float, keys: int) -> None:
    with pytest.raises(ValueError, match=r"exponent|keys"):
        Zipf(exponent, keys, np.random.default_rng(0))
