"""What items cost, learned into two small Count-Min matrices and a few exact entries."""

import base64
import zlib
from dataclasses import dataclass, field, replace
from math import ceil, e, log2
from typing import Any

import numpy as np
import numpy.typing as npt

from skewless.errors import bad_argument

Hashes = npt.NDArray[np.uint64]
Floats = npt.NDArray[np.float64]
Columns = npt.NDArray[np.int64]

_HALF = np.uint64(32)
_LOW = np.uint64(2**32 - 1)
_MOST_ROWS, _MOST_COLUMNS = 64, 2**24
# What has decayed below this was seen so long ago that it counts as never seen.
_FORGOTTEN = 1e-6


@dataclass(frozen=True)
class SketchShape:
    """The size of the matrices and the seed of their hash functions.

    Sketches of one shape share their hash functions in every process, so they can be merged.

    >>> SketchShape.within(epsilon=0.05, delta=0.1)
    SketchShape(rows=4, columns=55, seed=0)
    """

    rows: int
    columns: int
    seed: int = 0

    def __post_init__(self) -> None:
        for name, most in (("rows", _MOST_ROWS), ("columns", _MOST_COLUMNS)):
            value = getattr(self, name)
            if not isinstance(value, int) or not 1 <= value <= most:
                raise bad_argument(name, value, f"a whole number from 1 to {most:,}")

    @staticmethod
    def within(epsilon: float, delta: float, seed: int = 0) -> "SketchShape":
        """Frequencies wrong by more than ε of the stream with a probability of at most δ.

        The paper writes r = ⌈log 1/δ⌉ and takes 4 rows for δ = 0.1: its logarithm is to the base 2.
        """
        if not e / _MOST_COLUMNS <= epsilon <= 1:
            takes = f"a number from {e / _MOST_COLUMNS:.2g} to 1"
            raise bad_argument("epsilon", epsilon, takes)
        if not 0.5**_MOST_ROWS <= delta < 1:
            takes = f"a number of at least {0.5**_MOST_ROWS:.2g} and below 1"
            raise bad_argument("delta", delta, takes)
        return SketchShape(max(1, ceil(log2(1 / delta))), ceil(e / epsilon), seed)

    def columns_of(self, hashes: Hashes) -> Columns:
        """The cell of every item in every row: one line per row of the matrices.

        Pair-multiply-shift over the two halves of the hash, (a·low + b·high + c) >> 32 modulo 2^64,
        is strongly universal (Thorup, 'High speed hashing for integers and strings'); scaling 32
        bits to the columns adds at most columns/2^32 to the probability of a collision.
        """
        a, b, c = self._factors()
        low, high = hashes & _LOW, hashes >> _HALF
        mixed = (a * low + b * high + c) >> _HALF
        return ((mixed * np.uint64(self.columns)) >> _HALF).astype(np.int64)

    def _factors(self) -> tuple[Hashes, Hashes, Hashes]:
        numbers = _split_mix(self.seed, 3 * self.rows).reshape(3, self.rows, 1)
        return numbers[0], numbers[1], numbers[2]


@dataclass(frozen=True, eq=False)
class Heaviest:
    """Items with an exact entry: counts and times without collisions.

    They are exact from the moment at which the item became one of the heaviest.
    """

    hashes: Hashes  # ascending
    counts: Floats
    times: Floats

    @staticmethod
    def none() -> "Heaviest":
        return Heaviest(np.empty(0, np.uint64), np.empty(0), np.empty(0))

    def with_items(self, hashes: Hashes, counts: Floats, times: Floats, most: int) -> "Heaviest":
        """These and others, summed by item; only the `most` with the longest time in all stay."""
        found, place = np.unique(np.concatenate([self.hashes, hashes]), return_inverse=True)
        n = len(found)
        count = _summed(place, np.concatenate([self.counts, counts]), n)
        time = _summed(place, np.concatenate([self.times, times]), n)
        if n > most:
            # By hash where times are equal: what stays must not depend on the order of merging.
            kept = np.sort(np.lexsort((found, -time))[:most])
            found, count, time = found[kept], count[kept], time[kept]
        return Heaviest(found, count, time)


