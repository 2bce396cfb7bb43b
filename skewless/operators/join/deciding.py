"""What a task knows of its rows without a match: whom it gives at once, whom it stores and how.

A task sees every row of a batch that its own rows may match, unless their key is shared by several
instances. So it decides at its end whatever the rows that it has seen let it decide: of a row that
its own watermark has passed, whether it has a match is final. All others are stored as undecided.
The emission asks the state for their matches once they are due (`emission.py`).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from skewless.engine.columns import DECIDED
from skewless.kernels.conditions import SetCondition
from skewless.kernels.runs import SortedRun
from skewless.operators.join.bounds import Bounds
from skewless.operators.join.how import How
from skewless.operators.join.pairing import OTHER
from skewless.routing.route import Route
from skewless.state.segment import Segment
from skewless.state.watermark import Delays

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Verdict:
    """What becomes of the rows of a side: which are given alone, and what is stored."""

    alone: npt.NDArray[np.int64]
    stored: SortedRun


@dataclass(frozen=True)
class Decision:
    """Decides on the rows that are at home on an instance, once all have come that it will see."""

    how: How
    bounds: Bounds
    delays: Delays
    route: Route
    condition: object | None
    watermark_us: int | None  # that of the batch is not below it
    is_whole: bool  # all rows of the batch are here

    def shared(self, run: SortedRun) -> Mask:
        """Which postings may have matches in this batch that the task does not see."""
        if isinstance(self.condition, SetCondition):
            return np.ones(len(run), np.bool_)
        return self.route.shares(run.hashes)

    def verdict(
        self, side: str, run: SortedRun, matched: Mask | None, earlier: Sequence[Segment]
    ) -> Verdict:
        """`matched` is by row, and None where it is not asked for; `earlier` are the segments of
        the other side from before these rows."""
        nothing = np.zeros(0, np.int64)
        if not len(run):
            return Verdict(nothing, run)
        if side not in self.how.awaited:
            return Verdict(nothing, run.kept(self._needed(side, run, earlier)))
        assert matched is not None, "asked for on sides that are awaited"
        if run.at is not None:
            # Rows with several postings may be on several instances: nobody decides alone.
            return Verdict(nothing, run)
        shared = self.shared(run)
        left = self._passed(side, run) & ~shared
        if self.how.is_semi:
            # A matched row was given, and nobody needs it any more.
            given = matched & ~shared
            return Verdict(nothing, run.kept(~(given | left)))
        decided = matched | left
        kept = ~decided | self._needed(side, run, earlier)
        if self.how.is_anti:
            kept = ~decided
        alone = np.flatnonzero(left & ~matched)
        return Verdict(alone, _noted(run, decided).kept(kept))

    def lone(self, side: str, run: SortedRun) -> Verdict:
        """The same of rows that can match nothing."""
        left = self._passed(side, run)
        return Verdict(np.flatnonzero(left), run.kept(~left))

    def _passed(self, side: str, run: SortedRun) -> Mask:
        """Which postings no later row can match."""
        keep = self.bounds.keep_from_us(self.watermark_us, self.delays)[side]
        if keep is None or not self.is_whole:
            return np.zeros(len(run), np.bool_)
        passed: Mask = run.times < keep
        return passed

    def _needed(self, side: str, run: SortedRun, earlier: Sequence[Segment]) -> Mask:
        """Which rows may be asked for again: by rows that come later, and by undecided ones."""
        plain = self.bounds.keep_from_us(self.watermark_us, self.delays)[side]
        if not self.is_whole or plain is None:
            return np.ones(len(run), np.bool_)
        other = OTHER[side]
        if other not in self.how.awaited:
            return run.times >= plain
        keep = self.bounds.keep_from_us(self.watermark_us, self.delays, awaited=self.how.awaited)[
            side
        ]
        assert keep is not None, "the other side asks for no fewer rows than later ones do"
        needed: Mask = (run.times >= keep) | self.shared(run)
        if earlier:
            # An undecided row of an earlier batch, or of an earlier piece of this one, may match.
            newest = max(s.max_time_us for s in earlier)
            needed |= run.times <= newest + self.bounds.around(other)[1]
        return needed


def _noted(run: SortedRun, decided: Mask) -> SortedRun:
    """The run with a column that says of which rows nothing is to be found out any more."""
    rows = run.rows.append_column(DECIDED, pa.array(decided))
    return SortedRun(run.hashes, run.times, rows, run.mixed_keys, run.at, run.present)
