"""Tiles in Spark SQL: points to the instance of their cell, subscriptions to all that they reach.

`skewless.routing.tiles` in SQL. A map of many cells is three short arrays: its bands.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate

from pyspark.sql import DataFrame

from skewless.engine.columns import (
    ACTION,
    ADD,
    BOX,
    IDENTITY,
    INSTANCE,
    LEFT_CODE,
    ORDER,
    REMOVE,
    REPLICA,
    SIDE,
    SNAPSHOT,
    TIME,
    X,
    Y,
)
from skewless.routing.cells import CellGrid
from skewless.routing.tiles import Bands, TileRoute
from skewless.runtime.constants import constants, scaled

# Columns on the way: the home of a subscription, its bands, and the instances that get all of it.
_HOME, _WHOLE = "home", "whole"
_TOP, _LEFT, _BOTTOM, _RIGHT = "top_band", "left_band", "bottom_band", "right_band"


def tile_visits(
    batch: DataFrame, route: TileRoute, spread_columns: Sequence[str], id_column: str | None = None
) -> tuple[DataFrame, str]:
    """The rows as they go to instances, and the SQL expression that names the instance.

    Subscriptions go to the tiles that they reach. Those that may change later carry an identity,
    and `id_column` has their id: all other instances hear that what they know by this id has ended.
    """
    sql = _TileSql(route)
    spread = f"xxhash64({', '.join(spread_columns)})" if spread_columns else "0L"
    if SIDE not in batch.columns:
        return batch, sql.point(spread)
    is_point = f"{SIDE} = {LEFT_CODE}"
    changes = IDENTITY in batch.columns
    # Where a subscription ends, its rectangle may be missing.
    anywhere = f"CAST({scaled(IDENTITY, route.instances)} AS INT)" if changes else "0"
    owner = f"coalesce({sql.owner(*BOX[:2])}, {anywhere})"
    home = f"IF({is_point}, {sql.point(spread)}, {owner}) AS {_HOME}"
    # Of several rows with the same id in a batch the last one counts.
    order = [f"monotonically_increasing_id() AS {ORDER}"] if changes else []
    # One pass over the rows: whatever made them must not run twice.
    sent = batch.selectExpr("*", home, *order, *sql.bands(*BOX, unless=is_point))
    alone = f"coalesce({is_point} OR {sql.is_within_a_tile()}, false)"
    some = f"array_union(array({_HOME}), coalesce({sql.reached()}, array()))"
    sent = sent.selectExpr("*", f"IF({alone}, array({_HOME}), {some}) AS {_WHOLE}")
    goes = _WHOLE
    if changes:
        everywhere = f"CAST(sequence(0, {route.instances - 1}) AS ARRAY<INT>)"
        # Past points are asked for where they are.
        goes = f"IF({is_point} OR {ACTION} = {SNAPSHOT}, {_WHOLE}, {everywhere})"
    sent = sent.selectExpr("*", f"explode({goes}) AS {INSTANCE}")
    told = {c: c for c in (*batch.columns, *([ORDER] if changes else [])) if c != SIDE}
    if changes:
        assert id_column is not None, "what changes is known by its id"
        told |= _shortened(told, id_column, is_point)
    marked = f"CAST({SIDE} + IF({INSTANCE} = {_HOME}, 0, {REPLICA}) AS TINYINT) AS {SIDE}"
    columns = [f"{value} AS {name}" for name, value in told.items()]
    return sent.selectExpr(marked, *columns, INSTANCE), INSTANCE


def _shortened(columns: Iterable[str], id_column: str, is_point: str) -> dict[str, str]:
    """What an instance hears of a change elsewhere: that what it knows by this id has ended.

    A bad row changes nothing, anywhere. So it goes everywhere as a whole, and all judge the same.
    """
    proper = " AND ".join(
        [f"NOT isnan({edge})" for edge in BOX] + [f"{BOX[n]} <= {BOX[n + 2]}" for n in (0, 1)]
    )
    good = f"{ACTION} = {REMOVE} OR ({ACTION} = {ADD} AND {proper})"
    short = f"{id_column} IS NOT NULL AND coalesce({good}, false)"
    whole = f"{is_point} OR array_contains({_WHOLE}, {INSTANCE}) OR NOT ({short})"
    kept = (IDENTITY, ORDER, TIME, id_column)
    told = {c: f"IF({whole}, {c}, NULL)" for c in columns if c not in kept}
    return {**told, ACTION: f"IF({whole}, {ACTION}, CAST({REMOVE} AS TINYINT))"}


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

    def bands(self, x_min: str, y_min: str, x_max: str, y_max: str, unless: str) -> list[str]:
        """The columns that `reached` needs; null for rows that do not need them."""
        bands = {_LEFT: self._column_band(x_min), _RIGHT: self._column_band(x_max)}
        bands |= {_TOP: self._row_band(y_min), _BOTTOM: self._row_band(y_max)}
        return [f"IF({unless}, NULL, {band}) AS {name}" for name, band in bands.items()]

    def is_within_a_tile(self) -> str:
        """Whether the bands are one, and its tile has one member: most subscriptions are small, and
        what `reached` does with arrays takes many times as long."""
        within = f"{_LEFT} = {_RIGHT} AND {_TOP} = {_BOTTOM}"
        if not self.route.spreads:
            return f"({within})"
        at = f"{_TOP} * {self._bands.width} + {_LEFT}"
        return f"({within} AND get({self._sizes()}, {at}) = 1)"

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
        size = f"get({self._sizes()}, {at})"
        begin = f"get({constants([begins[tile] for tile in self._bands.tiles])}, {at})"
        members = constants([m for tile in tiles for m in tile.members])
        return f"get({members}, CAST({begin} + {scaled(spread, size)} AS INT))"

    def _sizes(self) -> str:
        """How many members the tile of every pair of bands has."""
        return constants([len(self.route.tiles[tile].members) for tile in self._bands.tiles])

    def _at(self, x: str, y: str) -> str:
        return f"{self._row_band(y)} * {self._bands.width} + {self._column_band(x)}"

    def _column_band(self, x: str) -> str:
        return f"get({constants(self._bands.columns)}, {column_of(self.route.grid, x)})"

    def _row_band(self, y: str) -> str:
        return f"get({constants(self._bands.rows)}, {row_of(self.route.grid, y)})"

    @property
    def _bands(self) -> Bands:
        return self.route.bands
