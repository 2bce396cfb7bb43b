"""Reads the arguments of `sk.join` that name columns and times."""

from enum import Enum
from typing import Any, Final

from skewless.durations import parse_duration_us
from skewless.errors import SkewlessError, bad_argument
from skewless.operators.join.bounds import SIDES, Bounds
from skewless.operators.lateness import FROM_INPUT, delays_of, own_watermark, warn_of_late_rows
from skewless.runtime import types
from skewless.runtime.dispatch import KeyColumn
from skewless.runtime.inputs import Input
from skewless.state.watermark import Delays


class NotGiven(Enum):
    """The default of an argument for which None has a meaning."""

    NOT_GIVEN = "not given"

    def __repr__(self) -> str:
        return self.name


NOT_GIVEN: Final = NotGiven.NOT_GIVEN


def keys_of(inputs: tuple[Input, Input], on: Any) -> list[tuple[KeyColumn, KeyColumn]]:
    takes = (
        'a column name, a list of names, or a list of ("left", "right") pairs; other conditions '
        "go into `where`, as SQL text"
    )
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
        if isinstance(item, str) and _is_pair(inputs, on):
            raise bad_argument("on", on, f"a pair of columns as a list: on=[{tuple(on)!r}]")
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


def _is_pair(inputs: tuple[Input, Input], on: Any) -> bool:
    """Whether two names can only be meant as one of the left and one of the right side."""
    if not isinstance(on, tuple) or len(on) != 2 or not all(isinstance(n, str) for n in on):
        return False
    known = [{given.fold(name) for name in given.names} for given in inputs]
    left, right = inputs[0].fold(on[0]), inputs[1].fold(on[1])
    in_both = left in known[1] and right in known[0]
    return left in known[0] and right in known[1] and (left == right or not in_both)


def times_of(inputs: tuple[Input, Input], time: Any) -> tuple[str, str]:
    names = (time, time) if isinstance(time, str) else time
    if time is None:
        takes = 'the event-time columns, ("left_name", "right_name"), or one name for both'
        raise bad_argument("time", time, takes)
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


def bounds_of(within: Any) -> Bounds:
    if within is None:
        return Bounds(None, None)
    if within is NOT_GIVEN:
        takes = "a duration, or (lower, upper), or None: no time condition, and state that grows"
        raise bad_argument("within", "nothing", takes)
    if isinstance(within, list | tuple):
        if len(within) != 2:
            raise bad_argument("within", within, "a duration, or (lower, upper), or None")
        ends = [None if w is None else parse_duration_us("within", w) for w in within]
        return Bounds(ends[0], ends[1])
    reach = parse_duration_us("within", within)
    if reach < 0:
        raise bad_argument("within", within, "a duration of at least 0, or (lower, upper)")
    return Bounds(-reach, reach)


def delays_by_side(
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
