"""Checks the arguments of `sk.keyed` and turns them into an operator, before any Spark job."""

import contextlib
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from skewless.durations import Duration
from skewless.errors import SkewlessError, StateGrowsWarning, bad_argument, check_parameters
from skewless.operators.balance import routing_policy
from skewless.operators.keyed.layout import INPUT
from skewless.operators.keyed.operator import KeyedOperator, default_mode, layout_of
from skewless.operators.keyed.process import (
    Agg,
    Count,
    Function,
    Process,
    SelfJoin,
    infer_schemas,
)
from skewless.operators.keyed.windows import SessionWindow, Window, Windows, window_of
from skewless.operators.lateness import (
    FROM_INPUT,
    FromInput,
    OwnWatermark,
    delays_of,
    own_watermark,
    warn_of_late_rows,
)
from skewless.planning.policy import Policy
from skewless.runtime import types
from skewless.runtime.dispatch import KeyedRows
from skewless.runtime.inputs import Input, read_input, refuse_updates
from skewless.runtime.stream import Stream, fed_by, timing_of
from skewless.runtime.topology import Node
from skewless.state.watermark import Delays

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame
    from pyspark.sql import types as T


def keyed(
    df: "DataFrame | Stream",
    by: str | Sequence[str],
    *,
    time: str,
    window: Duration | SessionWindow | None = None,
    slide: Duration | None = None,
    process: Count | Agg | SelfJoin | Callable[..., Any],
    watermark: Duration | FromInput | None = FROM_INPUT,
    balance: Policy | None = None,
    schema: "str | T.StructType | pa.Schema | None" = None,
    state_schema: "str | T.StructType | pa.Schema | None" = None,
) -> Stream:
    """Works on the rows of every key, in windows of event time or without.

    `process` is `sk.Count()`, `sk.Agg({"total": ("sum", "amount")})`, `sk.SelfJoin(within=...)`, or
    a function `fn(batch, state) -> (out, state)` on Arrow tables, called once per instance and
    batch with all keys at once. `window` is a duration (with `slide`: sliding windows) or
    `sk.SessionWindow(gap)`; `watermark` the allowed lateness (None: never late; by default the
    input's own `withWatermark`, else "0 seconds" with a warning). What a function gives and keeps
    is found by calling it on an empty batch, unless `schema` and `state_schema` say it.

        counts = sk.keyed(words, "word", time="at", window="1 minute", process=sk.Count())
        query = counts.writeStream.format("parquet").option("checkpointLocation", c).start(path)
    """
    given = read_input("df", df)
    refuse_updates("df", df)
    names = _by(given, by)
    at = _time(given, time)
    if at in names:
        raise bad_argument("by", at, "columns other than the event time")
    windows = window_of(window, slide)
    policy = routing_policy(balance, "sk.Mixed(instances=4)")
    arrow = types.arrow_schema(given.schema)
    work = _process(_resolved(process, given), arrow, at, windows, schema, state_schema)
    timed = _is_timed(df, work, windows)
    delay = _delay(watermark, own_watermark(given, at, is_chained=timed), work, windows)
    mode = default_mode(work, windows, delay)
    _warn_of_growth(work, windows, delay)
    layout = layout_of(
        arrow,
        names,
        at,
        work,
        hash_is_key=types.hashes_one_to_one([given.type_of(n) for n in names]),
    )
    operator = KeyedOperator(
        layout=layout,
        process=work,
        window=windows,
        delays=Delays({INPUT: delay}, frozenset([INPUT] if timed else [])),
        policy=policy,
        fingerprint={
            "operator": "keyed",
            "input": given.described(),
            "by": list(names),
            "time": at,
            "window": None if windows is None else windows.describe(),
            **work.describe(),
            "outputMode": mode,
        },
        mode=mode,
    )
    result = types.spark_schema("process", operator.output_schema)
    if windows is not None and isinstance(work, Count | Agg):
        is_session = isinstance(windows, SessionWindow)
        result = types.with_window(result, windows.column, is_session=is_session)
    if (repeated := given.first_repeated(result.names)) is not None:
        raise bad_argument("process", repeated, "output names of which each is there once")
    return Stream(_node(df, operator, given, result, timed=timed), result, df.sparkSession)


