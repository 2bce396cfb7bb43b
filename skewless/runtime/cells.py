"""The postings of a join by distance in Spark SQL: `skewless.routing.blocks`, cell by cell."""

from dataclasses import dataclass

from pyspark.sql import DataFrame

from skewless.engine.columns import HASH, ITEMS, LEFT_CODE, POINT_X, POINT_Y, POSTINGS
from skewless.routing.blocks import BLOCK_BITS, CELL_BITS, GlobeCells, PlaneCells
from skewless.runtime.constants import constants
from skewless.runtime.routing import hashable_columns

# Columns on the way: the coordinates of a point, and numbers of cells.
_X, _Y = "cell_x", "cell_y"
_WEST, _EAST, _SOUTH, _NORTH = "west", "east", "south", "north"
_WIDE, _OF_SOUTH, _OF_NORTH = "wide", "of_south", "of_north"
_NONE = "CAST(array() AS ARRAY<BIGINT>)"
_Columns = tuple[str, str]
_Cell = tuple[str, str]  # SQL of its two numbers


@dataclass(frozen=True)
class CellRows:
    """Adds what a join by distance needs to the rows of both sides."""

    cells: PlaneCells | GlobeCells
    left: _Columns  # of the common stream
    right: _Columns
    keys: tuple[str, ...]  # of the common stream; part of every hash
    casts: bool  # coordinates are not doubles: they travel as such in columns of their own

    def added(self, frame: DataFrame, code: int) -> DataFrame:
        """The rows of a side with their postings and spread value in columns of their own.

        One column after the other: within one expression each would be computed wherever it is
        used. The postings travel as ITEMS, so that a task knows a row by the same ones.
        """
        own = [*frame.columns]
        x, y = self.left if code == LEFT_CODE else self.right
        spread = f"xxhash64({', '.join(hashable_columns(frame.schema))}) AS {HASH}"
        told = frame
        if self.casts:
            casts = [f"CAST({c} AS DOUBLE) AS {p}" for c, p in ((x, POINT_X), (y, POINT_Y))]
            told = told.selectExpr("*", *casts)
            own += [POINT_X, POINT_Y]
            x, y = POINT_X, POINT_Y
        # Others have no cell: Spark refuses to round them to a whole number.
        sound = " AND ".join(
            f"{column} BETWEEN {_double(-most)} AND {_double(most)}"
            for column, most in zip((x, y), self.cells.most, strict=True)
        )
        told = told.selectExpr(
            "*", f"IF({sound}, {x}, NULL) AS {_X}", f"IF({sound}, {y}, NULL) AS {_Y}"
        )
        steps = _globe(self.cells) if isinstance(self.cells, GlobeCells) else _plane(self.cells)
        columns, cells = steps[code != LEFT_CODE]
        for step in columns:
            told = told.selectExpr("*", *step)
        hashes = f"array({', '.join(self._hash(cell) for cell in cells)})"
        if len(cells) > 1:
            hashes = f"array_distinct({hashes})"
        # A row that can match nothing has no posting, and burdens no single instance.
        usable = " AND ".join(f"{column} IS NOT NULL" for column in (_X, *self.keys))
        told = told.selectExpr(*own, f"IF({usable}, {hashes}, {_NONE}) AS {ITEMS}")
        return told.selectExpr("*", f"{ITEMS} AS {POSTINGS}", spread)

    def _hash(self, cell: _Cell) -> str:
        """`skewless.routing.blocks.cell_hashes`."""
        blocks = [f"shiftright({number}, {BLOCK_BITS})" for number in cell]
        hashed = f"xxhash64({', '.join([*self.keys, *blocks])})"
        inside = (1 << BLOCK_BITS) - 1
        place = f"shiftleft({cell[0]} & {inside}, {BLOCK_BITS}) | ({cell[1]} & {inside})"
        return f"(({hashed} & {-(1 << CELL_BITS)}) | {place})"


# Per side: columns to be made one after the other, and the cells that are then known.
_Steps = tuple[list[list[str]], list[_Cell]]


def _plane(cells: PlaneCells) -> tuple[_Steps, _Steps]:
    def cell(x: str, name: str) -> str:
        return f"floor(({x}) / {_double(cells.side)}) AS {name}"

    reach = _double(cells.reach)
    own: _Steps = ([[cell(_X, _WEST), cell(_Y, _SOUTH)]], [(_WEST, _SOUTH)])
    edges = [
        *(cell(f"{_X} - {reach}", _WEST), cell(f"{_X} + {reach}", _EAST)),
        *(cell(f"{_Y} - {reach}", _SOUTH), cell(f"{_Y} + {reach}", _NORTH)),
    ]
    reached: _Steps = (
        [edges],
        [(_WEST, _SOUTH), (_WEST, _NORTH), (_EAST, _SOUTH), (_EAST, _NORTH)],
    )
    return own, reached


def _globe(cells: GlobeCells) -> tuple[_Steps, _Steps]:
    def band(y: str, name: str) -> str:
        number = f"floor(({y} + 90.0D) / {_double(cells.height)})"
        return f"least(greatest({number}, 0L), {cells.last_band}L) AS {name}"

    def count(band: str, name: str) -> str:
        zone = f"CAST({band} DIV {cells.bands_per_zone} AS INT)"
        return f"get({constants(cells.counts, 'BIGINT')}, {zone}) AS {name}"

    def cell(x: str, count: str) -> str:
        return f"pmod(floor(({x} + 180.0D) * {count} / 360.0D), {count})"

    own: _Steps = (
        [[band(_Y, _SOUTH)], [count(_SOUTH, _OF_SOUTH)], [f"{cell(_X, _OF_SOUTH)} AS {_WEST}"]],
        [(_WEST, _SOUTH)],
    )
    reach = _double(cells.reach)
    ratio = f"least({_double(cells.sine)} / cos(radians({_Y})), 1.0D)"
    edges = [
        f"degrees(asin({ratio})) + {_double(cells.rounding)} AS {_WIDE}",
        *(band(f"{_Y} - {reach}", _SOUTH), band(f"{_Y} + {reach}", _NORTH)),
    ]
    ways = [
        (cell(f"{_X} {sign} {_WIDE}", of), band)
        for of, band in ((_OF_SOUTH, _SOUTH), (_OF_NORTH, _NORTH))
        for sign in "-+"
    ]
    names = [f"cell_{number}" for number in range(len(ways))]
    reached: _Steps = (
        [
            edges,
            [count(_SOUTH, _OF_SOUTH), count(_NORTH, _OF_NORTH)],
            [f"{sql} AS {name}" for (sql, _), name in zip(ways, names, strict=True)],
        ],
        [(name, band) for name, (_, band) in zip(names, ways, strict=True)],
    )
    return own, reached


def _double(number: float) -> str:
    """A literal that is exactly this number."""
    return f"{number!r}D"
