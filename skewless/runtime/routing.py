"""Routes in Spark SQL: the same instances as `skewless.routing`, without Python per row."""

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


def constants(numbers: Sequence[int], kind: T.DataType | None = None) -> Column:
    """A constant array of numbers.

    Written as one text literal that the optimiser folds: building it element by element would cost
    a call into the JVM each, and as a constant it does not change the generated code.
    """
    text = F.split(F.lit(",".join(map(str, numbers))), ",")
    return text.cast(T.ArrayType(kind or T.IntegerType()))


def visits(batch: DataFrame, route: Route) -> tuple[DataFrame, Column]:
    """The rows as they go to instances, and the column that names the instance.

    Where rows may visit several instances, they are repeated, and all but the one at home are
    marked as replicas.
    """
    if route.kind == "table" and not route.splits:
        return batch, _owner(route.table)
    home = _home_of(route, _spread(batch))
    if not route.replicates:
        return batch, home
    targets = F.explode(_targets(route))
    sent = batch.withColumn(_HOME, home).withColumn(INSTANCE, targets)
    replica = F.when(F.col(INSTANCE) == F.col(_HOME), 0).otherwise(REPLICA)
    marked = sent.withColumn(SIDE, (F.col(SIDE) + replica).cast(T.ByteType()))
    return marked.drop(_HOME), F.col(INSTANCE)


def _home_of(route: Route, spread: Column) -> Column:
    """The instance that keeps a row."""
    if route.kind == "groups":
        first, size = _group(route)
        return (first + _scaled(spread, size)).cast("int")
    if route.kind == "grid":
        rows, columns = grid_shape(route.instances)
        along = _scaled(spread, F.lit(rows)) * columns + _scaled(F.col(HASH), F.lit(columns))
        down = _scaled(spread, F.lit(columns)) + _scaled(F.col(HASH), F.lit(rows)) * columns
        return F.when(_is_left(), along).otherwise(down).cast("int")
    size, begin = _of_split(route)
    members = constants([m for s in route.splits for m in s.members])
    member = F.get(members, (begin + _scaled(spread, size)).cast("int"))
    return F.when(_may_be_split(route) & size.isNotNull(), member).otherwise(_owner(route.table))


def _targets(route: Route) -> Column:
    """All the instances that a row visits."""
    alone = F.array(F.col(_HOME))
    if route.kind == "groups":
        first, size = _group(route)
        group = F.sequence(first, first + size - 1).cast(T.ArrayType(T.IntegerType()))
        return F.when(_is_left(), alone).otherwise(group)
    if route.kind == "grid":
        rows, columns = grid_shape(route.instances)
        line = F.floor(F.col(_HOME) / columns) * columns
        along = F.sequence(line, line + columns - 1)
        place = F.col(_HOME) % columns
        down = F.sequence(place, place + (rows - 1) * columns, F.lit(columns))
        numbers = T.ArrayType(T.IntegerType())
        return F.when(_is_left(), along.cast(numbers)).otherwise(down.cast(numbers))
    size, begin = _of_split(route)
    members = constants([m for s in route.splits for m in s.members])
    sides = constants([LEFT_CODE if s.replicated == "left" else RIGHT_CODE for s in route.splits])
    replicated = _may_be_split(route) & (F.get(sides, _split_index(route)) == F.col(SIDE))
    return F.when(replicated, F.slice(members, begin + 1, size)).otherwise(alone)


def _may_be_split(route: Route) -> Column:
    """Only rows of a partition that has a split key are compared with the split keys."""
    touched = {s.partition for s in route.splits}
    flags = [1 if p in touched else 0 for p in range(route.partitions)]
    return F.get(constants(flags), _partition(route.table)) == 1


def _of_split(route: Route) -> tuple[Column, Column]:
    """How many members the row's split key has and where they begin; null for other keys."""
    sizes = [len(s.members) for s in route.splits]
    begins = [sum(sizes[:i]) for i in range(len(sizes))]
    index = _split_index(route)
    return F.get(constants(sizes), index), F.get(constants(begins), index)


def _split_index(route: Route) -> Column:
    """The row's place among the split keys; −1, which is no place, for other keys."""
    signed = [s.hash - 2**64 if s.hash >= 2**63 else s.hash for s in route.splits]
    position = F.array_position(constants(signed, T.LongType()), F.col(HASH))
    return (position - 1).cast("int")


def _group(route: Route) -> tuple[Column, Column]:
    first = F.floor(_owner(route.table) / route.group) * route.group
    return first, F.least(F.lit(route.group), F.lit(route.instances) - first)


def _owner(table: PartitionTable) -> Column:
    return F.get(constants(table.assignment), _partition(table))


def _partition(table: PartitionTable) -> Column:
    upper = F.shiftrightunsigned(F.col(HASH), HASH_SHIFT)
    return F.shiftright(upper * F.lit(table.partitions), SCALE_SHIFT).cast("int")


def _is_left() -> Column:
    return F.col(SIDE) == F.lit(LEFT_CODE)


def _spread(batch: DataFrame) -> Column:
    """An even number of a row that is the same whenever the row is read again."""
    return F.xxhash64(*(F.col(f.name) for f in batch.schema.fields if _hashable(f.dataType)))


def _hashable(kind: T.DataType) -> bool:
    if isinstance(kind, T.ArrayType):
        return _hashable(kind.elementType)
    if isinstance(kind, T.StructType):
        return all(_hashable(f.dataType) for f in kind.fields)
    return not isinstance(kind, T.MapType | T.VariantType)


def _scaled(spread: Column, size: Column) -> Column:
    """`skewless.routing.router.scaled`."""
    return F.shiftrightunsigned(F.shiftrightunsigned(spread, 32) * size, 32)
