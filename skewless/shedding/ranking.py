"""Which part of a window is probed: basic windows in the order of their yield (Algorithms 2, 3)."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from skewless.errors import bad_argument

Floats = npt.NDArray[np.float64]
Order = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Productivity:
    """What rows that were compared with a whole window found in each of its basic windows.

    Basic window 0 is the newest. `matches` may be sums of values instead of counts. Immutable:
    every operation gives new statistics.

    >>> seen = Productivity(np.array([100.0, 100.0]), np.array([1.0, 5.0]))
    >>> seen.expected.tolist(), seen.mean
    ([0.01, 0.05], 0.03)
    """

    comparisons: Floats
    matches: Floats

    def __post_init__(self) -> None:
        for name in ("comparisons", "matches"):
            values = getattr(self, name)
            if values.ndim != 1 or not len(values):
                raise bad_argument(name, values, "one number per basic window")
            if not (np.isfinite(values).all() and (values >= 0).all()):
                raise bad_argument(name, values, "numbers of at least 0")
        if len(self.matches) != len(self.comparisons):
            takes = f"{len(self.comparisons)} numbers, as comparisons"
            raise bad_argument("matches", self.matches, takes)
        if self.matches[self.comparisons == 0].any():
            raise bad_argument("matches", self.matches, "no match without a comparison")

    @staticmethod
    def none(windows: int) -> "Productivity":
        """Nothing was seen of so many basic windows."""
        if windows < 1:
            raise bad_argument("windows", windows, "a whole number of at least 1")
        return Productivity(np.zeros(windows), np.zeros(windows))

    @property
    def expected(self) -> Floats:
        """o_j: matches per comparison with a row of basic window j; 0 where none was made."""
        found = np.zeros(len(self.comparisons))
        np.divide(self.matches, self.comparisons, out=found, where=self.comparisons > 0)
        return found

    @property
    def mean(self) -> float:
        """o: matches per comparison with a row from anywhere in the window; 0 before any."""
        compared = float(self.comparisons.sum())
        return float(self.matches.sum()) / compared if compared else 0.0

    def merge(self, other: "Productivity") -> "Productivity":
        """What both have seen."""
        if len(other.comparisons) != len(self.comparisons):
            takes = f"statistics of {len(self.comparisons)} basic windows"
            raise bad_argument("other", other, takes)
        return Productivity(
            self.comparisons + other.comparisons,
            self.matches + other.matches,
        )

    def fade(self, factor: float) -> "Productivity":
        """What was seen weighs `factor` times as much; 0 forgets it."""
        if not 0 <= factor <= 1:
            raise bad_argument("factor", factor, "a number from 0 to 1")
        comparisons = self.comparisons * factor
        # What underflows to nothing must not leave matches behind.
        return Productivity(comparisons, np.where(comparisons > 0, self.matches * factor, 0.0))


def ranked(productivity: Productivity) -> Order:
    """s: the basic windows, the one with the most matches per comparison first.

    Equal ones stay in their order, newest first. A basic window that nobody was compared with
    counts as one without matches, so before anything is known the newest rows are probed.

    >>> ranked(Productivity(np.array([10.0, 10.0, 0.0]), np.array([0.0, 3.0, 0.0]))).tolist()
    [1, 0, 2]
    """
    return np.argsort(-productivity.expected, kind="stable")


def shares(order: Order, sizes: Floats, fraction: float) -> Floats:
    """How much of each basic window is probed: whole ones from the best on, the last in part.

    Together they are `fraction` of all rows. `sizes` are rows per basic window, newest first.

    >>> shares(np.array([1, 0, 2]), np.array([10.0, 20.0, 10.0]), fraction=0.625).tolist()
    [0.5, 1.0, 0.0]
    """
    if not 0 <= fraction <= 1:
        raise bad_argument("fraction", fraction, "a number from 0 to 1")
    if sizes.ndim != 1 or not len(sizes) or not (np.isfinite(sizes) & (sizes >= 0)).all():
        raise bad_argument("sizes", sizes, "rows per basic window, at least 0")
    if not np.array_equal(np.sort(order), np.arange(len(sizes))):
        raise bad_argument("order", order, f"every basic window from 0 to {len(sizes) - 1} once")
    in_order = sizes[order]
    after = np.cumsum(in_order)
    # The last sum, not sizes.sum(): with a fraction of 1 the last basic window fits exactly.
    left = fraction * after[-1] - (after - in_order)
    partly = np.clip(left / np.where(in_order > 0, in_order, 1.0), 0.0, 1.0)
    probed = np.empty(len(sizes))
    probed[order] = np.where(after <= fraction * after[-1], 1.0, partly)
    return probed
