"""What tasks are told of shedding: how long they may take, and which windows to probe first."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from skewless.shedding.windows import BasicWindows

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

# Of a task's time at least this share is for probing: something must be found, and learned.
LEAST_PROBING = 0.05
# A share of rows that a task expects at the least, beside an equal one: it divides by it.
_LEAST_SHARE = 0.1


@dataclass(frozen=True)
class Costs:
    """Milliseconds: of a task, a row, a comparison and a match; of a batch around its tasks."""

    task: float
    row: float
    comparison: float
    match: float
    batch: float
    batch_row: float


@dataclass(frozen=True)
class Selection:
    """Which cells a task probes.

    All rows probe the cells that are `kept`. `fraction` is what part of a full probe's work that is
    to be, with the rows that are probed in full for the sake of learning: each with this `chance`.
    """

    kept: Flags
    marginal: int | None  # the cell that only some rows probe: as many as time is left for
    fraction: float
    chance: float

    @property
    def is_everything(self) -> bool:
        return self.fraction >= 1.0


@dataclass(frozen=True)
class ProbePlan:
    """How the tasks of a batch decide what to probe: they know their rows, the driver does not.

    A function of the commit before the batch and of a task's rows, and of no clock: a replay
    decides the same. Cells are basic windows, one line of them per class of value.
    """

    windows: BasicWindows
    order: tuple[int, ...]  # cells, the most productive first
    match_rates: tuple[float, ...]  # per cell: matches per comparison
    value_edges: tuple[float, ...]  # between the classes of value
    costs: Costs
    time_ms: float | None  # what a batch may take; None: too little is known yet
    parallel: tuple[float, ...]  # per instance: how much of a core it has on the average
    row_shares: tuple[float, ...]  # per instance: of all rows
    sample: float
    batch: int
    most_rows: float | None = None  # how many rows a batch can store; None: all
    # Where rows are dropped instead: milliseconds of probing by the square of a task's rows.
    square_ms: float | None = None

    @property
    def classes(self) -> int:
        return len(self.value_edges) + 1

    def allowance_ms(self, instance: int, rows: int) -> float | None:
        """How long the task of an instance may take that has so many rows; None: no limit."""
        if self.time_ms is None:
            return None
        # Shares are those of the last batch; a route may have changed since.
        of_batch = min(rows / self._share(instance), rows * len(self.row_shares))
        around = self.costs.batch + self.costs.batch_row * of_batch
        # However slow the rest is: with no time at all nothing could be learned.
        return max(LEAST_PROBING * self.time_ms, self.time_ms - around) * self.parallel[instance]

    def _share(self, instance: int) -> float:
        """The part of a batch's rows that an instance is likely to have."""
        return max(self.row_shares[instance], _LEAST_SHARE / len(self.row_shares))

    def keep(self, instance: int, rows: int) -> float:
        """The share of a task's rows that are stored at all."""
        if not rows:
            return 1.0
        if self.square_ms is None:
            most = None if self.most_rows is None else self.most_rows * self._share(instance)
            return 1.0 if most is None else min(1.0, most / rows)
        full = self.square_ms * rows * rows
        allowed = self.allowance_ms(instance, rows)
        if allowed is None or not full:
            return 1.0
        left = max(LEAST_PROBING * allowed, self._left(allowed, rows))
        return min(1.0, float((left / full) ** 0.5))

    def budget_ms(self, instance: int, rows: int, kept: float) -> float | None:
        """How long a task may compare and give out, where it stores this share of its rows."""
        allowed = self.allowance_ms(instance, rows)
        if allowed is None or self.square_ms is not None:
            return None
        assert self.time_ms is not None, "there is an allowance"
        least = LEAST_PROBING * self.time_ms * self.parallel[instance]
        return max(least, self._left(allowed, rows * kept))

    def _left(self, allowed_ms: float, rows: float) -> float:
        return allowed_ms - self.costs.task - self.costs.row * rows

    @property
    def cell_ms(self) -> Floats:
        """What a comparison in each cell costs, with the matches that it is likely to give."""
        return self.costs.comparison + self.costs.match * np.array(self.match_rates)

    def select(self, budget_ms: float | None, counts: Floats) -> Selection:
        """The best cells that the budget allows; `counts` are comparisons to be made in each.

        With a fraction r of the time of a full probe, a row is probed in full with a chance of
        r·sample (Alg. 2), and what is left goes to the cells in their order (Alg. 3). Cells of both
        directions stand in one order, so that the better direction gets what the other gives up
        (Alg. 4, where both may be good in part).
        """
        work = counts * self.cell_ms
        full = float(work.sum())
        everything = np.ones(len(counts), np.bool_)
        if budget_ms is None or full <= budget_ms:
            return Selection(everything, None, 1.0, self.sample)
        fraction = budget_ms / full
        chance = fraction * self.sample
        left = (budget_ms - chance * full) / (1 - chance)
        order = np.array(self.order)
        upto = np.cumsum(work[order])
        whole = int(np.searchsorted(upto, left, side="right"))
        kept = np.zeros(len(counts), np.bool_)
        kept[order[:whole]] = True
        marginal = int(order[whole]) if whole < len(order) else None
        return Selection(kept, marginal, fraction, chance)
