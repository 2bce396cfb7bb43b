"""Learns what a row, a comparison or a batch costs, from what whole tasks and batches took."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

# Before anything is measured, and where rows and comparisons cannot be told apart: milliseconds for
# a task, a row and a comparison, of the right order on today's machines.
TASK = (5.0, 1e-3, 2e-4)
# Weight of the prior against measurements, and how fast old batches fade.
_PRIOR_WEIGHT = 0.02
_FADING = 0.8
# No cost is less than this part of its prior.
_LEAST = 0.01


@dataclass(frozen=True)
class CostModel:
    """time ≈ fixed + cost · count + …, by least squares that forget.

    `prior` has the fixed cost and that of every kind of count.
    """

    prior: tuple[float, ...]
    squares: npt.NDArray[np.float64]  # Σ x·xᵀ, in units of the prior
    products: npt.NDArray[np.float64]  # Σ x·y

    @staticmethod
    def empty(prior: tuple[float, ...] = TASK) -> "CostModel":
        return CostModel(prior, np.zeros((len(prior), len(prior))), np.zeros(len(prior)))

    def observe(self, *counts: Sequence[float], wall_ms: Sequence[float]) -> "CostModel":
        """The model after some more tasks, or batches, of such counts."""
        inputs = np.column_stack([np.ones(len(wall_ms)), *counts]) * np.array(self.prior)
        squares = _FADING * self.squares + inputs.T @ inputs
        products = _FADING * self.products + inputs.T @ np.asarray(wall_ms, np.float64)
        return CostModel(self.prior, squares, products)

    def costs_ms(self, firmness: float = 1.0) -> tuple[float, ...]:
        """Milliseconds: the fixed cost, and those of one of every kind.

        What cannot be told apart is shared by all alike; with more `firmness` the fixed cost takes
        more of it, and the others stay nearer to the prior.
        """
        # Ridge towards the prior (a factor of one for each), in proportion to what was seen of
        # each: it decides only where counts rise and fall together.
        weight = _PRIOR_WEIGHT * np.diag(self.squares) + 1e-6
        weight[1:] *= firmness
        squares, products = self.squares + np.diag(weight), self.products + weight
        factors = np.zeros(len(self.prior))
        free = np.ones(len(self.prior), np.bool_)
        while free.any():
            # What cannot be so small takes its least value, and the others explain the rest.
            left = products[free] - squares[np.ix_(free, ~free)] @ factors[~free]
            factors[free] = np.linalg.solve(squares[np.ix_(free, free)], left)
            small = free & (factors < _LEAST)
            if not small.any():
                break
            factors[small] = _LEAST
            free &= ~small
        return tuple((factors * np.array(self.prior)).tolist())

    def to_json(self) -> dict[str, Any]:
        return {"squares": self.squares.tolist(), "products": self.products.tolist()}

    @staticmethod
    def from_json(record: dict[str, Any], prior: tuple[float, ...] = TASK) -> "CostModel":
        return CostModel(prior, np.array(record["squares"]), np.array(record["products"]))
