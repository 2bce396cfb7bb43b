"""Makes output rows of pairs of rows."""

from collections.abc import Iterator
from typing import Protocol

import pyarrow as pa

from skewless.engine.chunks import Limits, bounded
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


def alone(layout: Layout, side: str, rows: pa.RecordBatch, chosen: IndexArray) -> pa.RecordBatch:
    """Rows of a side that are given without a match: the columns of the other side are null."""
    at = pa.array(chosen)
    columns = [
        rows.column(c.column).take(at)
        if c.side == side or layout.is_key(c)
        else pa.nulls(len(chosen), kind)
        for c, kind in zip(layout.output, layout.types, strict=False)
    ]
    names = [c.name for c in layout.output]
    if layout.distance is not None:
        columns.append(pa.nulls(len(chosen), pa.float64()))
        names.append(layout.distance)
    return pa.RecordBatch.from_arrays(columns, names=names)


def given_alone(
    layout: Layout, side: str, rows: pa.RecordBatch, chosen: IndexArray, limits: Limits
) -> Iterator[pa.RecordBatch]:
    """The same in bounded pieces."""
    for begin in range(0, len(chosen), limits.chunk_rows):
        some = alone(layout, side, rows, chosen[begin : begin + limits.chunk_rows])
        yield from bounded(some, limits)


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
