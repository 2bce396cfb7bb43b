"""Sessions across segments: which are closed, and what must be carried on."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from skewless.kernels.lookup import rows_of_hashes
from skewless.kernels.runs import SortedRun, concatenate
from skewless.operators.keyed.layout import DUE
from skewless.operators.keyed.summary import Summary, taken
from skewless.routing.partitions import PartitionTable


@dataclass(frozen=True)
class Due:
    """What an instance has to look at: rows of its partitions, due after one moment up to another;
    what is due at the first or before is dead."""

    table: PartitionTable
    instance: int
    after_us: int | None
    until_us: int

    def chosen(self, run: SortedRun) -> npt.NDArray[np.int64]:
        """The rows of a run that are due, by their place."""
        due = run.times <= self.until_us
        if self.after_us is not None:
            due &= run.times > self.after_us
        at = np.flatnonzero(due)
        return at[self.table.route(run.hashes[at]) == self.instance]


def carried(summary: Summary, runs: Sequence[SortedRun], due: Due) -> SortedRun | None:
    """What the stored sessions that are due leave to the longer sessions they are part of.

    A stored stretch dies when its own end is reached. If rows of other segments have drawn its
    session out, its sums would die with it: they are written anew, due at the end of the session.
    """
    members = _members_of_due(runs, due)
    if members is None:
        return None
    chains, ends = summary.chains_of(members)
    end_of = np.empty(len(members), np.int64)
    end_of[chains.order] = ends[chains.ids]
    dying = (members.times <= due.until_us) & (end_of > due.until_us)
    if not dying.any():
        return None
    at = np.flatnonzero(dying)
    moved = members.rows.take(pa.array(at))
    place = moved.schema.get_field_index(DUE)
    moved = moved.set_column(place, DUE, pa.array(end_of[at]))
    # All of a session overlap now, because they end together.
    return summary.merged([SortedRun(members.hashes[at], end_of[at], moved, members.mixed_keys)])


def closed(summary: Summary, runs: Sequence[SortedRun], due: Due) -> SortedRun | None:
    """The sessions that are due."""
    members = _members_of_due(runs, due)
    if members is None:
        return None
    merged = summary.merged([members])
    return merged.kept(merged.times <= due.until_us)


def _members_of_due(runs: Sequence[SortedRun], due: Due) -> SortedRun | None:
    """All stored rows, not dead, of the hashes that have a row due; in no order."""
    hashes = [run.hashes[due.chosen(run)] for run in runs]
    if not any(len(h) for h in hashes):
        return None
    wanted = np.unique(np.concatenate(hashes))
    found = [taken(run, rows_of_hashes(wanted, run, due.after_us)) for run in runs]
    return SortedRun(
        np.concatenate([r.hashes for r in found]),
        np.concatenate([r.times for r in found]),
        concatenate([r.rows for r in found]),
        any(r.mixed_keys for r in found),
    )
