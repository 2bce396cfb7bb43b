"""What a move gains, by the paper's equations."""

import numpy as np
import pytest

from skewless.load.benefit import latency_benefit, migration_impact, resource_benefit


def test_what_moves_counts_twice() -> None:
    high, low, moved = 21.5, 7.5, np.array([4.0])
    gap_before, gap_after = high - low, (high - moved) - (low + moved)
    assert resource_benefit(moved).tolist() == (gap_before - gap_after).tolist()  # eq. 22


def test_the_latency_benefit_is_that_of_the_closed_form() -> None:
    high, low, moved, mu = 80.0, 20.0, 30.0, 100.0
    one = np.ones(1)
    got = latency_benefit(high * one, low * one, moved * one, mu * one, mu * one)
    expected = moved / ((mu - high) * (mu - high + moved)) - moved / (
        (mu - low) * (mu - low - moved)
    )  # eq. 24 with μ' = μ
    assert got.tolist() == pytest.approx([expected])


def test_the_impact_is_per_row_moved() -> None:
    impact = migration_impact(np.array([8.0, 8.0]), np.zeros(2), np.array([4.0, 0.0]))
    assert impact.tolist() == [2, 8]