@dataclass(frozen=True, eq=False)
class CostSketch:
    """F counts tuples and W sums their execution times (Listing III.1); both r × c.

    Immutable: every operation gives a new sketch. Times are in whatever unit the caller keeps to.

    >>> sketch = CostSketch.empty(SketchShape(4, 55))
    >>> seen = sketch.update(np.array([7, 7, 9], np.uint64), np.array([2.0, 4.0, 10.0]))
    >>> seen.estimate(np.array([7, 9], np.uint64)).tolist()
    [3.0, 10.0]
    """

    shape: SketchShape
    F: Floats
    W: Floats
    most: int = 0  # how many of the heaviest have an exact entry
    heaviest: Heaviest = field(default_factory=Heaviest.none)

    def __reduce__(self) -> tuple[Any, ...]:
        # Sent along with every task, and mostly zeros.
        return _restored, (self.shape, _sparse(self.F), _sparse(self.W), self.most, self.heaviest)

    @staticmethod
    def empty(shape: SketchShape, most: int = 0) -> "CostSketch":
        size = (shape.rows, shape.columns)
        return CostSketch(shape, np.zeros(size), np.zeros(size), most)

    @property
    def count(self) -> float:
        """How many tuples were seen; less after decay."""
        return float(self.F[0].sum())

    @property
    def mean(self) -> float:
        """The mean execution time; 1 before anything was seen, so that all items are alike."""
        count = self.count
        return float(self.W[0].sum()) / count if count else 1.0

    def update(self, hashes: Hashes, times: Floats) -> "CostSketch":
        """The sketch after these executions."""
        items, place = np.unique(hashes, return_inverse=True)
        counts = np.bincount(place, minlength=len(items)).astype(np.float64)
        return self.update_items(items, counts, _summed(place, times, len(items)))

    def update_items(self, items: Hashes, counts: Floats, sums: Floats) -> "CostSketch":
        """The sketch after so many executions of each item, which took so long together."""
        if not len(items):
            return self
        F, W = self.F.copy(), self.W.copy()
        # A loop over the few rows of the matrices, not over items.
        for row, columns in enumerate(self.shape.columns_of(items)):
            F[row] += _summed(columns, counts, self.shape.columns)
            W[row] += _summed(columns, sums, self.shape.columns)
        heaviest = self.heaviest
        if self.most:
            heaviest = heaviest.with_items(items, counts, sums, self.most)
        return replace(self, F=F, W=W, heaviest=heaviest)

    def estimate(self, hashes: Hashes) -> Floats:
        """What each item will take (Listing III.2): W/F of the row whose F cell is the smallest.

        A new item gets the mean. The heaviest items are exact.
        """
        if not self.count:
            return np.full(len(hashes), self.mean)
        columns = self.shape.columns_of(hashes)
        rows = np.arange(self.shape.rows)[:, None]
        counts = self.F[rows, columns]
        best = counts.argmin(axis=0)
        item = np.arange(len(hashes))
        smallest = counts[best, item]
        seen = smallest > 0
        times = self.W[best, columns[best, item]]
        found = np.where(seen, times / np.where(seen, smallest, 1.0), self.mean)
        heavy = self.heaviest
        if len(heavy.hashes):
            at = np.minimum(np.searchsorted(heavy.hashes, hashes), len(heavy.hashes) - 1)
            exact = heavy.hashes[at] == hashes
            found[exact] = (heavy.times / heavy.counts)[at[exact]]
        return found

    def merge(self, other: "CostSketch") -> "CostSketch":
        """The sketch of both streams together."""
        if other.shape != self.shape:
            raise bad_argument("other", other.shape, f"a sketch of the same shape, {self.shape}")
        most, heavy = max(self.most, other.most), other.heaviest
        heaviest = self.heaviest.with_items(heavy.hashes, heavy.counts, heavy.times, most)
        return CostSketch(self.shape, self.F + other.F, self.W + other.W, most, heaviest)

    def decay(self, factor: float) -> "CostSketch":
        """What was seen weighs `factor` times as much.

        Estimates stay the same until new times arrive or their counts have faded away.
        """
        if not 0 <= factor <= 1:
            raise bad_argument("factor", factor, "a number from 0 to 1")
        F = self.F * factor
        kept = F > _FORGOTTEN
        heavy = self.heaviest
        known = heavy.counts * factor > _FORGOTTEN
        return replace(
            self,
            F=np.where(kept, F, 0.0),
            W=np.where(kept, self.W * factor, 0.0),
            heaviest=Heaviest(
                heavy.hashes[known], heavy.counts[known] * factor, heavy.times[known] * factor
            ),
        )

    def snapshot(self) -> Floats:
        """S = W/F, cell by cell; NaN where nothing was seen."""
        ratios = np.full(self.F.shape, np.nan)
        np.divide(self.W, self.F, out=ratios, where=self.F > 0)
        return ratios

    def to_json(self) -> dict[str, Any]:
        """A record of text and numbers only, small when most cells are empty."""
        heavy = self.heaviest
        return {
            "rows": self.shape.rows,
            "columns": self.shape.columns,
            "seed": self.shape.seed,
            "most": self.most,
            "cells": _packed(np.stack([self.F, self.W])),
            "heaviest": _packed(
                np.stack([heavy.hashes.view(np.float64), heavy.counts, heavy.times])
            ),
        }

    @staticmethod
    def from_json(record: dict[str, Any]) -> "CostSketch":
        shape = SketchShape(record["rows"], record["columns"], record["seed"])
        F, W = _unpacked(record["cells"]).reshape(2, shape.rows, shape.columns)
        bits, counts, times = _unpacked(record["heaviest"]).reshape(3, -1)
        heaviest = Heaviest(bits.view(np.uint64), counts, times)
        return CostSketch(shape, F, W, record["most"], heaviest)


