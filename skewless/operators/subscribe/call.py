"""Checks the arguments of `sk.subscribe` and turns them into an operator, before any Spark job."""

import importlib.util
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from skewless.durations import Duration, parse_duration_us
from skewless.engine.columns import BOX, TIME, X, Y, slot_name
from skewless.errors import SkewlessError, StateGrowsWarning, bad_argument
from skewless.operators.lateness import (
    FROM_INPUT,
    FromInput,
    delays_of,
    own_watermark,
    warn_of_late_rows,
)
from skewless.operators.slots import assign_slots
from skewless.operators.subscribe.layout import POINTS, QUERIES, Layout, OutputColumn
from skewless.operators.subscribe.operator import SubscribeOperator
from skewless.operators.subscribe.shapes import (
    CircleShape,
    PolygonShape,
    RectangleShape,
    Shape,
    bounds_of,
)
from skewless.operators.subscribe.window import PastWindow
from skewless.planning.auto import Auto
from skewless.planning.policy import Policy
from skewless.planning.tiles.auto import AutoTiles
from skewless.planning.tiles.policy import TilePolicy
from skewless.routing.cells import CellGrid
from skewless.runtime import types
from skewless.runtime.inputs import Input, read_input, read_table, refuse_updates
from skewless.runtime.stream import Stream, fed_by, fed_with_table, timing_of
from skewless.runtime.subscriptions import PointColumns, QueryColumns, SubscriptionRows
from skewless.runtime.topology import Node
from skewless.state.watermark import Delays

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

RECTANGLE = ("x_min", "y_min", "x_max", "y_max")
CIRCLE = ("x", "y", "radius")
POLYGON = ("polygon",)
SHAPES = {"rectangle": RECTANGLE, "circle": CIRCLE, "polygon": POLYGON}
_ID, _OP = "id", "op"


def subscribe(
    points: "DataFrame | Stream",
    queries: "DataFrame | Stream",
    *,
    x: str,
    y: str,
    bounds: Sequence[float],
    time: str | tuple[str, str] | None = None,
    window: Duration | None = None,
    tumbling: bool = False,
    watermark: Duration | FromInput | None = FROM_INPUT,
    shape: str | None = None,
    balance: Policy | None = None,
    suffix: str = "_right",
) -> Stream:
    """Reports every point of a stream to all who have subscribed to its place.

    `queries` has a column `id` and the place: a rectangle (`x_min`, `y_min`, `x_max`, `y_max`), a
    circle (`x`, `y`, `radius`) or a `polygon` (WKT or WKB). `shape` says which, where columns for
    several are there. A point on an edge is inside. A table that does not stream is read once. In a
    stream, `op` says what a row does: 'add' (or 'change') replaces what the id had before, 'remove'
    ends it, and both hold from the batch in which they come; 'snapshot' asks once for the points of
    the last `window` before the row's time (`time` names the column of the points and that of the
    queries). `bounds` is (x_min, y_min, x_max, y_max) of all points.

    The result has the point's columns, then the `id` and the other columns of the subscription,
    with `suffix` where a name is taken.

        seen = sk.subscribe(positions, areas, x="lon", y="lat", bounds=(-74.3, 40.5, -73.7, 40.9))
        query = seen.writeStream.format("parquet").option("checkpointLocation", c).start(path)
    """
    told = read_input("points", points)
    refuse_updates("points", points)
    changes = bool(getattr(queries, "isStreaming", False))
    asked = read_input("queries", queries) if changes else read_table("queries", queries)
    if changes:
        refuse_updates("queries", queries)
    if not isinstance(suffix, str) or not suffix:
        raise bad_argument("suffix", suffix, "a text that is not empty")
    policy = _policy(balance)
    grid = CellGrid(policy.cells, _bounds(bounds))
    place = (_coordinate(told, "x", x), _coordinate(told, "y", y))
    if place[0] == place[1]:
        raise bad_argument("y", y, "another column than x")
    area = _area(asked, shape)
    past = _window(window, tumbling, changes)
    times = _times(told, asked if changes else None, time, past)
    delays = _delays(points, told, times[0], watermark, past)
    plan = _Plan.of(told, asked, place, area, times, changes, suffix)
    operator = SubscribeOperator(
        layout=plan.layout,
        grid=grid,
        policy=policy,
        window=past,
        delays=delays,
        fingerprint={
            "operator": "subscribe",
            "shape": area.name,
            "points": told.described(),
            "queries": asked.described(),
            "streams": changes,
            "x": place[0],
            "y": place[1],
            "bounds": list(grid.bounds),
            "cells": grid.side,
            "time": list(times),
            "window": None if past is None else past.describe(),
            "slots": {
                POINTS: _slots(plan.rows.of_points.slots),
                QUERIES: _slots(plan.rows.of_queries.slots),
            },
        },
    )
    feed = (
        fed_with_table(points, queries, plan.rows)
        if not isinstance(queries, Stream) and not changes
        else fed_by(points, queries, rows=plan.rows)
    )
    node = Node(
        operator=operator,
        **feed,
        schema=plan.schema,
        timed_by={POINTS: 0} if POINTS in delays.given else {},
        # Past points are older than the watermark.
        keeps_time=past is None,
        inputs={
            POINTS: told.schema,
            QUERIES: types.retyped(asked.schema, dict.fromkeys(area.numbers, types.DOUBLE)),
        },
    )
    return Stream(node, plan.schema, points.sparkSession)


