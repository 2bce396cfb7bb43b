"""Cuts the window of a join into basic windows, by how far apart the rows of a pair are in time."""

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from skewless.errors import bad_argument

Times = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

# The value that stands for a missing bound: as far as event times of microseconds can be apart.
FAR_US = 2**62
# Basic windows of an open end: the first is as long as this, each next one twice as long.
_FIRST_US = 1_000_000
_DOUBLINGS = 22  # 2^22 seconds are seven weeks; the last one reaches for ever


@dataclass(frozen=True)
class BasicWindows:
    """Ranges of `right.time − left.time`; window j is [edges[j], edges[j + 1]).

    Below 0 the left row is the later one and probes the window of the right side; from 0 on it is
    the other way round. So a basic window also says in which direction the join goes.
    """

    edges_us: tuple[int, ...]

    def __post_init__(self) -> None:
        edges = self.edges_us
        if len(edges) < 2 or any(a >= b for a, b in pairwise(edges)):
            raise bad_argument("edges_us", edges, "at least two rising numbers")

    @staticmethod
    def over(lower_us: int | None, upper_us: int | None, count: int) -> "BasicWindows":
        """About `count` windows of equal length within the bounds of a join, both inclusive.

        None is an open end; there the windows become longer and longer.

        >>> BasicWindows.over(-4, 3, 4).edges_us
        (-4, -2, 0, 2, 4)
        """
        if lower_us is None or upper_us is None:
            inner = [_FIRST_US * 2**n for n in range(_DOUBLINGS)]
            low = -FAR_US if lower_us is None else lower_us
            high = FAR_US if upper_us is None else upper_us + 1
            marks = [*(-e for e in reversed(inner)), 0, *inner]
            return BasicWindows((low, *(e for e in marks if low < e < high), high))
        low, high = lower_us, upper_us + 1
        length = max(1, -(-(high - low) // count))
        # Multiples of the length, 0 among them: no window goes in both directions.
        inside = range(low // length + 1, (high - 1) // length + 1)
        return BasicWindows((low, *(n * length for n in inside), high))

    def __len__(self) -> int:
        return len(self.edges_us) - 1

    @cached_property
    def edges(self) -> Times:
        return np.array(self.edges_us, np.int64)

    @cached_property
    def lengths(self) -> Floats:
        """How long each is; with an open end each counts the same."""
        if self.edges_us[0] == -FAR_US or self.edges_us[-1] == FAR_US:
            return np.ones(len(self))
        return np.diff(self.edges).astype(np.float64)

    @cached_property
    def of_left(self) -> npt.NDArray[np.bool_]:
        """Whether each lies in the window of the left side, which right rows probe."""
        return self.edges[:-1] >= 0

    def of(self, apart_us: Times) -> Times:
        """The basic window of pairs that are so far apart."""
        return np.searchsorted(self.edges, apart_us, side="right") - 1

    def newest_first(self) -> Times:
        """The windows by how near in time their pairs are."""
        nearest = np.where(self.of_left, self.edges[:-1], 1 - self.edges[1:])
        return np.argsort(nearest, kind="stable")

    def to_json(self) -> list[int]:
        return list(self.edges_us)

    @staticmethod
    def from_json(record: Any) -> "BasicWindows":
        return BasicWindows(tuple(record))
