"""Makes output rows of pairs of rows."""

from typing import Protocol

import pyarrow as pa

from skewless.kernels.distance import Floats
from skewless.kernels.ordering import IndexArray
from skewless.kernels.runs import SortedRun
from skewless.operators.join.bounds import LEFT, RIGHT
from skewless.operators.join.layout import Layout

OTHER = {LEFT: RIGHT, RIGHT: LEFT}


class Measure(Protocol):
    """Tells how far apart rows of two runs are."""

    def distances(
        self, needles: SortedRun, stored: SortedRun, mine: IndexArray, theirs: IndexArray
    ) -> Floats: ...


def paired(
    layout: Layout,
    side: str,
    needles: SortedRun,
    stored: SortedRun,
    mine: IndexArray,
    theirs: IndexArray,
    measure: Measure | None = None,
) -> pa.RecordBatch:
    """The pairs of needles of a side and stored rows of the other, by their row numbers."""
    index = {side: pa.array(mine), OTHER[side]: pa.array(theirs)}
    rows = {side: needles.rows, OTHER[side]: stored.rows}
    columns = [rows[c.side].column(c.column).take(index[c.side]) for c in layout.output]
    names = [c.name for c in layout.output]
    if layout.distance is not None:
        assert measure is not None, "only a join by distance gives distances"
        columns.append(pa.array(measure.distances(needles, stored, mine, theirs)))
        names.append(layout.distance)
    return pa.RecordBatch.from_arrays(columns, names=names)
