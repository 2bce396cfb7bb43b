"""Checks the columns of a join by distance, and makes of them what Spark and the tasks need."""

from dataclasses import dataclass
from typing import Any

from skewless.engine.columns import POINT_X, POINT_Y
from skewless.errors import SkewlessError
from skewless.kernels.near import NearCondition
from skewless.operators.join.choosing import KNearest
from skewless.operators.join.layout import Layout
from skewless.operators.join.near import Near, Nearest
from skewless.runtime import types
from skewless.runtime.cells import CellRows
from skewless.runtime.dispatch import SideColumns
from skewless.runtime.inputs import Input

_Names = tuple[str, str]


@dataclass(frozen=True)
class PointColumns:
    """The columns of both sides' points."""

    match: Near | Nearest
    left: _Names
    right: _Names
    casts: bool  # some are not doubles

    @staticmethod
    def of(inputs: tuple[Input, Input], match: Near | Nearest) -> "PointColumns":
        names: list[_Names] = []
        kinds: list[Any] = []
        for given, point in zip(inputs, match.points, strict=True):
            x, y = (given.resolve("match", name) for name in point)
            for name in (x, y):
                kind = given.type_of(name)
                if not types.is_number(kind):
                    raise SkewlessError(
                        f"match: {given.argument} column {name!r} is {kind.simpleString()}; "
                        f"sk.{type(match).__name__} takes columns of numbers"
                    )
                kinds.append(kind)
            names.append((x, y))
        return PointColumns(match, names[0], names[1], not all(map(types.is_double, kinds)))

    def described(self) -> dict[str, Any]:
        """For the query's fingerprint."""
        unit = "radius" if self.match.metres is None else "metres"
        found: dict[str, Any] = {
            "kind": "nearest" if isinstance(self.match, Nearest) else "distance",
            "columns": [", ".join(self.left), ", ".join(self.right)],
            unit: self.match.metric.reach,
        }
        if isinstance(self.match, Nearest):
            found["k"] = int(self.match.k)
        return found if self.match.distance is None else {**found, "distance": self.match.distance}

    @property
    def compared(self) -> tuple[str, ...]:
        return (POINT_X, POINT_Y) if self.casts else ()

    def hash_is_key(self, keys: list[Any]) -> bool:
        return False

    def condition(self, layout: Layout, left: SideColumns, right: SideColumns) -> NearCondition:
        """What the tasks check."""
        points = [(POINT_X, POINT_Y)] * 2 if self.casts else self._travelling(left, right)
        return NearCondition(
            self.match.metric, points[0], points[1], self.match.cells.most, layout.key_columns
        )

    @property
    def chooser(self) -> KNearest | None:
        """Who chooses of the rows that match; None: all are given."""
        return KNearest(int(self.match.k)) if isinstance(self.match, Nearest) else None

    def rows(self, layout: Layout, left: SideColumns, right: SideColumns) -> CellRows:
        """What Spark adds to the rows."""
        points = self._travelling(left, right)
        cells = self.match.cells
        return CellRows(cells, points[0], points[1], layout.key_columns, self.casts)

    def _travelling(self, left: SideColumns, right: SideColumns) -> list[_Names]:
        """Where the coordinates of both sides are in the common stream."""
        return [
            (side.travels_as(names[0]), side.travels_as(names[1]))
            for side, names in ((left, self.left), (right, self.right))
        ]