def _slots(slots: dict[int, str]) -> dict[str, str]:
    return {slot_name(slot): name for slot, name in sorted(slots.items())}


def _policy(balance: Policy | None) -> TilePolicy:
    """Auto means here: tiles by measured load."""
    if balance is None:
        balance = Auto()
    if isinstance(balance, Auto):
        return AutoTiles.of(balance)
    if not isinstance(balance, TilePolicy):
        takes = "sk.Auto(), sk.Swarm(), sk.StaticGrid() or sk.Replicated()"
        raise bad_argument("balance", balance, takes)
    return balance


def _bounds(bounds: Any) -> tuple[float, float, float, float]:
    takes = "four numbers: (x_min, y_min, x_max, y_max)"
    # Other libraries give bounds as an array, such as GeoPandas' `total_bounds`.
    edges = bounds.tolist() if isinstance(bounds, np.ndarray) else bounds
    if not isinstance(edges, list | tuple) or len(edges) != 4:
        raise bad_argument("bounds", bounds, takes)
    if not all(isinstance(edge, Real | Decimal) and not isinstance(edge, bool) for edge in edges):
        raise bad_argument("bounds", bounds, takes)
    x_min, y_min, x_max, y_max = map(float, edges)
    return x_min, y_min, x_max, y_max


def _coordinate(given: Input, option: str, name: Any) -> str:
    column = given.resolve(option, name)
    kind = given.type_of(column)
    if not types.is_number(kind):
        raise SkewlessError(
            f"{option}: {given.argument} column {column!r} is {kind.simpleString()}; takes a "
            "column of numbers"
        )
    return column


@dataclass(frozen=True)
class _Area:
    """What is subscribed to, and the columns that say it."""

    name: str
    columns: tuple[str, ...]

    @property
    def numbers(self) -> tuple[str, ...]:
        """The columns that are compared as doubles."""
        return () if self.name == "polygon" else self.columns


def _area(given: Input, shape: Any) -> _Area:
    if shape is not None and not (isinstance(shape, str) and shape in SHAPES):
        raise bad_argument("shape", shape, f"one of {', '.join(map(repr, SHAPES))}, or None")
    known = {given.fold(name) for name in given.names}
    fitting = [n for n, columns in SHAPES.items() if known >= {given.fold(c) for c in columns}]
    if shape is None and not fitting:
        raise SkewlessError(
            f"queries: has the columns {', '.join(given.names)}; takes a rectangle "
            f"({', '.join(RECTANGLE)}), a circle ({', '.join(CIRCLE)}) or a column 'polygon'"
        )
    name = fitting[0] if shape is None else shape
    columns = tuple(given.resolve("queries", column) for column in SHAPES[name])
    if name == "polygon":
        kind = given.type_of(columns[0])
        if not types.is_text_or_binary(kind):
            raise SkewlessError(
                f"queries: column {columns[0]!r} is {kind.simpleString()}; takes text (WKT) or "
                "binary (WKB)"
            )
        if importlib.util.find_spec("shapely") is None:
            raise SkewlessError("shape: polygons need shapely; pip install 'skewless[spatial]'")
    else:
        columns = tuple(_coordinate(given, "queries", column) for column in columns)
    return _Area(name, columns)


