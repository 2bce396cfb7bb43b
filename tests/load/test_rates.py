"""Input rates: summed over dispatchers, averaged without the extremes."""

import numpy as np
import pytest

from skewless.load.rates import input_rates, trimmed_mean


def test_input_rates_add_up_over_the_dispatchers() -> None:
    assert input_rates(np.array([[10.0, 0.0], [5.0, 7.0]])).tolist() == [15, 7]


@pytest.mark.parametrize(
    ("name", "samples", "mean"),
    [
        ("one sample", [4], 4),
        ("two samples are both kept", [4, 8], 6),
        ("the extremes go, and so does their share of the divisor", [0, 10, 20, 1_000], 15),
        ("of equal extremes one goes", [1, 1, 5, 9, 9], 5),
    ],
)
def test_the_trimmed_mean(name: str, samples: list[float], mean: float) -> None:
    assert trimmed_mean(np.array(samples, float)[:, None]).tolist() == [mean]


def test_a_mean_of_no_samples_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one"):
        trimmed_mean(np.zeros((0, 2)))
