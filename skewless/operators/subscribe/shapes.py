"""What can be subscribed to. A rectangle around it is looked up first, then the shape is exact."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from skewless.kernels.ordering import IndexArray

Reals = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]


class Shape(ABC):
    """The shape of subscriptions; `columns` of the stored rows describe it."""

    columns: tuple[str, ...] = ()
    is_rectangle: bool = False
    bad: str  # why a row is bad, where the shape makes it so

    @abstractmethod
    def holds(
        self,
        rows: pa.RecordBatch,
        at: IndexArray,
        x: Reals,
        y: Reals,
        read: "ReadShapes | None" = None,
    ) -> Mask:
        """Which of these points are inside the shapes of these rows, or on their edge.

        Each point is inside the rectangle around its shape. `read` are shapes of the same rows that
        were asked about before.
        """

    def flawed(self, rows: pa.RecordBatch) -> Mask:
        """Rows whose shape is not valid, although the rectangle around it may be."""
        return np.zeros(rows.num_rows, np.bool_)


@dataclass(frozen=True)
class RectangleShape(Shape):
    """The rectangle itself."""

    is_rectangle: bool = True
    bad: str = "its rectangle is inverted, or has an edge that is null or NaN"

    def holds(
        self,
        rows: pa.RecordBatch,
        at: IndexArray,
        x: Reals,
        y: Reals,
        read: "ReadShapes | None" = None,
    ) -> Mask:
        return np.ones(len(at), np.bool_)


@dataclass(frozen=True)
class CircleShape(Shape):
    """All points at most `radius` away from a centre."""

    columns: tuple[str, str, str]  # x, y, radius
    bad: str = "its circle has a centre or a radius that is null, NaN or infinite, or below 0"

    def holds(
        self,
        rows: pa.RecordBatch,
        at: IndexArray,
        x: Reals,
        y: Reals,
        read: "ReadShapes | None" = None,
    ) -> Mask:
        centre_x, centre_y, radius = (rows.column(c).to_numpy()[at] for c in self.columns)
        inside: Mask = (x - centre_x) ** 2 + (y - centre_y) ** 2 <= radius**2
        return inside

    def flawed(self, rows: pa.RecordBatch) -> Mask:
        values = [rows.column(c).to_numpy(zero_copy_only=False) for c in self.columns]
        finite = np.isfinite(np.array(values, np.float64)).all(axis=0)
        flawed: Mask = ~finite | ~(values[2] >= 0)
        return flawed


@dataclass(frozen=True)
class PolygonShape(Shape):
    """Polygons as text (WKT) or binary (WKB), exact by shapely."""

    columns: tuple[str]
    bad: str = "its polygon is null, cannot be read, or is not a valid polygon"

    def holds(
        self,
        rows: pa.RecordBatch,
        at: IndexArray,
        x: Reals,
        y: Reals,
        read: "ReadShapes | None" = None,
    ) -> Mask:
        import shapely

        read = ReadShapes(rows.num_rows) if read is None else read
        shapes = read.of(rows.column(self.columns[0]), at)
        inside: Mask = shapely.intersects_xy(shapes, x, y)
        return inside


class ReadShapes:
    """The polygons of some rows that were asked about: reading one takes longer than asking it."""

    def __init__(self, rows: int, at_most: int = 100_000) -> None:
        self._at_most = at_most  # a polygon that is prepared takes kilobytes
        self._shapes = np.full(rows, None, object)
        self._is_read = np.zeros(rows, np.bool_)

    def of(self, column: pa.Array, at: IndexArray) -> Any:
        """Shapely's geometries of these rows, ready to be asked."""
        import shapely

        new = np.unique(at[~self._is_read[at]])
        if len(new) and int(self._is_read.sum()) + len(new) > self._at_most:
            self._shapes[:], self._is_read[:] = None, False
            new = np.unique(at)
        if len(new):
            shapes = _read(column.take(pa.array(new)))
            shapely.prepare(shapes)
            self._shapes[new], self._is_read[new] = shapes, True
        return self._shapes[at]


def _read(column: pa.Array) -> Any:
    """An array of shapely's geometries; None where there is none."""
    import shapely

    values = column.to_numpy(zero_copy_only=False)
    kind = column.type
    is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    read = shapely.from_wkt if is_text else shapely.from_wkb
    return read(values, on_invalid="ignore")


def polygons(column: pa.Array) -> Any:
    """An array of shapely's polygons; None where there is no valid one."""
    import shapely

    shapes = _read(column)
    polygonal = np.isin(shapely.get_type_id(shapes), _POLYGONAL)
    usable = polygonal & shapely.is_valid(shapes) & ~shapely.is_empty(shapes)
    return np.where(usable, shapes, None)


def bounds_of(column: pa.Array) -> tuple[pa.Array, ...]:
    """The rectangles around polygons: x_min, y_min, x_max, y_max; NaN where there is none."""
    import shapely

    edges = shapely.bounds(polygons(column))
    return tuple(pa.array(np.ascontiguousarray(edges[:, i])) for i in range(4))


_POLYGONAL = (3, 6)  # shapely.GeometryType: POLYGON, MULTIPOLYGON