def _window(window: Any, tumbling: Any, changes: bool) -> PastWindow | None:
    if not isinstance(tumbling, bool):
        raise bad_argument("tumbling", tumbling, "True or False")
    if window is None:
        if tumbling:
            raise bad_argument("tumbling", tumbling, "False, unless window is given")
        return None
    if not changes:
        raise bad_argument(
            "window",
            window,
            "None, because a table asks for no past points: stream queries with op 'snapshot'",
        )
    size = parse_duration_us("window", window)
    if size <= 0:
        raise bad_argument("window", window, "a duration above 0")
    return PastWindow(size, tumbling)


def _times(
    points: Input, queries: Input | None, time: Any, past: PastWindow | None
) -> tuple[str | None, str | None]:
    """The event-time columns of points and of queries (None: a table), as far as needed."""
    if time is None:
        if past is not None:
            takes = 'the event-time columns, ("points_column", "queries_column")'
            raise bad_argument("time", time, f"{takes}: a window needs them")
        return None, None
    names = (time, time) if isinstance(time, str) else time
    if not isinstance(names, list | tuple) or len(names) != 2:
        raise bad_argument("time", time, 'a column name, or ("points_column", "queries_column")')
    if queries is None and not isinstance(time, str):
        takes = "the event-time column of the points: a table is read once, whatever its times"
        raise bad_argument("time", time, takes)
    at = _event_time(points, names[0])
    if queries is None:
        return at, None
    known = {queries.fold(name) for name in queries.names}
    of_query = None
    # One name may be that of the points alone, where nobody asks for past ones.
    if past is not None or not isinstance(time, str) or queries.fold(time) in known:
        of_query = _event_time(queries, names[1])
    if of_query is not None and points.type_of(at) != queries.type_of(of_query):
        raise SkewlessError(
            f"time: points {at!r} is {points.type_of(at).simpleString()}, queries {of_query!r} is "
            f"{queries.type_of(of_query).simpleString()}; takes two of the same type: cast one"
        )
    return at, of_query


def _event_time(given: Input, name: Any) -> str:
    column = given.resolve("time", name)
    kind = given.type_of(column)
    if not types.is_event_time(kind):
        raise SkewlessError(
            f"time: {given.argument} column {column!r} is {kind.simpleString()}; takes a timestamp "
            "column (to_timestamp makes one)"
        )
    return column


def _delays(
    points: "DataFrame | Stream",
    given: Input,
    time: str | None,
    watermark: Any,
    past: PastWindow | None,
) -> Delays:
    if past is None or time is None:
        if watermark is not FROM_INPUT and watermark is not None:
            takes = "nothing, unless window is given: points are never late"
            raise bad_argument("watermark", watermark, takes)
        return Delays({})
    timed = timing_of(points) is not None
    own = own_watermark(given, time, is_chained=timed)
    delay = delays_of(watermark if watermark is FROM_INPUT else [watermark], {POINTS: own})[POINTS]
    if delay is None and watermark is FROM_INPUT:
        warn_of_late_rows("query of past points", stacklevel=3)
        delay = 0
    if delay is None:
        warnings.warn(
            "all points are kept without bound: no query is ever late (watermark None)",
            StateGrowsWarning,
            stacklevel=3,
        )
    return Delays({POINTS: delay}, frozenset([POINTS] if timed else []))


