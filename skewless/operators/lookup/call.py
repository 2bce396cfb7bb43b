"""Checks the arguments of `sk.join` where one side is a table, before any Spark job."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from skewless.durations import parse_duration_us
from skewless.errors import bad_argument, check_parameters
from skewless.operators.balance import routing_policy
from skewless.operators.join.arguments import NOT_GIVEN, bounds_of, keys_of, times_of
from skewless.operators.join.asof import AsOf
from skewless.operators.join.bounds import LEFT, RIGHT, Bounds
from skewless.operators.join.choosing import Chooser, ClosestInTime
from skewless.operators.join.columns import Plan, dropped_columns, planned, slots_of
from skewless.operators.join.how import How
from skewless.operators.join.layout import OutputColumn
from skewless.operators.join.pairing import OTHER
from skewless.operators.join.points import PointColumns
from skewless.operators.join.sets import SetColumns
from skewless.operators.join.where import where_of
from skewless.operators.lateness import FROM_INPUT
from skewless.operators.lookup.operator import LookupOperator
from skewless.operators.lookup.terms import Terms
from skewless.runtime import types
from skewless.runtime.dispatch import KeyColumn
from skewless.runtime.inputs import Input, read_input, read_table
from skewless.runtime.lookups import FixedTable, LookupRows, TableOfFunction, user_session
from skewless.runtime.stream import Stream, fed_by
from skewless.runtime.topology import Node

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# What Spark takes, too: a row of the table without a match is known only when the stream has ended.
_HOWS = {LEFT: ("inner", "left", "left_semi", "left_anti"), RIGHT: ("inner", "right")}
_Matched = SetColumns | PointColumns | None


@dataclass(frozen=True)
class Asked:
    """The arguments of the call, of both sides those that a lookup reads."""

    on: Any
    time: Any
    within: Any
    how: Any
    watermark: Any
    where: Any
    match: Any
    balance: Any
    shed: Any
    suffix: str
    refresh: Any


def lookup(left: Any, right: Any, asked: Asked, matched_by: Any) -> Stream:
    """The join of a stream with a table on the other side.

    `matched_by` makes of the inputs and `match` what rows are compared by besides their keys.
    """
    side = RIGHT if is_table(left) else LEFT
    stream, table = (left, right) if side == LEFT else (right, left)
    how = _how(asked.how, side)
    _refuse(asked, side)
    told = read_input(side, stream)
    frame = _frame(OTHER[side], table, stream.sparkSession)
    kept = read_table(OTHER[side], frame)
    inputs = (told, kept) if side == LEFT else (kept, told)
    policy = routing_policy(asked.balance, "sk.Hash(instances=4) or sk.Auto()")
    if policy.needs_combinable:
        takes = "another policy: sk.PKG is for sk.Count and sk.Agg"
        raise bad_argument("balance", policy, takes)
    matched: _Matched = matched_by(inputs, asked.match)
    keys = [] if asked.on is None and matched is not None else keys_of(inputs, asked.on)
    times, bounds = _time_condition(inputs, asked)
    wanted = where_of(stream.sparkSession, inputs, keys, asked.where)
    plan = planned(inputs, keys, times, asked.suffix, matched, where=wanted)
    plan = _shown(plan, how, side, keys, is_plain=matched is None and wanted is None)
    schema = _schema(plan, how, side, inputs, keys)
    shown = types.arrow_schema(schema).types
    terms = Terms(
        layout=replace(plan.layout, types=tuple(shown[: len(plan.layout.output)])),
        how=how,
        stream=side,
        bounds=bounds,
        timed=times[0] is not None,
        condition=None
        if matched is None
        else matched.condition(plan.layout, plan.left, plan.right),
        chooser=_chooser(asked.match, matched),
        where=None if wanted is None else wanted.bound(plan.left, plan.right),
    )
    operator = LookupOperator(
        terms=terms,
        policy=policy,
        fingerprint={
            "operator": "lookup",
            "how": how.name,
            "stream": side,
            "left": inputs[0].described(),
            "right": inputs[1].described(),
            "on": [[pair[0].name, pair[1].name] for pair in keys],
            "time": list(times),
            "withinUs": [bounds.lower_us, bounds.upper_us],
            "slots": {LEFT: slots_of(plan.left), RIGHT: slots_of(plan.right)},
            **({} if matched is None else {"match": matched.described()}),
            **({"asOf": asked.match.direction} if isinstance(asked.match, AsOf) else {}),
            **({} if wanted is None else {"where": wanted.described()}),
        },
        refresh_us=_refresh(asked.refresh),
    )
    of_left, of_right = _rows(plan, matched, side)
    of_stream, of_table = (of_left, of_right) if side == LEFT else (of_right, of_left)
    stored: FixedTable | TableOfFunction = FixedTable(frame, of_table)
    if callable(table):
        session = user_session(stream.sparkSession)
        stored = TableOfFunction(table, frame.schema, of_table, session)
    columns = plan.left if side == LEFT else plan.right
    node = Node(
        operator=operator,
        **fed_by(stream, rows=of_stream),
        schema=schema,
        # Rows of the stream are given in the batch that they come with, or never.
        keeps_time=True,
        inputs={side: dropped_columns(told, columns)},
        table=stored,
    )
    return Stream(node, _with_watermark(schema, plan, told, side), stream.sparkSession)


def is_table(given: Any) -> bool:
    """Whether a side of a join is a DataFrame that does not stream, or a function that gives one.

    Anything else that is no stream is refused as such.
    """
    if hasattr(given, "isStreaming"):
        return not given.isStreaming
    return callable(given)


def _how(given: Any, side: str) -> How:
    how = How.of(given)
    if how.name not in _HOWS[side]:
        listed = ", ".join(map(repr, _HOWS[side]))
        takes = (
            f"one of {listed} where the {OTHER[side]} side is a table: what becomes of a row of "
            "the table would be known only when the stream has ended. To ask about rows of the "
            "stream, put it on the other side"
        )
        raise bad_argument("how", given, takes)
    return how


def _refuse(asked: Asked, side: str) -> None:
    """Refuses what has no meaning here."""
    if not isinstance(asked.suffix, str) or not asked.suffix:
        raise bad_argument("suffix", asked.suffix, "a text that is not empty")
    if asked.watermark is not FROM_INPUT and asked.watermark is not None:
        takes = "nothing where one side is a table: no row of the stream is late"
        raise bad_argument("watermark", asked.watermark, takes)
    if asked.shed is not None:
        raise bad_argument("shed", asked.shed, "None where one side is a table")
    if asked.match is not None and side == RIGHT:
        takes = "None where the left side is a table; put the stream on the left"
        raise bad_argument("match", asked.match, takes)


def _frame(argument: str, table: Any, session: Any) -> "DataFrame":
    """The table as it is now; a function gives it."""
    if hasattr(table, "isStreaming"):
        return table
    takes = "a function from SparkSession to a DataFrame that does not stream"
    check_parameters(argument, table, 1, takes)
    frame = table(session)
    if not hasattr(frame, "isStreaming") or frame.isStreaming:
        streaming = "streaming " * hasattr(frame, "isStreaming")
        got = f"a function that gave a {streaming}{type(frame).__name__}"
        raise bad_argument(argument, got, takes)
    return frame


def _refresh(refresh: Any) -> int | None:
    if refresh is None:
        return None
    refresh_us = parse_duration_us("refresh", refresh)
    if refresh_us <= 0:
        raise bad_argument("refresh", refresh, "a duration above 0, or None: read once")
    return refresh_us


def _time_condition(
    inputs: tuple[Input, Input], asked: Asked
) -> tuple[tuple[str | None, str | None], Bounds]:
    """The time columns and the bounds that are part of the condition; (None, None): neither is."""
    within = None if asked.within is NOT_GIVEN else asked.within
    is_asof = isinstance(asked.match, AsOf)
    if asked.time is None:
        if within is not None:
            takes = "nothing, unless time names the columns that it is about"
            raise bad_argument("within", asked.within, takes)
        if is_asof:
            takes = '("stream_column", "table_column"), of which sk.AsOf gives the closest'
            raise bad_argument("time", asked.time, takes)
        return (None, None), Bounds(None, None)
    if within is None and not is_asof:
        takes = "nothing, unless within says what is compared: a table has no event time"
        raise bad_argument("time", asked.time, takes)
    bounds = bounds_of(within)
    return times_of(inputs, asked.time), asked.match.within(bounds) if is_asof else bounds


def _chooser(match: Any, matched: _Matched) -> Chooser | None:
    if isinstance(match, AsOf):
        return ClosestInTime()
    return None if matched is None else matched.chooser


def _shown(
    plan: Plan,
    how: How,
    side: str,
    keys: list[tuple[KeyColumn, KeyColumn]],
    *,
    is_plain: bool,
) -> Plan:
    """The plan with the columns that this type of join shows, and stores."""
    layout = plan.layout
    if not how.gives_pairs:
        output = tuple(c for c in layout.output if c.side == side)
        layout = replace(layout, output=output, distance=None)
        if is_plain:
            # A row of the table is asked for, never shown.
            layout = replace(layout, right_slots=())
            plan = replace(plan, right=replace(plan.right, slots={}))
    elif how.name == "right":
        # A row of the stream has its key also where the table has none.
        own = {pair[0].name: f"k{i}" for i, pair in enumerate(keys)}
        output = tuple(
            OutputColumn(c.name, RIGHT, own[c.name]) if c.side == LEFT and c.name in own else c
            for c in layout.output
        )
        layout = replace(layout, output=output)
    return replace(plan, layout=layout)


def _schema(
    plan: Plan,
    how: How,
    side: str,
    inputs: tuple[Input, Input],
    keys: list[tuple[KeyColumn, KeyColumn]],
) -> Any:
    """The columns of the result; those of the table may be null where it has no match."""
    names = {c.name for c in plan.layout.output}
    if plan.layout.distance is not None:
        names.add(plan.layout.distance)
    if how.name == "inner":
        return types.chosen(plan.joined_schema, names)
    schema = types.chosen(plan.schema, names)
    if not how.gives_pairs:
        return schema
    of_table = {c.name for c in plan.layout.output if c.side != side}
    if plan.layout.distance is not None:
        of_table.add(plan.layout.distance)
    if how.name == "right":
        own = {pair[0].name: pair[1] for pair in keys}
        of_table |= {n for n, key in own.items() if inputs[1].field(key.name).nullable}
        kinds = {name: key.compared_as for name, key in own.items()}
        return types.with_nulls(schema, of_table, kinds)
    return types.with_nulls(schema, of_table)


def _with_watermark(schema: Any, plan: Plan, told: Input, side: str) -> Any:
    """The schema of the result, whose rows are as late as those of the stream."""
    name = told.watermarked()
    if name is None or told.watermarks != 1:
        return schema
    columns = plan.left if side == LEFT else plan.right
    place = columns.travels_as(name)
    shown = [c.name for c in plan.layout.output if c.side == side and c.column == place]
    delay_ms = (told.watermark_us(name) or 0) // 1_000
    return types.with_watermarks(schema, dict.fromkeys(shown, delay_ms))


def _rows(plan: Plan, matched: _Matched, side: str) -> tuple[LookupRows, LookupRows]:
    """How the rows of the left and of the right side come into form."""
    index = None if matched is None else matched.rows(plan.layout, plan.left, plan.right)
    with_hash = matched is None and not plan.layout.hash_from_key
    by_cell = isinstance(matched, PointColumns)
    return (
        LookupRows(plan.left, with_hash, index, by_cell, is_table=side == RIGHT),
        LookupRows(plan.right, with_hash, index, by_cell, is_table=side == LEFT),
    )
