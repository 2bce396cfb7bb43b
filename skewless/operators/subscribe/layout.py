"""How points and subscriptions share one set of columns on their way to the tasks."""

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from skewless.engine.columns import ACTION, BOX, IDENTITY, TIME, X, Y
from skewless.operators.subscribe.shapes import Shape

POINTS, QUERIES = "points", "queries"
SIDES = (POINTS, QUERIES)


@dataclass(frozen=True)
class OutputColumn:
    """Where an output column comes from: the point or the subscription, and which column of it."""

    name: str
    side: str
    column: str


@dataclass(frozen=True)
class Layout:
    """The columns that a point and a subscription travel in, and those of the result."""

    output: tuple[OutputColumn, ...]
    shape: Shape
    point_slots: tuple[str, ...]
    query_slots: tuple[str, ...]
    id: str  # the column in which the subscription's id travels
    changes: bool  # subscriptions come and go, known by their id
    # Per side: (column of the input, where it travels), for messages and for rows that are dropped.
    inputs: Mapping[str, tuple[tuple[str, str], ...]]

    def as_input(self, side: str, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Rows of a side under the names that its user knows."""
        columns = dict(self.inputs[side])
        return pa.RecordBatch.from_arrays(
            [rows.column(c) for c in columns.values()], names=list(columns)
        )

    @property
    def stored_queries(self) -> tuple[str, ...]:
        """What is kept of a subscription, besides the batch that brought it."""
        known_by = (IDENTITY, ACTION) if self.changes else ()
        return (*BOX, *known_by, *self.query_slots)

    @property
    def stored_points(self) -> tuple[str, ...]:
        """What is kept of a point, where past points are asked for."""
        return (TIME, X, Y, *self.point_slots)