@dataclass(frozen=True)
class _Plan:
    layout: Layout
    rows: SubscriptionRows
    schema: Any

    @staticmethod
    def of(
        points: Input,
        queries: Input,
        place: tuple[str, str],
        area: _Area,
        times: tuple[str | None, str | None],
        changes: bool,
        suffix: str,
    ) -> "_Plan":
        known = {queries.fold(name): name for name in queries.names}
        id_column = known.get(queries.fold(_ID))
        if id_column is None:
            raise SkewlessError(
                f"queries: has no column 'id'; its columns are {', '.join(queries.names)}"
            )
        action = known.get(queries.fold(_OP)) if changes else None
        if action is not None and not types.is_text(queries.type_of(action)):
            kind = queries.type_of(action).simpleString()
            raise SkewlessError(f"queries: column {action!r} is {kind}; takes text")
        if changes and not types.identifies(queries.type_of(id_column)):
            kind = queries.type_of(id_column).simpleString()
            raise SkewlessError(
                f"queries: column {id_column!r} is {kind}; takes text, a whole number, a date or "
                "another plain type that is no fraction"
            )
        # A coordinate of another type than double travels as it is, too, for the result.
        plain = {
            n: c for n, c in zip(place, (X, Y), strict=True) if points.type_of(n) == types.DOUBLE
        }
        if times[0] is not None:
            plain[times[0]] = TIME
        carried = [name for name in points.names if name not in plain]
        shown = [n for n in queries.names if n not in (*area.columns, action)]
        shown.sort(key=lambda name: name != id_column)  # the id first
        exact = [] if area.name == "rectangle" else list(area.columns)
        # What a row was to do is shown where it is bad.
        kept = [*shown, *exact, *([] if action is None else [action])]
        # What the shape is checked with is a double, whatever the column was.
        kinds = {name: queries.type_of(name) for name in kept}
        if area.name == "circle":
            kinds.update(dict.fromkeys(exact, types.DOUBLE))
        point_kinds = [points.type_of(name) for name in carried]
        query_kinds = [kinds[name] for name in kept]
        of_points, of_queries = assign_slots(
            [kind.json() for kind in point_kinds], [kind.json() for kind in query_kinds]
        )
        slot_types: dict[int, Any] = dict(zip(of_points, point_kinds, strict=True))
        slot_types.update(zip(of_queries, query_kinds, strict=True))
        point_slot = dict(zip(carried, of_points, strict=True))
        query_slot = dict(zip(kept, of_queries, strict=True))
        travels = {**plain, **{name: slot_name(slot) for name, slot in point_slot.items()}}
        output = [OutputColumn(name, POINTS, travels[name]) for name in points.names]
        sources = [(name, points.field(name)) for name in points.names]
        taken = {points.fold(name) for name in points.names}
        for name in shown:
            unique = name if points.fold(name) not in taken else name + suffix
            if points.fold(unique) in taken:
                raise SkewlessError(
                    f"suffix: {unique!r} is taken, too; takes a suffix that makes the column "
                    f"{name!r} of queries unique, or rename the column before"
                )
            taken.add(points.fold(unique))
            output.append(OutputColumn(unique, QUERIES, slot_name(query_slot[name])))
            sources.append((unique, queries.field(name)))
        shape = _shape(area, [slot_name(query_slot[name]) for name in exact])
        edges = dict(zip(area.columns, BOX, strict=True)) if area.name == "rectangle" else {}
        asked = {**edges, **{name: slot_name(slot) for name, slot in query_slot.items()}}
        layout = Layout(
            output=tuple(output),
            shape=shape,
            point_slots=tuple(slot_name(slot) for slot in sorted(of_points)),
            query_slots=tuple(slot_name(slot) for slot in sorted(of_queries)),
            id=slot_name(query_slot[id_column]),
            changes=changes,
            inputs={
                POINTS: tuple((name, travels[name]) for name in points.names),
                QUERIES: tuple((n, asked[n]) for n in queries.names if n in asked),
            },
        )
        rows = SubscriptionRows(
            PointColumns(*place, times[0], {slot: name for name, slot in point_slot.items()}),
            QueryColumns(
                area.columns,
                id_column,
                times[1] if changes else None,
                action,
                {slot: name for name, slot in query_slot.items()},
                bounds_of if area.name == "polygon" else None,
            ),
            tuple(slot_types[slot] for slot in range(len(slot_types))),
            changes,
        )
        return _Plan(layout, rows, types.struct(sources))


def _shape(area: _Area, slots: list[str]) -> Shape:
    if area.name == "rectangle":
        return RectangleShape()
    if area.name == "polygon":
        return PolygonShape((slots[0],))
    return CircleShape((slots[0], slots[1], slots[2]))