def instability(before: Floats, now: Floats) -> float:
    """η of eq. 1: how far two snapshots are apart. Cells that either has not seen are left out."""
    both = ~(np.isnan(before) | np.isnan(now))
    total = float(before[both].sum())
    return float(np.abs(before[both] - now[both]).sum()) / total if total else 0.0


def _summed(places: Columns, weights: Floats, size: int) -> Floats:
    return np.bincount(places, weights, size).astype(np.float64)


def _sparse(matrix: Floats) -> Floats | tuple[npt.NDArray[np.int32], Floats]:
    """The cells that hold something, where that is shorter than all cells."""
    cells = np.flatnonzero(matrix)
    if 2 * len(cells) > matrix.size:
        return matrix
    return cells.astype(np.int32), matrix.ravel()[cells]


def _dense(sparse: Any, shape: SketchShape) -> Floats:
    if isinstance(sparse, np.ndarray):
        return sparse
    cells, values = sparse
    matrix = np.zeros(shape.rows * shape.columns)
    matrix[cells] = values
    return matrix.reshape(shape.rows, shape.columns)


def _restored(shape: SketchShape, F: Any, W: Any, most: int, heaviest: Heaviest) -> CostSketch:
    return CostSketch(shape, _dense(F, shape), _dense(W, shape), most, heaviest)


def _packed(numbers: Floats) -> str:
    return base64.b64encode(zlib.compress(numbers.astype("<f8").tobytes(), 1)).decode()


def _unpacked(text: str) -> Floats:
    return np.frombuffer(zlib.decompress(base64.b64decode(text)), "<f8").astype(np.float64)


def _split_mix(seed: int, count: int) -> Hashes:
    """SplitMix64: numbers that are the same on every machine and in every version of numpy."""
    steps = np.arange(1, count + 1, dtype=np.uint64)
    mixed = np.uint64(seed) + steps * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))
