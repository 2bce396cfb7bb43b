"""Checks the arguments of `sk.join` and turns them into an operator, before any Spark job."""

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from skewless.durations import Duration
from skewless.errors import SkewlessError, StateGrowsWarning, bad_argument
from skewless.operators.balance import routing_policy
from skewless.operators.join.arguments import (
    NOT_GIVEN,
    NotGiven,
    bounds_of,
    delays_by_side,
    keys_of,
    times_of,
)
from skewless.operators.join.asof import AsOf
from skewless.operators.join.bounds import LEFT, RIGHT, Bounds
from skewless.operators.join.choosing import Chooser, ClosestInTime
from skewless.operators.join.columns import dropped_columns, planned, slots_of, values_of
from skewless.operators.join.frames import closed, joined_batch, nothing_late
from skewless.operators.join.how import INNER, How
from skewless.operators.join.match import InnerProduct, Match, Overlap
from skewless.operators.join.near import Near, Nearest
from skewless.operators.join.operator import JoinOperator
from skewless.operators.join.points import PointColumns
from skewless.operators.join.sets import SetColumns
from skewless.operators.join.where import where_of
from skewless.operators.lateness import FROM_INPUT, FromInput
from skewless.operators.lookup.call import Asked, is_table, lookup
from skewless.planning.policy import Policy
from skewless.runtime.dispatch import JoinRows
from skewless.runtime.inputs import Input, read_input, read_table, refuse_updates
from skewless.runtime.lookups import TableFunction
from skewless.runtime.stream import Stream, fed_by, timing_of
from skewless.runtime.topology import Node
from skewless.shedding.policy import Shedding
from skewless.state.watermark import Delays

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def join(
    left: "DataFrame | Stream | TableFunction",
    right: "DataFrame | Stream | TableFunction",
    *,
    on: str | Sequence[str] | Sequence[tuple[str, str]] | None = None,
    time: str | tuple[str, str] | None = None,
    within: Duration | tuple[Duration | None, Duration | None] | NotGiven | None = NOT_GIVEN,
    how: str = "inner",
    watermark: Duration | tuple[Duration | None, Duration | None] | FromInput | None = FROM_INPUT,
    where: str | None = None,
    match: Match | None = None,
    balance: Policy | None = None,
    shed: Shedding | None = None,
    suffix: str = "_right",
    refresh: Duration | None = None,
) -> Stream:
    """Joins two streams on equal keys where `lower ≤ right.time − left.time ≤ upper`.

    Each of them is a streaming DataFrame or the result of another operator. One of them may be a
    table: a DataFrame that does not stream, or a function from SparkSession to one. It is read in
    the first batch, and with `refresh` again whenever it is so old; `time`, `within` and
    `watermark` may then be left out. Two DataFrames that do not stream give a DataFrame: the rows
    that the streams would give in the end.

    `on` names the key columns, `time` the event-time columns, `within` the bounds (one duration
    means both ways), `watermark` the allowed lateness per side (None: never late; by default the
    inputs' own `withWatermark`, else "0 seconds" with a warning). `how` is "inner", "left",
    "right", "full", "left_semi" or "left_anti": a row without a match is given once, with nulls,
    when the watermark says that none can come any more. `where` is a condition on the pair, in SQL
    over the columns of both sides, such as `left.price < right.limit`. `match` joins by sets,
    `sk.Overlap` or `sk.InnerProduct`, or by distance, `sk.Near` or `sk.Nearest`; `on` may then be
    left out. `match=sk.AsOf(...)` gives, of all rows with equal keys, the one closest in time.
    `shed` keeps the time of a batch below a limit by probing less when the input is too fast.
    The result has the key columns once, then the left's other columns, then the right's, with
    `suffix` where a name is taken.

        matches = sk.join(orders, drivers, on="cell", time=("ordered_at", "seen_at"),
                          within=("-10 seconds", "10 seconds"), watermark="5 seconds")
        query = matches.writeStream.format("parquet").option("checkpointLocation", c).start(path)
    """
    tables = is_table(left), is_table(right)
    if tables in ((True, False), (False, True)):
        asked = Asked(
            on, time, within, how, watermark, where, match, balance, shed, suffix, refresh
        )
        return lookup(left, right, asked, _matched)
    if refresh is not None:
        raise bad_argument("refresh", refresh, "None, unless a stream is joined with a table")
    left, right = cast("DataFrame | Stream", left), cast("DataFrame | Stream", right)
    is_batch = all(tables)
    read = read_table if is_batch else read_input
    inputs = (read("left", left), read("right", right))
    refuse_updates("left", left)
    refuse_updates("right", right)
    kind = How.of(how)
    _check_shed(shed)
    matched = _matched(inputs, match)
    policy = routing_policy(balance, "sk.Hash(instances=4) or sk.Auto()")
    if not isinstance(suffix, str) or not suffix:
        raise bad_argument("suffix", suffix, "a text that is not empty")
    if policy.needs_combinable:
        raise bad_argument("balance", policy, "another policy: sk.PKG is for sk.Count and sk.Agg")
    keys = [] if on is None and matched is not None else keys_of(inputs, on)
    times = times_of(inputs, time)
    is_common = RIGHT in kind.padded
    wanted = where_of(left.sparkSession, inputs, keys, where, keys_are_common=is_common)
    bounds = bounds_of(within)
    if isinstance(match, AsOf):
        bounds = match.within(bounds)
    timed = _timed(left, right)
    if is_batch:
        delays = nothing_late(shed)
        if kind != INNER or isinstance(match, Nearest | AsOf):
            bounds = closed(bounds)
    else:
        delays = delays_by_side(watermark, inputs, times, frozenset(timed))
    waiting = _without_watermark(left, right, delays)
    if waiting and isinstance(match, Nearest | AsOf):
        raise SkewlessError(
            f"watermark: {_no_watermark(waiting[0])}; sk.{type(match).__name__} takes streams that "
            "have one: a left row is given when the watermark has passed it"
        )
    if waiting and kind != INNER:
        raise SkewlessError(
            f"watermark: {_no_watermark(waiting[0])}; how={kind.name!r} takes streams that have "
            "one: whether a row has a match is known when the watermark has passed it"
        )
    _check_condition(kind, match)
    if not is_batch:
        kind.check(bounds, delays)
        _warn_of_growth(bounds, delays, waiting)
    plan = planned(inputs, keys, times, suffix, matched, kind, wanted)
    operator = JoinOperator(
        layout=replace(plan.layout, values=values_of(inputs, plan, shed)),
        bounds=bounds,
        delays=delays,
        policy=policy,
        fingerprint={
            "operator": "join",
            "how": kind.name,
            "left": inputs[0].described(),
            "right": inputs[1].described(),
            "on": [[pair[0].name, pair[1].name] for pair in keys],
            "time": list(times),
            "withinUs": [bounds.lower_us, bounds.upper_us],
            # Slots name the columns of segments. They depend on more of a type than its name.
            "slots": {LEFT: slots_of(plan.left), RIGHT: slots_of(plan.right)},
            **({} if matched is None else {"match": matched.described()}),
            **({"asOf": match.direction} if isinstance(match, AsOf) else {}),
            **({} if wanted is None else {"where": wanted.described()}),
        },
        how=kind,
        shedding=shed,
        condition=None
        if matched is None
        else matched.condition(plan.layout, plan.left, plan.right),
        chooser=_chooser(match, matched),
        where=None if wanted is None else wanted.bound(plan.left, plan.right),
    )
    rows = JoinRows(
        plan.left,
        plan.right,
        plan.slot_types,
        with_hash=matched is None and not plan.layout.hash_from_key,
        index=None if matched is None else matched.rows(plan.layout, plan.left, plan.right),
    )
    if is_batch:
        frames: Any = (left, right)
        return joined_batch(rows(*frames), operator, plan.schema)  # type: ignore[return-value]
    node = Node(
        operator=operator,
        **fed_by(left, right, rows=rows),
        schema=plan.joined_schema,
        timed_by=timed,
        # Rows of a split key meet in the batch; a semi join asks the state for them instead.
        replicates=not kind.is_semi,
        inputs={
            LEFT: dropped_columns(inputs[0], plan.left),
            RIGHT: dropped_columns(inputs[1], plan.right),
        },
    )
    return Stream(node, plan.schema, left.sparkSession)


def _check_condition(how: How, match: Match | None) -> None:
    """Refuses types of joins that a condition cannot have."""
    if isinstance(match, Near) and RIGHT in how.padded:
        takes = (
            "'inner', 'left', 'left_semi' or 'left_anti' with sk.Near: swap the inputs and the "
            "bounds of `within`"
        )
        raise bad_argument("how", how.name, takes)
    if isinstance(match, Overlap | InnerProduct) and how.is_semi:
        takes = (
            f"another type with sk.{type(match).__name__}: take the inner join and drop what is "
            "there more than once"
        )
        raise bad_argument("how", how.name, takes)


def _check_shed(shed: object) -> None:
    if shed is not None and not isinstance(shed, Shedding):
        takes = 'sk.Shed(max_latency="2 seconds"), or None: every pair is found'
        raise bad_argument("shed", shed, takes)


def _timed(left: "DataFrame | Stream", right: "DataFrame | Stream") -> dict[str, int]:
    """The sides that an operator feeds and times, by the number of the child."""
    sides = enumerate(((LEFT, left), (RIGHT, right)))
    return {side: number for number, (side, given) in sides if timing_of(given) is not None}


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
