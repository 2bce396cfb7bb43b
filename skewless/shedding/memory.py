"""What is remembered of probing from batch to batch, and the plan that follows from it."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from skewless.load.cost import CostModel
from skewless.shedding.account import Account
from skewless.shedding.plan import Costs, ProbePlan
from skewless.shedding.policy import RandomDrop, Shed, Shedding
from skewless.shedding.ranking import Productivity, ranked
from skewless.shedding.rate import adapted
from skewless.shedding.windows import BasicWindows

Floats = npt.NDArray[np.float64]

# Before anything is measured, in milliseconds: the fixed cost of a task and that of a row without
# its probing; of comparing and giving out, and that of a comparison and a match.
_REST = (5.0, 1e-3)
_COMPARING = (5.0, 3e-5)
_GIVING = (5.0, 2e-4)
# A small batch that takes long must not make a large one look hopeless: what may be a fixed cost is
# one, as long as nothing tells it from the others.
_FIRMNESS = 5.0
# Around the tasks, what a row costs Spark is taken to be this: of the rest only the sum is known.
_AROUND_MS, _AROUND_ROW_MS = 150.0, 1e-3
# How much the newest batch counts there: what is slow once is soon forgotten.
_AROUND_SLOWER, _AROUND_FASTER = 0.3, 0.7
# The past of a cell fades more slowly: little of it is seen at a time.
_CELL_FADING = 0.8
# Batches of equal input differ by a quarter: so much of the limit is aimed at, at the most;
# and how fast it comes back after a batch that took too long.
_MOST_MARGIN, _LEAST_MARGIN = 0.75, 0.6
_BOOST = 1.1
# A task that probes less than this of its windows has nothing left to shed but rows. These are
# dropped only if they are more by this factor than in a batch that kept to the limit: else it is
# something else that takes too long.
_HARDLY, _MORE_ROWS = 0.05, 1.25
# Classes of value: the rows below the median, and so on.
_QUANTILES = (0.5, 0.8, 0.95)
# What an instance may always have of the time, beside what its work asks for.
_EQUAL_SHARE = 0.1


@dataclass(frozen=True)
class ProbingMemory:
    """What batches have shown of their time and of the cells of the window."""

    cells: int
    rest: CostModel = field(default_factory=lambda: CostModel.empty(_REST))
    around_ms: float | None = None  # what a batch takes but for its tasks and rows
    comparing: CostModel = field(default_factory=lambda: CostModel.empty(_COMPARING))
    giving: CostModel = field(default_factory=lambda: CostModel.empty(_GIVING))
    comparisons: tuple[float, ...] = ()  # per cell, of rows that were probed in full
    matches: tuple[float, ...] = ()
    values: tuple[float, ...] = ()
    value_edges: tuple[float, ...] = ()
    work: tuple[float, ...] = ()  # per instance: what a full probe would have taken, in ms
    rows: tuple[float, ...] = ()
    most_rows: float | None = None  # how many rows a batch can store; None: all that came yet
    fitting_rows: float = 0.0  # the most that a batch has stored lately within the limit
    square_ms: float = 0.0  # of a full probe, by the square of a task's rows
    margin: float = _MOST_MARGIN
    batches: int = 0

    @staticmethod
    def of(shedding: Shedding, windows: BasicWindows) -> "ProbingMemory":
        """Before the first batch."""
        has_value = isinstance(shedding, Shed) and shedding.value is not None
        return ProbingMemory(len(windows) * (len(_QUANTILES) + 1 if has_value else 1))

    def after(
        self, accounts: Sequence[Account], elapsed_ms: float | None, limit_ms: float, cores: int
    ) -> "ProbingMemory":
        """With one more batch, which will have taken so long when it is committed.

        None: it was the first of a process. That starts workers, and what it took says little.
        """
        seen = self if elapsed_ms is None else self._timed(accounts, elapsed_ms, cores)
        seen = replace(
            seen,
            comparisons=self._faded(self.comparisons, [a.cell_comparisons for a in accounts]),
            matches=self._faded(self.matches, [a.cell_matches for a in accounts]),
            values=self._faded(self.values, [a.cell_values for a in accounts]),
            value_edges=self._edges(accounts),
            batches=self.batches + 1,
        )
        if any(a.rows for a in accounts):
            made = [a.compare_ms + a.match_ms for a in accounts]
            # What was not made is taken to cost what the rest did.
            full = [
                m / max(a.fraction * a.keep**2, 1e-3) for m, a in zip(made, accounts, strict=True)
            ]
            squares = sum(a.rows**2 for a in accounts)
            seen = replace(
                seen,
                work=tuple(a.rest_ms + f for a, f in zip(accounts, full, strict=True)),
                rows=tuple(float(a.rows) for a in accounts),
                square_ms=sum(full) / squares,
            )
        if elapsed_ms is None:
            return seen
        seen = seen._with_most_rows(accounts, elapsed_ms, limit_ms)
        return seen._with_margin(elapsed_ms, limit_ms)

    def _timed(self, accounts: Sequence[Account], elapsed_ms: float, cores: int) -> "ProbingMemory":
        """With the costs that a batch has shown."""
        tasks = [a.rest_ms + a.compare_ms + a.match_ms for a in accounts]
        rows_ms = _AROUND_ROW_MS * sum(a.rows for a in accounts)
        around_ms = max(1.0, elapsed_ms - _makespan(tasks, cores) - rows_ms)
        before = around_ms if self.around_ms is None else self.around_ms
        newest = _AROUND_SLOWER if around_ms > before else _AROUND_FASTER
        return replace(
            self,
            rest=self.rest.observe(
                [a.rows for a in accounts], wall_ms=[a.rest_ms for a in accounts]
            ),
            around_ms=newest * around_ms + (1 - newest) * before,
            comparing=self.comparing.observe(
                [a.comparisons for a in accounts], wall_ms=[a.compare_ms for a in accounts]
            ),
            giving=self.giving.observe(
                [a.matches for a in accounts], wall_ms=[a.match_ms for a in accounts]
            ),
        )

    def _with_most_rows(
        self, accounts: Sequence[Account], elapsed_ms: float, limit_ms: float
    ) -> "ProbingMemory":
        """Alg. 1 on the rows that are stored: only where there is nothing left to shed but them."""
        came = sum(a.rows for a in accounts)
        stored = sum(a.keep * a.rows for a in accounts)
        if elapsed_ms <= limit_ms:
            most = None if self.most_rows is None else 1.2 * self.most_rows
            usual = came >= 0.5 * self.fitting_rows
            return replace(
                self,
                fitting_rows=max(0.95 * self.fitting_rows, stored),
                # A batch that is nearly empty says nothing of the next one.
                most_rows=None if most and 2 * came < most and usual else most,
            )
        hardly = all(a.fraction < _HARDLY for a in accounts if a.offered)
        # Where no batch has kept to the limit, nothing says that fewer rows would.
        if not (hardly and 0 < _MORE_ROWS * self.fitting_rows < stored):
            return self
        fewer = stored * adapted(1.0, fetched=limit_ms, arrived=elapsed_ms)
        return replace(self, most_rows=max(self.fitting_rows, fewer))

    def _with_margin(self, elapsed_ms: float, limit_ms: float) -> "ProbingMemory":
        """Alg. 1 on the error of the prediction: after a batch over its limit aim lower."""
        margin = adapted(self.margin, fetched=limit_ms, arrived=elapsed_ms, boost=_BOOST)
        return replace(self, margin=min(_MOST_MARGIN, max(_LEAST_MARGIN, margin)))

    def _faded(
        self, before: tuple[float, ...], seen: Sequence[Sequence[float]]
    ) -> tuple[float, ...]:
        now = [np.array(s) for s in seen if len(s) == self.cells]
        old = np.array(before) if len(before) == self.cells else np.zeros(self.cells)
        if not any(n.any() for n in now):
            return tuple(old.tolist())
        return tuple((_CELL_FADING * old + np.sum(now, axis=0)).tolist())

    def _edges(self, accounts: Sequence[Account]) -> tuple[float, ...]:
        """Between the classes of value. They stay once they are known: cells must mean the same."""
        sample = [value for a in accounts for value in a.values]
        if self.value_edges or not sample:
            return self.value_edges
        return tuple(np.quantile(sample, _QUANTILES).tolist())

    @property
    def costs(self) -> Costs:
        task, row = self.rest.costs_ms(_FIRMNESS)
        comparing, comparison = self.comparing.costs_ms(_FIRMNESS)
        giving, match = self.giving.costs_ms(_FIRMNESS)
        fixed = task + comparing + giving
        around = _AROUND_MS if self.around_ms is None else self.around_ms
        return Costs(fixed, row, comparison, match, around, _AROUND_ROW_MS)

    def plan(
        self,
        shedding: Shedding,
        windows: BasicWindows,
        *,
        instances: int,
        cores: int,
        limit_ms: float,
        batch: int,
    ) -> ProbePlan:
        """What the tasks of the next batch are told."""
        compared, matched, worth = (
            np.array(known) if known else np.zeros(self.cells)
            for known in (self.comparisons, self.matches, self.values)
        )
        costs = self.costs
        work_ms = compared * costs.comparison + matched * costs.match
        parallel = np.ones(instances)
        if instances > cores:
            wanted = (1 - _EQUAL_SHARE) * _shares(self.work, instances) + _EQUAL_SHARE / instances
            parallel = np.minimum(1.0, cores * wanted)
        rates = np.zeros(self.cells)
        np.divide(matched, compared, out=rates, where=compared > 0)
        mean = float(matched.sum() / compared.sum()) if compared.any() else 1.0
        return ProbePlan(
            windows=windows,
            order=tuple(self._order(windows, work_ms, worth).tolist()),
            match_rates=tuple(np.where(compared > 0, rates, mean).tolist()),
            value_edges=self.value_edges if self.cells > len(windows) else (),
            costs=costs,
            time_ms=self.margin * limit_ms if self.batches else None,
            parallel=tuple(parallel.tolist()),
            row_shares=tuple(_shares(self.rows, instances).tolist()),
            sample=shedding.sample if isinstance(shedding, Shed) else 1.0,
            batch=batch,
            most_rows=self.most_rows,
            square_ms=self.square_ms if isinstance(shedding, RandomDrop) else None,
        )

    def _order(
        self, windows: BasicWindows, work_ms: Floats, worth: Floats
    ) -> npt.NDArray[np.int64]:
        """The cells, those that give most for a millisecond first; among equals the newest."""
        newest = windows.newest_first()
        classes = self.cells // len(windows)
        # The most valuable rows come last among the classes.
        tie = np.concatenate([newest + c * len(windows) for c in reversed(range(classes))])
        expected = Productivity(work_ms, np.where(work_ms > 0, worth, 0.0)).expected
        # Sums that should be equal are not to the last digit.
        rounded = np.round(expected / max(float(expected.max()), 1e-300), 6)
        return tie[ranked(Productivity(np.ones(self.cells), rounded[tie]))]

    def to_json(self) -> dict[str, Any]:
        return {
            "cells": self.cells,
            "rest": self.rest.to_json(),
            "aroundMs": self.around_ms,
            "comparing": self.comparing.to_json(),
            "giving": self.giving.to_json(),
            "comparisons": _rounded(self.comparisons),
            "matches": _rounded(self.matches),
            "values": _rounded(self.values),
            "valueEdges": list(self.value_edges),
            "work": _rounded(self.work),
            "rows": _rounded(self.rows),
            "mostRows": self.most_rows,
            "fittingRows": round(self.fitting_rows, 1),
            "squareMs": self.square_ms,
            "margin": self.margin,
            "batches": self.batches,
        }

    @staticmethod
    def from_json(record: dict[str, Any]) -> "ProbingMemory":
        return ProbingMemory(
            cells=record["cells"],
            rest=CostModel.from_json(record["rest"], _REST),
            around_ms=record["aroundMs"],
            comparing=CostModel.from_json(record["comparing"], _COMPARING),
            giving=CostModel.from_json(record["giving"], _GIVING),
            comparisons=tuple(record["comparisons"]),
            matches=tuple(record["matches"]),
            values=tuple(record["values"]),
            value_edges=tuple(record["valueEdges"]),
            work=tuple(record["work"]),
            rows=tuple(record["rows"]),
            most_rows=record["mostRows"],
            fitting_rows=record["fittingRows"],
            square_ms=record["squareMs"],
            margin=record["margin"],
            batches=record["batches"],
        )


def _shares(amounts: Sequence[float], instances: int) -> Floats:
    """What part each instance has; equal parts where nothing is known of so many."""
    if len(amounts) != instances or not sum(amounts):
        return np.full(instances, 1 / instances)
    return np.array(amounts) / sum(amounts)


def _rounded(numbers: Sequence[float]) -> list[float]:
    return [float(f"{n:.6g}") for n in numbers]


def _makespan(tasks_ms: Sequence[float], cores: int) -> float:
    """How long so many cores are busy with tasks that start heaviest first."""
    ends = np.zeros(max(1, cores))
    for ms in sorted(tasks_ms, reverse=True):
        ends[ends.argmin()] += ms
    return float(ends.max())
