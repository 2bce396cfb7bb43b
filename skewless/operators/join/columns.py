"""The columns of a join: which of them travel, which are stored, and what a pair shows."""

from dataclasses import dataclass, replace
from typing import Any

from skewless.engine.columns import LEFT_CODE, RIGHT_CODE, TIME, key_name, slot_name
from skewless.errors import SkewlessError, bad_argument
from skewless.operators.join.bounds import LEFT, RIGHT, SIDES
from skewless.operators.join.how import INNER, How
from skewless.operators.join.layout import Layout, OutputColumn
from skewless.operators.join.pairing import OTHER
from skewless.operators.join.points import PointColumns
from skewless.operators.join.sets import SetColumns
from skewless.operators.join.where import Where
from skewless.operators.slots import assign_slots
from skewless.runtime import types
from skewless.runtime.dispatch import KeyColumn, SideColumns
from skewless.runtime.inputs import Input
from skewless.shedding.policy import Shed, Shedding


@dataclass(frozen=True)
class Plan:
    left: SideColumns
    right: SideColumns
    slot_types: tuple[Any, ...]
    layout: Layout
    schema: Any
    joined_schema: Any  # the same, with what an inner join knows about nulls


def planned(
    inputs: tuple[Input, Input],
    keys: list[tuple[KeyColumn, KeyColumn]],
    times: tuple[str | None, str | None],
    suffix: str,
    matched: SetColumns | PointColumns | None = None,
    how: How = INNER,
    where: Where | None = None,
) -> Plan:
    left, right = inputs
    extra = {side: [] if where is None else where.extra(side) for side in SIDES}
    left_keys = {pair[0].name: i for i, pair in enumerate(keys)}
    right_keys = {pair[1].name for pair in keys}
    # A key that is compared in another form than the left's own travels as payload, too. Where
    # right rows may be given alone, the result has the form that both sides have.
    is_common = RIGHT in how.padded
    changed = [p[0].name for p in keys if p[0].kind != p[0].compared_as and not is_common]
    left_rest = [c for c in left.names if c not in left_keys and c != times[0]]
    left_payload = [*changed, *left_rest]
    right_payload = [c for c in right.names if c not in right_keys and c != times[1]]
    left_types = [left.type_of(c) for c in left_payload] + [kind for _, kind in extra[LEFT]]
    right_types = [right.type_of(c) for c in right_payload] + [kind for _, kind in extra[RIGHT]]
    # What the condition compares is stored with the rows, and never shown.
    left_payload += [name for name, _ in extra[LEFT]]
    right_payload += [name for name, _ in extra[RIGHT]]
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
    for name in right.names if how.gives_pairs else ():
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
        where.added[LEFT] if where is not None and extra[LEFT] else None,
    )
    right_columns = SideColumns(
        RIGHT_CODE,
        tuple(pair[1] for pair in keys),
        times[1],
        {slot: name for name, slot in right_slot.items()},
        where.added[RIGHT] if where is not None and extra[RIGHT] else None,
    )
    hashed = [pair[0].compared_as for pair in keys]
    distance = _distance(left, taken, matched) if how.gives_pairs else None
    layout = Layout(
        keys=len(keys),
        left_slots=tuple(slot_name(s) for s in sorted(left_slots)),
        # Right rows that are asked for and never shown are stored without what nobody compares.
        right_slots=tuple(slot_name(s) for s in sorted(right_slots))
        if how.gives_pairs or matched is not None or where is not None
        else (),
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
    if is_common:
        schema = types.retyped(schema, {pair[0].name: pair[0].compared_as for pair in keys})
    if distance is not None:
        schema = types.with_double(schema, distance)
    # Keys and times of a pair are never null, and Spark reads a column faster when it knows.
    never_null = {c.name for c in output if c.column == TIME} | set(left_keys)
    if how.padded:
        # A row that is given alone has no values of the other side, and may have no key.
        alone = {c.name for c in output if OTHER[c.side] in how.padded} | set(left_keys)
        schema = types.with_nulls(schema, alone if distance is None else {*alone, distance})
        never_null -= alone
    if how != INNER:
        layout = replace(layout, types=tuple(types.arrow_schema(schema).types[: len(output)]))
    return Plan(
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


def values_of(
    inputs: tuple[Input, Input], plan: Plan, shed: Shedding | None
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


def dropped_columns(given: Input, side: SideColumns) -> Any:
    """The columns of a side's dropped rows: those of the input, with keys as they are compared."""
    compared = {key.name: key.compared_as for key in side.keys}
    kept = set(side.slots.values())
    return types.retyped(
        given.schema, {name: kind for name, kind in compared.items() if name not in kept}
    )


def slots_of(side: SideColumns) -> dict[str, str]:
    """Which column every slot of a side holds."""
    return {slot_name(slot): name for slot, name in sorted(side.slots.items())}
