"""Tiles in Spark SQL: points to the instance of their cell, subscriptions to all that they reach.

`skewless.routing.tiles` in SQL. A map of many cells is three short arrays: its bands.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from pyspark.sql import DataFrame

from skewless.engine.columns import (
    BOX,
    IDENTITY,
    INSTANCE,
    LEFT_CODE,
    ORDER,
    REPLICA,
    RIGHT_CODE,
    SIDE,
    X,
    Y,
)
from skewless.routing.cells import CellGrid
from skewless.routing.tiles import Bands, TileRoute
from skewless.runtime.constants import constants, scaled

# Columns on the way: the home of a subscription, and the bands that it covers.
_HOME = "home"
_TOP, _LEFT, _BOTTOM, _RIGHT = "top_band", "left_band", "bottom_band", "right_band"


def tile_visits(
    batch: DataFrame, route: TileRoute, spread_columns: Sequence[str]
) -> tuple[DataFrame, str]:
    """The rows as they go to instances, and the SQL expression that names the instance.

    Subscriptions that may change later carry an identity: all instances hear of them, because only
    the identity says which earlier one they replace. Others go to the tiles that they reach.
    """
    sql = _TileSql(route)
    spread = f"xxhash64({', '.join(spread_columns)})" if spread_columns else "0L"
    if SIDE not in batch.columns:
        return batch, sql.point(spread)
    points = batch.where(f"{SIDE} = {LEFT_CODE}")
    points = points.selectExpr("*", f"{sql.point(spread)} AS {INSTANCE}")
    asked = batch.where(f"{SIDE} = {RIGHT_CODE}")
    home = sql.owner(*BOX[:2])
    if IDENTITY in batch.columns:
        # Where a subscription ends, its rectangle may be missing.
        anywhere = f"CAST({scaled(IDENTITY, route.instances)} AS INT)"
        # Of several rows with the same id in a batch the last one counts.
        order = f"monotonically_increasing_id() AS {ORDER}"
        asked = asked.selectExpr("*", f"coalesce({home}, {anywhere}) AS {_HOME}", order)
        reached = f"CAST(sequence(0, {route.instances - 1}) AS ARRAY<INT>)"
    else:
        asked = asked.selectExpr("*", f"coalesce({home}, 0) AS {_HOME}", *sql.bands(*BOX))
        reached = f"array_union(array({_HOME}), coalesce({sql.reached()}, array()))"
    asked = asked.selectExpr("*", f"explode({reached}) AS {INSTANCE}")
    marked = f"CAST({SIDE} + IF({INSTANCE} = {_HOME}, 0, {REPLICA}) AS TINYINT) AS {SIDE}"
    others = [c for c in asked.columns if c in (*batch.columns, ORDER) and c != SIDE]
    told = asked.selectExpr(marked, *others, INSTANCE)
    return told.unionByName(points, allowMissingColumns=True), INSTANCE


def column_of(grid: CellGrid, x: str) -> str:
    """`CellGrid.columns` of an SQL expression."""
    return _place(grid, x, grid.bounds[0], grid.scales[0])


def row_of(grid: CellGrid, y: str) -> str:
    """`CellGrid.rows` of an SQL expression."""
    return _place(grid, y, grid.bounds[1], grid.scales[1])


def _place(grid: CellGrid, value: str, least: float, scale: float) -> str:
    # The same operations on the same doubles as in numpy, so the same cells.
    place = f"({value} - {least!r}D) * {scale!r}D"
    # Cut off before it is rounded: Spark refuses to round infinity. NaN is more than any number.
    return f"CAST(floor(least(greatest({place}, 0D), {grid.side - 0.5}D)) AS INT)"


@dataclass(frozen=True)
class _TileSql:
    route: TileRoute

    def point(self, spread: str) -> str:
        """The instance of a point; one without coordinates may go anywhere."""
        member = self.owner(X, Y) if not self.route.spreads else self._member(spread)
        return f"coalesce({member}, CAST({scaled(spread, self.route.instances)} AS INT))"

    def owner(self, x: str, y: str) -> str:
        """The owner of the tile at a place."""
        owners = [self.route.tiles[tile].members[0] for tile in self._bands.tiles]
        return f"get({constants(owners)}, {self._at(x, y)})"

    def bands(self, x_min: str, y_min: str, x_max: str, y_max: str) -> list[str]:
        """The columns that `reached` needs."""
        ends = {_LEFT: x_min, _RIGHT: x_max}
        told = [f"{self._column_band(x)} AS {name}" for name, x in ends.items()]
        rows = {_TOP: y_min, _BOTTOM: y_max}
        return [*told, *(f"{self._row_band(y)} AS {name}" for name, y in rows.items())]

    def reached(self) -> str:
        """The instances of all tiles between the bands; null where the bands are."""
        width = self._bands.width
        members = [",".join(map(str, self.route.tiles[tile].members)) for tile in self._bands.tiles]
        named = f"split('{';'.join(members)}', ';')"
        # An inverted rectangle reaches nothing.
        count = f"greatest({_RIGHT} - {_LEFT} + 1, 0)"
        line = f"slice({named}, r * {width} + {_LEFT} + 1, {count})"
        lines = f"flatten(transform(sequence({_TOP}, greatest({_BOTTOM}, {_TOP})), r -> {line}))"
        each = f"flatten(transform(array_distinct({lines}), m -> split(m, ',')))"
        return f"CAST({each} AS ARRAY<INT>)"

    def _member(self, spread: str) -> str:
        """One of the instances of the tile, chosen by the row's spread value."""
        at = self._at(X, Y)
        tiles = self.route.tiles
        begins = list(accumulate((len(tile.members) for tile in tiles), initial=0))
        size = f"get({constants([len(tiles[tile].members) for tile in self._bands.tiles])}, {at})"
        begin = f"get({constants([begins[tile] for tile in self._bands.tiles])}, {at})"
        members = constants([m for tile in tiles for m in tile.members])
        return f"get({members}, CAST({begin} + {scaled(spread, size)} AS INT))"

    def _at(self, x: str, y: str) -> str:
        return f"{self._row_band(y)} * {self._bands.width} + {self._column_band(x)}"

    def _column_band(self, x: str) -> str:
        return f"get({constants(self._bands.columns)}, {column_of(self.route.grid, x)})"

    def _row_band(self, y: str) -> str:
        return f"get({constants(self._bands.rows)}, {row_of(self.route.grid, y)})"

    @property
    def _bands(self) -> Bands:
        return self.route.bands
