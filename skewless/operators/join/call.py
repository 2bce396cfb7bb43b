"""Checks the arguments of `sk.join` and turns them into an operator, before any Spark job."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from skewless.durations import Duration, parse_duration_us
from skewless.engine.columns import LEFT_CODE, RIGHT_CODE, TIME, key_name, slot_name
from skewless.errors import SkewlessError, StateGrowsWarning, bad_argument
from skewless.operators.balance import routing_policy
from skewless.operators.join.asof import AsOf
from skewless.operators.join.bounds import LEFT, RIGHT, SIDES, Bounds
from skewless.operators.join.choosing import Chooser, ClosestInTime
from skewless.operators.join.layout import Layout, OutputColumn
from skewless.operators.join.match import InnerProduct, Match, Overlap
from skewless.operators.join.near import Near, Nearest
from skewless.operators.join.operator import JoinOperator
from skewless.operators.join.points import PointColumns
from skewless.operators.join.sets import SetColumns
from skewless.operators.lateness import (
    FROM_INPUT,
    FromInput,
    delays_of,
    own_watermark,
    warn_of_late_rows,
)
from skewless.operators.slots import assign_slots
from skewless.planning.policy import Policy
from skewless.runtime import types
from skewless.runtime.dispatch import JoinRows, KeyColumn, SideColumns
from skewless.runtime.inputs import Input, read_input, refuse_updates
from skewless.runtime.stream import Stream, fed_by, timing_of
from skewless.runtime.topology import Node
from skewless.shedding.policy import Shed, Shedding
from skewless.state.watermark import Delays

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def join(
    left: "DataFrame | Stream",
    right: "DataFrame | Stream",
    *,
    on: str | Sequence[str] | Sequence[tuple[str, str]] | None = None,
    time: str | tuple[str, str],
    within: Duration | tuple[Duration | None, Duration | None] | None,
    how: str = "inner",
    watermark: Duration | tuple[Duration | None, Duration | None] | FromInput | None = FROM_INPUT,
    match: Match | None = None,
    balance: Policy | None = None,
    shed: Shedding | None = None,
    suffix: str = "_right",
) -> Stream:
    """Joins two streams on equal keys where `lower ≤ right.time − left.time ≤ upper`.

    Each of them is a streaming DataFrame or the result of another operator.

    `on` names the key columns, `time` the event-time columns, `within` the bounds (one duration
    means both ways), `watermark` the allowed lateness per side (None: never late; by default the
    inputs' own `withWatermark`, else "0 seconds" with a warning). `match` joins by sets,
    `sk.Overlap` or `sk.InnerProduct`, or by distance, `sk.Near` or `sk.Nearest`; `on` may then be
    left out. `match=sk.AsOf(...)` gives, of all rows with equal keys, the one closest in time.
    `shed` keeps the time of a batch below a limit by probing less when the input is too fast. The
    result has the key columns once, then the left's other columns, then the right's, with `suffix`
    where a name is taken.

        matches = sk.join(orders, drivers, on="cell", time=("ordered_at", "seen_at"),
                          within=("-10 seconds", "10 seconds"), watermark="5 seconds")
        query = matches.writeStream.format("parquet").option("checkpointLocation", c).start(path)
    """
    inputs = (read_input("left", left), read_input("right", right))
    refuse_updates("left", left)
    refuse_updates("right", right)
    if how != "inner":
        raise bad_argument("how", how, "'inner'")
    _check_shed(shed)
    matched = _matched(inputs, match)
    policy = routing_policy(balance, "sk.Hash(instances=4) or sk.Auto()")
    if not isinstance(suffix, str) or not suffix:
        raise bad_argument("suffix", suffix, "a text that is not empty")
    if policy.needs_combinable:
        raise bad_argument("balance", policy, "another policy: sk.PKG is for sk.Count and sk.Agg")
    keys = [] if on is None and matched is not None else _keys(inputs, on)
    times = _times(inputs, time)
    bounds = _bounds(within)
    if isinstance(match, AsOf):
        bounds = match.within(bounds)
    timed = _timed(left, right)
    delays = _delays(watermark, inputs, times, frozenset(timed))
    waiting = _without_watermark(left, right, delays)
    if waiting and isinstance(match, Nearest | AsOf):
        raise SkewlessError(
            f"watermark: {_no_watermark(waiting[0])}; sk.{type(match).__name__} takes streams that "
            "have one: a left row is given when the watermark has passed it"
        )
    _warn_of_growth(bounds, delays, waiting)
    plan = _plan(inputs, keys, times, suffix, matched)
    operator = JoinOperator(
        layout=replace(plan.layout, values=_values(inputs, plan, shed)),
        bounds=bounds,
        delays=delays,
        policy=policy,
        fingerprint={
            "operator": "join",
            "how": how,
            "left": inputs[0].described(),
            "right": inputs[1].described(),
            "on": [[pair[0].name, pair[1].name] for pair in keys],
            "time": list(times),
            "withinUs": [bounds.lower_us, bounds.upper_us],
            # Slots name the columns of segments. They depend on more of a type than its name.
            "slots": {LEFT: _slots(plan.left), RIGHT: _slots(plan.right)},
            **({} if matched is None else {"match": matched.described()}),
            **({"asOf": match.direction} if isinstance(match, AsOf) else {}),
        },
        shedding=shed,
        condition=None
        if matched is None
        else matched.condition(plan.layout, plan.left, plan.right),
        chooser=_chooser(match, matched),
    )
    rows = JoinRows(
        plan.left,
        plan.right,
        plan.slot_types,
        with_hash=matched is None and not plan.layout.hash_from_key,
        index=None if matched is None else matched.rows(plan.layout, plan.left, plan.right),
    )
    node = Node(
        operator=operator,
        **fed_by(left, right, rows=rows),
        schema=plan.joined_schema,
        timed_by=timed,
        replicates=True,
        inputs={LEFT: _dropped(inputs[0], plan.left), RIGHT: _dropped(inputs[1], plan.right)},
    )
    return Stream(node, plan.schema, left.sparkSession)


def _check_shed(shed: object) -> None:
    if shed is not None and not isinstance(shed, Shedding):
        takes = 'sk.Shed(max_latency="2 seconds"), or None: every pair is found'
        raise bad_argument("shed", shed, takes)


def _timed(left: "DataFrame | Stream", right: "DataFrame | Stream") -> dict[str, int]:
    """The sides that an operator feeds and times, by the number of the child."""
    sides = enumerate(((LEFT, left), (RIGHT, right)))
    return {side: number for number, (side, given) in sides if timing_of(given) is not None}


@dataclass(frozen=True)
class _Plan:
    left: SideColumns
    right: SideColumns
    slot_types: tuple[Any, ...]
    layout: Layout
    schema: Any
    joined_schema: Any  # the same, with what an inner join knows about nulls


def _plan(
    inputs: tuple[Input, Input],
    keys: list[tuple[KeyColumn, KeyColumn]],
    times: tuple[str, str],
    suffix: str,
    matched: SetColumns | PointColumns | None = None,
) -> _Plan:
    left, right = inputs
    left_keys = {pair[0].name: i for i, pair in enumerate(keys)}
    right_keys = {pair[1].name for pair in keys}
    # A key that is compared in another form than the left's own travels as payload, too.
    changed = [p[0].name for p in keys if p[0].kind != p[0].compared_as]
    left_rest = [c for c in left.names if c not in left_keys and c != times[0]]
    left_payload = [*changed, *left_rest]
    right_payload = [c for c in right.names if c not in right_keys and c != times[1]]
    left_types = [left.type_of(c) for c in left_payload]
    right_types = [right.type_of(c) for c in right_payload]
    left_slots, right_slots = assign_slots(
        [t.json() for t in left_types], [t.json() for t in right_types]
    )
    slot_types: dict[int, Any] = dict(zip(left_slots, left_types, strict=True))
    slot_types.update(zip(right_slots, right_types, strict=True))
    left_slot = dict(zip(left_payload, left_slots, strict=True))
    right_slot = dict(zip(right_payload, right_slots, strict=True))

    output = [
        OutputColumn(
            pair[0].name,
            LEFT,
            slot_name(left_slot[pair[0].name]) if pair[0].name in left_slot else key_name(i),
        )
        for i, pair in enumerate(keys)
    ]
    for name in left.names:
        if name not in left_keys:
            column = TIME if name == times[0] else slot_name(left_slot[name])
            output.append(OutputColumn(name, LEFT, column))
    sources = [(c.name, left) for c in output]
    taken = {left.fold(c.name) for c in output}
    for name in right.names:
        if name in right_keys:
            continue
        column = TIME if name == times[1] else slot_name(right_slot[name])
        shown = name
        if left.fold(shown) in taken:
            shown = name + suffix
        if left.fold(shown) in taken:
            raise SkewlessError(
                f"suffix: {shown!r} is taken, too; takes a suffix that makes the right column "
                f"{name!r} unique, or rename the column before the join"
            )
        taken.add(left.fold(shown))
        output.append(OutputColumn(shown, RIGHT, column))
        sources.append((name, right))
    left_columns = SideColumns(
        LEFT_CODE,
        tuple(pair[0] for pair in keys),
        times[0],
        {slot: name for name, slot in left_slot.items()},
    )
    right_columns = SideColumns(
        RIGHT_CODE,
        tuple(pair[1] for pair in keys),
        times[1],
        {slot: name for name, slot in right_slot.items()},
    )
    hashed = [pair[0].compared_as for pair in keys]
    distance = _distance(left, taken, matched)
    layout = Layout(
        keys=len(keys),
        left_slots=tuple(slot_name(s) for s in sorted(left_slots)),
        right_slots=tuple(slot_name(s) for s in sorted(right_slots)),
        output=tuple(output),
        hash_is_key=types.hashes_one_to_one(hashed)
        if matched is None
        else matched.hash_is_key(hashed),
        hash_from_key=matched is None and types.is_one_whole_number(hashed),
        compared=() if matched is None else matched.compared,
        distance=distance,
        inputs={
            LEFT: tuple((name, left_columns.travels_as(name)) for name in left.names),
            RIGHT: tuple((name, right_columns.travels_as(name)) for name in right.names),
        },
    )
    schema = types.struct(
        [(c.name, source.field(name)) for c, (name, source) in zip(output, sources, strict=True)]
    )
    if distance is not None:
        schema = types.with_double(schema, distance)
    # Keys and times of a pair are never null, and Spark reads a column faster when it knows.
    never_null = {c.name for c in output if c.column == TIME} | set(left_keys)
    return _Plan(
        left=left_columns,
        right=right_columns,
        slot_types=tuple(slot_types[i] for i in range(len(slot_types))),
        layout=layout,
        schema=schema,
        joined_schema=types.without_nulls(schema, never_null),
    )


def _distance(
    left: Input, taken: set[str], matched: SetColumns | PointColumns | None
) -> str | None:
    """The name of the column of distances, where there is to be one."""
    name = matched.match.distance if isinstance(matched, PointColumns) else None
    if name is not None and left.fold(name) in taken:
        raise bad_argument("distance", name, "a name that no column of the result has")
    return name


def _values(
    inputs: tuple[Input, Input], plan: _Plan, shed: Shedding | None
) -> dict[str, str | None]:
    """Per side: where the column travels that says what a row is worth."""
    if not isinstance(shed, Shed) or shed.value is None:
        return {}
    values: dict[str, str | None] = {}
    sides = zip(SIDES, inputs, (plan.left, plan.right), shed.values, strict=True)
    for side, given, columns, name in sides:
        # One name for both sides is that of a column which either of them may lack.
        known = {given.fold(column) for column in given.names}
        lacks = isinstance(shed.value, str) and given.fold(shed.value) not in known
        if name is None or lacks:
            values[side] = None
            continue
        name = given.resolve("value", name)
        kind = given.type_of(name)
        if not types.is_number(kind):
            raise SkewlessError(
                f"value: {given.argument} column {name!r} is {kind.simpleString()}; takes a column "
                "of numbers"
            )
        values[side] = columns.travels_as(name)
    if not any(values.values()):
        raise bad_argument("value", shed.value, "a column of the left or the right input")
    return values


def _dropped(given: Input, side: SideColumns) -> Any:
    """The columns of a side's dropped rows: those of the input, with keys as they are compared."""
    compared = {key.name: key.compared_as for key in side.keys}
    kept = set(side.slots.values())
    return types.retyped(
        given.schema, {name: kind for name, kind in compared.items() if name not in kept}
    )


def _slots(side: SideColumns) -> dict[str, str]:
    """Which column every slot of a side holds."""
    return {slot_name(slot): name for slot, name in sorted(side.slots.items())}


def _keys(inputs: tuple[Input, Input], on: Any) -> list[tuple[KeyColumn, KeyColumn]]:
    takes = 'a column name, a list of names, or a list of ("left", "right") pairs'
    listed = [on] if isinstance(on, str) else on
    if not isinstance(listed, list | tuple) or not listed:
        raise bad_argument("on", on, takes)
    # ("a", "b") is two columns of the same name on both sides, [("a", "b")] is one pair.
    pairs: list[tuple[KeyColumn, KeyColumn]] = []
    for item in listed:
        names = (item, item) if isinstance(item, str) else item
        strings = isinstance(names, list | tuple) and all(isinstance(n, str) for n in names)
        if not strings or len(names) != 2:
            raise bad_argument("on", on, takes)
        left_name = inputs[0].resolve("on", names[0])
        right_name = inputs[1].resolve("on", names[1])
        left_type = inputs[0].type_of(left_name)
        right_type = inputs[1].type_of(right_name)
        common = types.common_key_type(left_type, right_type)
        if common is None:
            raise SkewlessError(
                f"on: cannot compare left {left_name!r} ({left_type.simpleString()}) with right "
                f"{right_name!r} ({right_type.simpleString()}); cast one of them, or join on "
                "columns of a plain comparable type"
            )
        if left_name in [p[0].name for p in pairs] or right_name in [p[1].name for p in pairs]:
            raise bad_argument("on", on, "each column once")
        pairs.append(
            (KeyColumn(left_name, left_type, common), KeyColumn(right_name, right_type, common))
        )
    return pairs


def _chooser(match: Match | None, matched: SetColumns | PointColumns | None) -> Chooser | None:
    """Who chooses of the rows that match; None: all are given."""
    if isinstance(match, AsOf):
        return ClosestInTime()
    return None if matched is None else matched.chooser


def _matched(inputs: tuple[Input, Input], match: Any) -> SetColumns | PointColumns | None:
    if match is None or isinstance(match, AsOf):
        return None
    if isinstance(match, Overlap | InnerProduct):
        return SetColumns.of(inputs, match)
    if isinstance(match, Near | Nearest):
        return PointColumns.of(inputs, match)
    takes = "sk.Overlap, sk.InnerProduct, sk.Near, sk.Nearest, sk.AsOf"
    raise bad_argument("match", match, f"{takes}, or None: equality on `on`")


def _times(inputs: tuple[Input, Input], time: Any) -> tuple[str, str]:
    names = (time, time) if isinstance(time, str) else time
    if not isinstance(names, list | tuple) or len(names) != 2:
        raise bad_argument("time", time, 'a column name, or ("left_name", "right_name")')
    left = inputs[0].resolve("time", names[0])
    right = inputs[1].resolve("time", names[1])
    for side, name in zip(inputs, (left, right), strict=True):
        kind = side.type_of(name)
        if not types.is_event_time(kind):
            raise SkewlessError(
                f"time: {side.argument} column {name!r} is {kind.simpleString()}; takes a "
                "timestamp column (to_timestamp makes one)"
            )
    if inputs[0].type_of(left) != inputs[1].type_of(right):
        raise SkewlessError(
            f"time: left {left!r} is {inputs[0].type_of(left).simpleString()}, right {right!r} is "
            f"{inputs[1].type_of(right).simpleString()}; takes two of the same type: cast one"
        )
    return left, right


def _bounds(within: Any) -> Bounds:
    if within is None:
        return Bounds(None, None)
    if isinstance(within, list | tuple):
        if len(within) != 2:
            raise bad_argument("within", within, "a duration, or (lower, upper), or None")
        ends = [None if w is None else parse_duration_us("within", w) for w in within]
        return Bounds(ends[0], ends[1])
    reach = parse_duration_us("within", within)
    if reach < 0:
        raise bad_argument("within", within, "a duration of at least 0, or (lower, upper)")
    return Bounds(-reach, reach)


def _delays(
    watermark: Any, inputs: tuple[Input, Input], times: tuple[str, str], timed: frozenset[str]
) -> Delays:
    own = {
        side: own_watermark(given, time, is_chained=side in timed)
        for side, given, time in zip(SIDES, inputs, times, strict=True)
    }
    if watermark is not FROM_INPUT and not isinstance(watermark, list | tuple):
        watermark = (watermark, watermark)
    if watermark is not FROM_INPUT and len(watermark) != 2:
        raise bad_argument("watermark", watermark, "a duration, or one per side, or None")
    delays = delays_of(watermark, own)
    if watermark is FROM_INPUT and set(delays.values()) == {None}:
        warn_of_late_rows("row", stacklevel=3)
        delays = dict.fromkeys(SIDES, 0)
    return Delays(delays, timed)


def _without_watermark(
    left: "DataFrame | Stream", right: "DataFrame | Stream", delays: Delays
) -> list[str]:
    """The sides whose watermark is waited for, and will never come from the operator before."""
    return [
        side
        for side, given in ((LEFT, left), (RIGHT, right))
        if delays.by_side[side] is not None
        and (timing := timing_of(given)) is not None
        and not timing.gives_watermark
    ]


def _no_watermark(side: str) -> str:
    return (
        f"the stream on the {side} has no watermark, because its operator has no bounds or an "
        "input that is never late"
    )


def _warn_of_growth(bounds: Bounds, delays: Delays, waiting: Sequence[str]) -> None:
    kept = bounds.keep_from_us(0, delays)
    sides = [side for side, keep_from in kept.items() if keep_from is None]
    if waiting:
        sides = [LEFT, RIGHT]
        why = _no_watermark(waiting[0])
    elif not sides:
        return
    elif None in (bounds.lower_us, bounds.upper_us):
        why = "within has no bound there"
    else:
        why = "the other side is never late (it has no watermark)"
    warnings.warn(
        f"the state of the {' and the '.join(sides)} side grows without bound: {why}",
        StateGrowsWarning,
        stacklevel=3,
    )