def _node(
    df: "DataFrame | Stream",
    operator: KeyedOperator,
    given: Input,
    result: "T.StructType",
    *,
    timed: bool,
) -> Node:
    layout = operator.layout
    rows = KeyedRows(layout.by, layout.time, layout.payload)
    wider = replace(operator, layout=layout.with_all_columns())
    return Node(
        operator=operator,
        **fed_by(df, rows=rows),
        schema=result,
        timed_by={INPUT: 0} if timed else {},
        inputs={INPUT: given.schema},
        whole=partial(_node, df, wider, given, result, timed=timed),
    )


def _delay(watermark: Any, own: OwnWatermark, process: Process, windows: Window) -> int | None:
    delay = delays_of(watermark if watermark is FROM_INPUT else [watermark], {INPUT: own})[INPUT]
    if delay is not None or watermark is not FROM_INPUT:
        return delay
    if windows is not None:
        warn_of_late_rows("row whose window ends", stacklevel=3)
    elif not isinstance(process, Count | Agg):  # of which no row is ever late
        warn_of_late_rows("row", stacklevel=3)
    return 0


def _is_timed(df: "DataFrame | Stream", process: Process, windows: Window) -> bool:
    """Whether an operator upstream says how far event time has come."""
    timing = timing_of(df)
    if timing is None:
        return False
    if windows is not None and not timing.gives_watermark:
        raise bad_argument(
            "df",
            "a stream without a watermark",
            "one whose operator has bounds and a watermark, because a window must close",
        )
    return True


def _by(given: Input, by: Any) -> tuple[str, ...]:
    names = given.resolve_all("by", by)
    if len(set(names)) < len(names):
        raise bad_argument("by", by, "each column once")
    for name in names:
        kind = given.type_of(name)
        if types.common_key_type(kind, kind) is None:
            raise SkewlessError(
                f"by: column {name!r} is {kind.simpleString()}, which is no plain comparable type; "
                "cast it, or group by parts of it"
            )
    return names


def _time(given: Input, time: Any) -> str:
    name = given.resolve("time", time)
    kind = given.type_of(name)
    if not types.is_event_time(kind):
        raise SkewlessError(
            f"time: column {name!r} is {kind.simpleString()}; takes a timestamp column "
            "(to_timestamp makes one; of a window: "
            '.transform(lambda df: df.withColumn("at", F.window_time("window"))))'
        )
    return name


def _process(
    process: Any,
    schema: "pa.Schema",
    at: str,
    windows: Window,
    out: Any,
    state: Any,
) -> Process:
    if isinstance(process, Count | Agg | SelfJoin):
        for name, value in (("schema", out), ("state_schema", state)):
            if value is not None:
                raise bad_argument(name, value, "None, unless process is a function")
        return process
    if not callable(process) or isinstance(process, type):
        raise bad_argument(
            "process",
            process,
            "sk.Count(), sk.Agg({...}), sk.SelfJoin(within=...) or fn(batch, state)",
        )
    check_parameters("process", process, 2, "a function of a batch and its state")
    kept = None if state is None else types.as_arrow_schema("state_schema", state)
    if out is not None and kept is not None:
        return Function(process, types.output_schema("schema", out), kept)
    seen = schema
    if isinstance(windows, Windows):
        import pyarrow as pa

        moment = schema.field(at).type
        seen = schema.append(
            pa.field(windows.column, pa.struct([("start", moment), ("end", moment)]))
        )
    if out is not None:
        # It may keep state or not; one that cannot be tried on an empty batch keeps none.
        with contextlib.suppress(SkewlessError):
            kept = infer_schemas(process, seen)[1]
        return Function(process, types.output_schema("schema", out), kept)
    found, inferred = infer_schemas(process, seen)
    return Function(process, found, inferred if kept is None else kept)


def _resolved(process: Any, given: Input) -> Any:
    """The aggregates with their columns as the input has them: names as the session folds them."""
    if not isinstance(process, Agg):
        return process
    columns = {m.column: given.resolve("process", m.column) for m in process.measures if m.column}
    return process.on(columns)


def _warn_of_growth(process: Process, windows: Window, delay: int | None) -> None:
    if windows is not None and delay is not None:
        return
    if isinstance(process, SelfJoin) and delay is not None:
        return
    why = "there is no window" if windows is None else "no row is ever late (watermark None)"
    if isinstance(process, SelfJoin):
        why = "no row is ever late (watermark None)"
    warnings.warn(
        f"the state of every key is kept without bound: {why}", StateGrowsWarning, stacklevel=3
    )
