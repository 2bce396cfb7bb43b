"""How many results were missed, and how sure that is, from rows that were probed in full."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

# Rows probed in full below which their spread says nothing.
_FEW = 10


@dataclass(frozen=True)
class Missed:
    """An estimate that is right on the average, and its variance; those of several tasks add up.

    How many comparisons were not made is known. With a guess at the matches of one of them, made
    without a look at the rows that were probed in full, only the error of the guess has to be
    estimated (a difference estimator): where every comparison is a match, nothing is.
    """

    results: float = 0.0
    variance: float = 0.0

    @staticmethod
    def of(whole: Floats, in_part: Floats, chance: float, guessed: float = 0.0) -> "Missed":
        """What was missed by rows of which each was probed in full with this `chance`.

        `guessed` is the guess for all rows that were not. Of every row that was, as results beyond
        the guess for it: `whole` are in windows that other rows do not probe at all, `in_part` has
        what would be missed and what would be found, on the average, of windows that are probed
        for some rows only, in two lines.

        A row that is probed in full stands for (1 − p)/p rows that are not (Horvitz and Thompson).
        Where a row would miss m results, the error has the variance Σ m²·(1 − p)/p over all rows;
        to that comes Σ n²·φ·(1 − φ) of the rows not probed in full, for n results in windows that
        are probed with the chance φ.

        >>> Missed.of(np.array([2.0] + [0.0] * 9), np.zeros((2, 10)), chance=0.5, guessed=1.0)
        Missed(results=3.0, variance=8.0)
        """
        if not 0.0 < chance < 1.0:
            return Missed(guessed, 0.0 if chance else guessed**2)
        others = (1 - chance) / chance  # rows that one probed in full stands for
        lost = whole + in_part[0]
        results = guessed + float(lost.sum()) * others
        sampling = float((lost**2).sum()) * others / chance
        drawing = float((in_part[0] * in_part[1]).sum()) * others
        variance = sampling + drawing
        if len(whole) < _FEW:
            # Too few to tell how wrong the guess is: it may be all wrong.
            variance = max(variance, guessed**2 / (1 + len(whole)))
        return Missed(results, variance)

    def __add__(self, other: "Missed") -> "Missed":
        return Missed(self.results + other.results, self.variance + other.variance)

    @property
    def standard_error(self) -> float:
        # Sums that should be 0 may be a little less.
        return float(max(0.0, self.variance) ** 0.5)

    def to_json(self) -> dict[str, float]:
        return {"results": self.results, "variance": self.variance}

    @staticmethod
    def from_json(record: dict[str, Any]) -> "Missed":
        return Missed(record["results"], record["variance"])
