"""Brings points and subscriptions into one stream of rows, in Spark SQL."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from skewless.engine.columns import (
    ACTION,
    ADD,
    BOX,
    IDENTITY,
    LEFT_CODE,
    REMOVE,
    RIGHT_CODE,
    SIDE,
    SNAPSHOT,
    TIME,
    UNKNOWN,
    X,
    Y,
    slot_name,
)
from skewless.runtime.dispatch import quoted

ACTIONS = {"add": ADD, "change": ADD, "remove": REMOVE, "snapshot": SNAPSHOT}
# The rectangle around a circle is a little too large: rounding must not cut off its edge.
_MARGIN = "1.000000001D"


@dataclass(frozen=True)
class PointColumns:
    """The columns of a point."""

    x: str
    y: str
    time: str | None
    slots: dict[int, str]  # slot → input column


@dataclass(frozen=True)
class QueryColumns:
    """The columns of a subscription; `shape` are those of its rectangle, circle or polygon."""

    shape: tuple[str, ...]
    id: str
    time: str | None
    action: str | None
    slots: dict[int, str]
    around: Callable[[pa.Array], tuple[pa.Array, ...]] | None = None  # the rectangles of polygons


@dataclass(frozen=True)
class SubscriptionRows:
    """Makes one frame of points and subscriptions."""

    of_points: PointColumns
    of_queries: QueryColumns
    slot_types: tuple[T.DataType, ...]
    changes: bool

    def __call__(self, points: DataFrame, queries: DataFrame) -> DataFrame:
        return self.joined(self.points(points), queries)

    def joined(self, points: DataFrame, queries: DataFrame) -> DataFrame:
        """Points that are in form already, with subscriptions that are not."""
        asked = self.queries(queries)
        kinds = {f.name: f.dataType for f in asked.schema.fields}
        kinds.update({f.name: f.dataType for f in points.schema.fields})
        sides = []
        for frame, code in ((points, LEFT_CODE), (asked, RIGHT_CODE)):
            known = frame.columns
            columns = [
                quoted(name) if name in known else F.lit(None).cast(kind).alias(name)
                for name, kind in kinds.items()
            ]
            sides.append(frame.select(F.lit(code).cast(T.ByteType()).alias(SIDE), *columns))
        return sides[0].union(sides[1])

    def points(self, frame: DataFrame) -> DataFrame:
        """The points alone."""
        of = self.of_points
        timed = [] if of.time is None else [quoted(of.time).alias(TIME)]
        return frame.select(
            quoted(of.x).cast(T.DoubleType()).alias(X),
            quoted(of.y).cast(T.DoubleType()).alias(Y),
            *timed,
            *(quoted(name).alias(slot_name(i)) for i, name in of.slots.items()),
        )

    def queries(self, frame: DataFrame) -> DataFrame:
        """The subscriptions alone."""
        of = self.of_queries
        columns = [edge.alias(name) for edge, name in zip(self._edges(), BOX, strict=True)]
        if self.changes:
            columns.append(F.xxhash64(quoted(of.id)).alias(IDENTITY))
            columns.append(self._action().cast(T.ByteType()).alias(ACTION))
        if of.time is not None:
            columns.append(quoted(of.time).alias(TIME))
        for slot, name in of.slots.items():
            value = quoted(name)
            is_double = isinstance(self.slot_types[slot], T.DoubleType)
            columns.append((value.cast("double") if is_double else value).alias(slot_name(slot)))
        return frame.select(*columns)

    def _action(self) -> Column:
        action = self.of_queries.action
        if action is None:
            return F.lit(ADD)
        found = F.lit(UNKNOWN)
        for name, code in ACTIONS.items():
            found = F.when(F.lower(F.trim(quoted(action))) == name, F.lit(code)).otherwise(found)
        return found

    def _edges(self) -> list[Column]:
        of = self.of_queries
        shape = [quoted(name) for name in of.shape]
        if of.around is not None:
            kind = T.StructType([T.StructField(name, T.DoubleType()) for name in BOX])
            arrow_udf: Any = F.arrow_udf  # its stubs know no function told by annotations
            box = arrow_udf(_Around(of.around).structs, kind)(shape[0])
            return [box[name] for name in BOX]
        if len(shape) == 4:
            return [edge.cast(T.DoubleType()) for edge in shape]
        x, y, radius = (value.cast(T.DoubleType()) for value in shape)
        reach = radius * F.expr(_MARGIN) + (F.abs(x) + F.abs(y)) * F.lit(1e-15)
        # Whoever looks at the rectangle alone must see that a circle is bad.
        bad = (radius < 0) | ~_is_finite(x) | ~_is_finite(y) | ~_is_finite(radius)
        edges = (x - reach, y - reach, x + reach, y + reach)
        return [F.when(bad, F.lit(float("nan"))).otherwise(edge) for edge in edges]


def _is_finite(value: Column) -> Column:
    """Null where the value is; Spark has NaN above all numbers."""
    return F.abs(value) < F.lit(float("inf"))


@dataclass(frozen=True)
class _Around:
    """Finds the rectangles around polygons, in a Python worker."""

    around: Callable[[pa.Array], tuple[pa.Array, ...]]

    def structs(self, column: pa.Array) -> pa.Array:
        """Spark tells by the annotations what kind of function it is."""
        return pa.StructArray.from_arrays(list(self.around(column)), list(BOX))
