"""Checks the arguments of `sk.map` and turns them into an operator, before any Spark job."""

import inspect
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from itertools import islice
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from skewless.durations import parse_duration_us
from skewless.errors import SkewlessError, bad_argument
from skewless.operators.map.function import MapFunction, is_coroutine_function
from skewless.operators.map.layout import MapLayout
from skewless.operators.map.operator import MapOperator
from skewless.operators.map.task import INPUT
from skewless.planning.auto import Auto
from skewless.planning.hash import Hash
from skewless.planning.leastwork import LeastWork
from skewless.planning.policy import Policy
from skewless.planning.roundrobin import RoundRobin
from skewless.planning.scaling import largest
from skewless.planning.shuffle.policy import ShufflePolicy
from skewless.runtime import types
from skewless.runtime.dispatch import MapRows
from skewless.runtime.inputs import Input, read_input
from skewless.runtime.stream import Stream, fed_by
from skewless.runtime.topology import Node

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql import types as T

_ARROW = (pa.RecordBatch, pa.Table)


def map(
    df: "DataFrame | Stream",
    fn: Callable[..., Any],
    schema: "str | T.StructType | pa.Schema",
    *,
    cost_key: str | Sequence[str],
    balance: Policy | None = None,
    per_row: bool | None = None,
    concurrency: int = 1,
    ordered: bool = True,
    retries: int = 0,
    timeout: str | timedelta | None = None,
) -> Stream:
    """Applies a function whose time depends on the row, so that all instances are done together.

    `fn` takes and gives Arrow record batches, or, when the work per row is long, takes one row as a
    dictionary and gives one, a list of them, or None. `per_row` says which; by default it is found
    out by calling `fn` on an empty record batch. `cost_key` names the column or columns that drive
    the cost. Per row, `concurrency` calls are in flight at once in every instance (threads, or one
    event loop for a coroutine function), in order or not; a call that fails is made again up to
    `retries` times, one that takes longer than `timeout` fails.

        enriched = sk.map(tweets, look_up, "id long, entity string", cost_key="mention",
                          concurrency=8, retries=2, timeout="5 seconds")
    """
    given = read_input("df", df)
    keys = _cost_key(given, cost_key)
    result = types.output_schema("schema", schema)
    if (repeated := given.first_repeated(result.names)) is not None:
        raise bad_argument("schema", repeated, "each column name once")
    policy = _policy(balance)
    if per_row is None:
        of_rows = {"concurrency": concurrency != 1, "retries": retries, "timeout": timeout}
        asked = [name for name, value in of_rows.items() if value]
        per_row = _is_of_rows(fn, asked, types.arrow_schema(given.schema))
    limit = None if timeout is None else parse_duration_us("timeout", timeout) / 1e6
    layout = MapLayout(tuple(given.names))
    operator = MapOperator(
        layout=layout,
        schema=result,
        function=MapFunction(fn, per_row, concurrency, ordered, retries, limit),
        policy=policy,
        fingerprint={
            "operator": "map",
            "input": given.described(),
            "costKey": list(keys),
            "schema": [[f.name, str(f.type)] for f in result],
        },
    )
    rows = MapRows(keys, layout.columns)
    shown = types.spark_schema("schema", result)
    node = Node(
        operator=operator,
        **fed_by(df, rows=rows),
        schema=shown,
        keeps_time=True,
        inputs={INPUT: given.schema},
    )
    return Stream(node, shown, df.sparkSession)


def _policy(balance: Policy | None) -> ShufflePolicy:
    """Policies for all operators mean here: by cost (Auto), or evenly whatever rows cost (Hash)."""
    if balance is None:
        return LeastWork()
    if isinstance(balance, Auto):
        return LeastWork(largest(balance.instances, 1) if balance.instances else None)
    if isinstance(balance, Hash):
        return RoundRobin(balance.instances)
    if not isinstance(balance, ShufflePolicy):
        raise bad_argument("balance", balance, "sk.LeastWork(), sk.Posg() or sk.RoundRobin()")
    return balance


def _cost_key(given: Input, cost_key: Any) -> tuple[str, ...]:
    names = given.resolve_all("cost_key", cost_key)
    for name in names:
        if not types.is_hashable(given.type_of(name)):
            raise bad_argument(
                "cost_key", name, "columns that Spark can hash: no maps, no variants"
            )
    return names


def _is_of_rows(fn: Any, asked: Sequence[str], schema: pa.Schema) -> bool:
    """Whether a function is for single rows: by its annotations, else by trying it.

    `asked` are the options for functions of rows that are used.
    """
    if not callable(fn):
        raise bad_argument("fn", fn, "a function")
    if is_coroutine_function(fn):
        return True
    kind = _first_annotation(fn)
    if isinstance(kind, type) and issubclass(kind, _ARROW):
        if asked:
            takes = f"a function of single rows: {fn} is annotated to take a {kind.__name__}"
            raise SkewlessError(f"{asked[0]}: is for {takes}")
        return False
    if asked or (isinstance(kind, type) and issubclass(kind, Mapping)):
        return True
    empty = pa.RecordBatch.from_pylist([], schema)
    try:
        result = fn(empty)
        if isinstance(result, Iterator):
            result = list(islice(result, 1))
    except Exception as failure:
        # A function that fails on a record batch may be meant for rows.
        try:
            fn(dict.fromkeys(schema.names))
        except Exception:
            raise SkewlessError(
                f"per_row: cannot tell whether fn takes record batches or rows: on an empty record "
                f"batch it raised {type(failure).__name__}: {failure}; say per_row=True or False"
            ) from failure
        return True
    if isinstance(result, list | tuple):
        if not result:
            raise SkewlessError(
                "per_row: cannot tell whether fn takes record batches or rows: on an empty record "
                "batch it gave nothing; say per_row=True or False"
            )
        return not isinstance(result[0], _ARROW)
    return not isinstance(result, _ARROW)


def _first_annotation(fn: Any) -> Any:
    """What the first parameter is annotated with, without its arguments."""
    try:
        name = next(iter(inspect.signature(fn).parameters))
        hint = typing.get_type_hints(fn).get(name)
    except Exception:  # no signature, no parameter, or an annotation that cannot be resolved
        return None
    return typing.get_origin(hint) or hint
