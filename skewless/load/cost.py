"""Learns the cost of a row and of a match from the times of whole tasks."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

# Before anything is measured, and where rows and matches cannot be told apart: milliseconds for a
# task, a row and a match, of the right order on today's machines.
_PRIOR = np.array([5.0, 1e-3, 2e-4])
# Weight of the prior against measurements, and how fast old batches fade.
_PRIOR_WEIGHT = 0.02
_FADING = 0.8


@dataclass(frozen=True)
class CostModel:
    """task time ≈ fixed + row_ms · rows + match_ms · matches, by least squares that forget."""

    squares: npt.NDArray[np.float64]  # Σ x·xᵀ, in units of the prior
    products: npt.NDArray[np.float64]  # Σ x·y

    @staticmethod
    def empty() -> "CostModel":
        return CostModel(np.zeros((3, 3)), np.zeros(3))

    def observe(
        self, rows: Sequence[float], matches: Sequence[float], wall_ms: Sequence[float]
    ) -> "CostModel":
        """The model after one more batch of tasks."""
        inputs = np.column_stack([np.ones(len(rows)), rows, matches]) * _PRIOR
        squares = _FADING * self.squares + inputs.T @ inputs
        products = _FADING * self.products + inputs.T @ np.asarray(wall_ms, np.float64)
        return CostModel(squares, products)

    def per_row_and_match(self) -> tuple[float, float]:
        """Milliseconds for a row and for a match."""
        # Ridge towards the prior (a factor of one for each), in proportion to what was seen of
        # each: it decides only where rows and matches rise and fall together.
        weight = _PRIOR_WEIGHT * np.diag(self.squares) + 1e-6
        factors = np.linalg.solve(self.squares + np.diag(weight), self.products + weight)
        costs = np.maximum(factors, 0.01) * _PRIOR
        return float(costs[1]), float(costs[2])

    def to_json(self) -> dict[str, Any]:
        return {"squares": self.squares.tolist(), "products": self.products.tolist()}

    @staticmethod
    def from_json(record: dict[str, Any]) -> "CostModel":
        return CostModel(np.array(record["squares"]), np.array(record["products"]))
