"""The estimate of missed results is unbiased, and its standard error is what it says."""

import numpy as np
import pytest

from skewless.shedding.estimate import Missed


def drawn(rng: np.random.Generator, chance: float, part: float, guess: float) -> tuple[Missed, int]:
    """An estimate and the truth: skewed rows, some windows never probed, one probed in part."""
    rows = 2_000
    skew = 1.0 / np.arange(1, rows + 1) ** 0.7
    comparisons = rng.poisson(400 * skew[:, None], (rows, 2))
    matches = rng.binomial(comparisons, 0.3)
    fully, probes = rng.random(rows) < chance, rng.random(rows) < part
    lost = matches[:, 0] + np.where(probes, 0, matches[:, 1])
    unmade = comparisons[:, 0] + np.where(probes, 0, comparisons[:, 1])
    beyond = matches - guess * comparisons
    estimate = Missed.of(
        beyond[fully, 0],
        np.stack([beyond[fully, 1] * (1 - part), beyond[fully, 1] * part]),
        chance,
        guessed=guess * float(unmade[~fully].sum()),
    )
    return estimate, int(lost[~fully].sum())


@pytest.mark.parametrize("guess", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("part", [0.0, 0.4, 1.0])
def test_the_mean_over_many_seeds_is_the_truth(guess: float, part: float) -> None:
    errors, claimed = [], []
    for seed in range(100):
        estimate, truth = drawn(np.random.default_rng(seed), 0.05, part, guess)
        errors.append(estimate.results - truth)
        claimed.append(estimate.variance)
    of_mean = np.std(errors) / 10
    assert abs(np.mean(errors)) < 2.5 * of_mean
    assert np.mean(claimed) ** 0.5 == pytest.approx(np.std(errors), rel=0.35)


def test_a_good_guess_makes_it_sure() -> None:
    blind, _ = drawn(np.random.default_rng(1), 0.05, 0.4, guess=0.0)
    guided, _ = drawn(np.random.default_rng(1), 0.05, 0.4, guess=0.3)
    assert guided.standard_error < blind.standard_error / 2


def test_a_guess_that_is_always_right_is_exact() -> None:
    nothing = np.zeros(17)
    missed = Missed.of(nothing, np.stack([nothing, nothing]), 0.1, guessed=1234.0)
    assert missed == Missed(1234.0, 0.0)


@pytest.mark.parametrize("rows", [0, 3])
def test_too_few_rows_claim_no_certainty(rows: int) -> None:
    nothing = np.zeros(rows)
    missed = Missed.of(nothing, np.stack([nothing, nothing]), 0.001, guessed=1234.0)
    assert missed.results == 1234.0
    assert missed.standard_error == pytest.approx(1234.0 / (1 + rows) ** 0.5)


def test_estimates_of_tasks_add_up() -> None:
    total = Missed(3.0, 4.0) + Missed(2.0, 5.0)
    assert (total.results, total.standard_error) == (5.0, 3.0)
    assert Missed.from_json(total.to_json()) == total
