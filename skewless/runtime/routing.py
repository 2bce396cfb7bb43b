"""Routes in Spark SQL: the same instances as `skewless.routing`, without Python per row.

Expressions are built as SQL text and parsed once: put together call by call, each part would cost a
trip into the JVM in every batch. Constant arrays are one text literal that the optimiser folds, so
they do not change the generated code.
"""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from skewless.operators.join.layout import (
    HASH,
    INSTANCE,
    LEFT_CODE,
    REPLICA,
    RIGHT_CODE,
    SIDE,
)
from skewless.routing.join_matrix import grid_shape
from skewless.routing.partitions import HASH_SHIFT, SCALE_SHIFT, PartitionTable
from skewless.routing.route import Route

_HOME = "home"


def hashable_columns(schema: T.StructType) -> tuple[str, ...]:
    """The columns that tell rows apart and that Spark can hash."""
    return tuple(f.name for f in schema.fields if _is_hashable(f.dataType))


def positioned(instance: str, position: Sequence[int]) -> Column:
    """The task number of an instance."""
    return F.expr(f"get({_constants(position)}, {instance})")


def visits(batch: DataFrame, route: Route, spread_columns: Sequence[str]) -> tuple[DataFrame, str]:
    """The rows as they go to instances, and the SQL expression that names the instance.

    Where rows may visit several instances, they are repeated, and all but the one at home are
    marked as replicas.
    """
    if route.kind == "table" and not route.splits:
        return batch, _owner(route.table)
    # An even number of a row that is the same whenever the row is read again.
    spread = f"xxhash64({', '.join(spread_columns)})"
    home = _home_of(route, spread)
    if not route.replicates:
        return batch, home
    targets = f"explode({_targets(route)}) AS {INSTANCE}"
    sent = batch.selectExpr("*", f"{home} AS {_HOME}").selectExpr("*", targets)
    marked = f"CAST({SIDE} + IF({INSTANCE} = {_HOME}, 0, {REPLICA}) AS TINYINT) AS {SIDE}"
    others = [c for c in batch.columns if c != SIDE]
    return sent.selectExpr(marked, *others, INSTANCE), INSTANCE


def _home_of(route: Route, spread: str) -> str:
    """The instance that keeps a row."""
    if route.kind == "groups":
        first, size = _group(route)
        return f"CAST({first} + {_scaled(spread, size)} AS INT)"
    if route.kind == "grid":
        rows, columns = grid_shape(route.instances)
        along = f"{_scaled(spread, rows)} * {columns} + {_scaled(HASH, columns)}"
        down = f"{_scaled(spread, columns)} + {_scaled(HASH, rows)} * {columns}"
        return f"CAST(IF({SIDE} = {LEFT_CODE}, {along}, {down}) AS INT)"
    size, begin = _of_split(route)
    member = f"get({_members(route)}, CAST({begin} + {_scaled(spread, size)} AS INT))"
    is_split = f"{_may_be_split(route)} AND {size} IS NOT NULL"
    return f"IF({is_split}, {member}, {_owner(route.table)})"


def _targets(route: Route) -> str:
    """All the instances that a row visits."""
    alone = f"array({_HOME})"
    if route.kind == "groups":
        first, size = _group(route)
        group = f"CAST(sequence({first}, {first} + {size} - 1) AS ARRAY<INT>)"
        return f"IF({SIDE} = {LEFT_CODE}, {alone}, {group})"
    if route.kind == "grid":
        rows, columns = grid_shape(route.instances)
        line = f"({_HOME} DIV {columns} * {columns})"
        along = f"sequence({line}, {line} + {columns - 1})"
        place = f"({_HOME} % {columns})"
        down = f"sequence({place}, {place} + {(rows - 1) * columns}, {columns})"
        both = f"CAST({along} AS ARRAY<INT>), CAST({down} AS ARRAY<INT>)"
        return f"IF({SIDE} = {LEFT_CODE}, {both})"
    size, begin = _of_split(route)
    sides = [LEFT_CODE if s.replicated == "left" else RIGHT_CODE for s in route.splits]
    replicated = f"get({_constants(sides)}, {_split_index(route)}) = {SIDE}"
    members = f"slice({_members(route)}, {begin} + 1, {size})"
    return f"IF({_may_be_split(route)} AND {replicated}, {members}, {alone})"


def _members(route: Route) -> str:
    return _constants([m for s in route.splits for m in s.members])


def _may_be_split(route: Route) -> str:
    """Only rows of a partition that has a split key are compared with the split keys."""
    touched = {s.partition for s in route.splits}
    flags = [1 if p in touched else 0 for p in range(route.partitions)]
    return f"get({_constants(flags)}, {_partition(route.table)}) = 1"


def _of_split(route: Route) -> tuple[str, str]:
    """How many members the row's split key has and where they begin; null for other keys."""
    sizes = [len(s.members) for s in route.splits]
    begins = [sum(sizes[:i]) for i in range(len(sizes))]
    index = _split_index(route)
    return f"get({_constants(sizes)}, {index})", f"get({_constants(begins)}, {index})"


def _split_index(route: Route) -> str:
    """The row's place among the split keys; −1, which is no place, for other keys."""
    signed = [s.hash - 2**64 if s.hash >= 2**63 else s.hash for s in route.splits]
    return f"CAST(array_position({_constants(signed, 'BIGINT')}, {HASH}) - 1 AS INT)"


def _group(route: Route) -> tuple[str, str]:
    first = f"({_owner(route.table)} DIV {route.group} * {route.group})"
    return first, f"least({route.group}, {route.instances} - {first})"


def _owner(table: PartitionTable) -> str:
    return f"get({_constants(table.assignment)}, {_partition(table)})"


def _partition(table: PartitionTable) -> str:
    upper = f"shiftrightunsigned({HASH}, {HASH_SHIFT})"
    return f"CAST(shiftright({upper} * {table.partitions}, {SCALE_SHIFT}) AS INT)"


def _scaled(spread: str, size: str | int) -> str:
    """`skewless.routing.router.scaled`."""
    return f"shiftrightunsigned(shiftrightunsigned({spread}, 32) * {size}, 32)"


def _constants(numbers: Sequence[int], kind: str = "INT") -> str:
    return f"CAST(split('{','.join(map(str, numbers))}', ',') AS ARRAY<{kind}>)"


def _is_hashable(kind: T.DataType) -> bool:
    if isinstance(kind, T.ArrayType):
        return _is_hashable(kind.elementType)
    if isinstance(kind, T.StructType):
        return all(_is_hashable(f.dataType) for f in kind.fields)
    return not isinstance(kind, T.MapType | T.VariantType)
