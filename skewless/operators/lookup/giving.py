"""Makes output rows of rows of the stream that are given without a row of the table."""

from collections.abc import Iterator

import pyarrow as pa

from skewless.engine.chunks import bounded
from skewless.operators.lookup.terms import Terms


def alone(terms: Terms, rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Rows of the stream with nulls in place of the table's columns, in bounded pieces."""
    if not rows.num_rows:
        return
    layout, count = terms.layout, rows.num_rows
    columns = [
        rows.column(c.column) if c.side == terms.stream else pa.nulls(count, kind)
        for c, kind in zip(layout.output, terms.kinds, strict=False)
    ]
    names = [c.name for c in layout.output]
    if layout.distance is not None:
        columns.append(pa.nulls(count, pa.float64()))
        names.append(layout.distance)
    yield from bounded(pa.RecordBatch.from_arrays(columns, names=names), terms.limits)
