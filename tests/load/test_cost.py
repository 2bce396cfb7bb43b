"""The cost model finds what a row and a match cost, and never goes negative."""

import json

import numpy as np
import pytest

from skewless.load.cost import CostModel


@pytest.mark.parametrize(("row_ms", "match_ms"), [(0.002, 0.0001), (0.0005, 0.001), (0.001, 0.0)])
def test_costs_are_found_from_tasks_that_differ(row_ms: float, match_ms: float) -> None:
    rng = np.random.default_rng(4)
    model = CostModel.empty()
    for _ in range(20):
        rows, matches = rng.integers(1e4, 3e5, 8), rng.integers(0, 2e6, 8)
        wall = 8 + row_ms * rows + match_ms * matches
        model = model.observe(rows, matches, wall_ms=wall * rng.normal(1, 0.01, 8))
    _, found_row, found_match = model.costs_ms()
    assert found_row == pytest.approx(row_ms, rel=0.35)
    assert found_match == pytest.approx(match_ms, rel=0.35, abs=3e-5)


def test_without_measurements_a_row_costs_more_than_a_match() -> None:
    _, row_ms, match_ms = CostModel.empty().costs_ms()
    assert row_ms > match_ms > 0


def test_nonsense_never_makes_a_cost_negative() -> None:
    model = CostModel.empty().observe([1e5, 2e5], [1e6, 0.0], wall_ms=[1.0, 500.0])
    assert min(model.costs_ms()) > 0
    empty = CostModel.empty().observe([0.0, 0.0], [0.0, 0.0], wall_ms=[3.0, 4.0])
    assert min(empty.costs_ms()) > 0


def test_the_model_survives_json() -> None:
    model = CostModel.empty().observe([1e5, 2e5], [1e6, 3e6], wall_ms=[100.0, 300.0])
    again = CostModel.from_json(json.loads(json.dumps(model.to_json())))
    assert again.costs_ms() == model.costs_ms()


def test_a_cost_far_below_the_prior_is_found_although_counts_hardly_change() -> None:
    """A fixed cost below zero would make up for it."""
    model = CostModel.empty((5.0, 1e-4))
    for n in range(20):
        counts = [1.30e7 + 1e5 * (n % 2), 1.35e7]
        model = model.observe(counts, wall_ms=[2e-5 * c for c in counts])
    fixed, each = model.costs_ms()
    assert fixed < 1.0
    assert each == pytest.approx(2e-5, rel=0.15)
