"""Brings both inputs into one stream of rows and sends every row to its instance, in Spark SQL."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from skewless.engine.columns import (
    CONTROL_CODE,
    HASH,
    INSTANCE,
    ITEM,
    ITEM_HASH,
    ITEMS,
    LEFT_CODE,
    POSTINGS,
    SIDE,
    TIME,
    WEIGHT,
    key_name,
    slot_name,
)
from skewless.engine.leftovers import left_behind
from skewless.errors import SkewlessError
from skewless.routing.route import Route
from skewless.routing.tiles import TileRoute
from skewless.runtime import routing
from skewless.runtime.analysis import AddedColumns
from skewless.runtime.failures import TaskFailure, framed
from skewless.runtime.retirement import retire
from skewless.runtime.tiles import tile_visits


@dataclass(frozen=True)
class KeyColumn:
    """A key column of one side and the type in which it is compared."""

    name: str
    kind: T.DataType
    compared_as: T.DataType


@dataclass(frozen=True)
class SideColumns:
    """Which column of an input becomes which column of the common stream."""

    code: int
    keys: tuple[KeyColumn, ...]
    time: str | None  # None: rows have no event time that is compared
    slots: dict[int, str]  # slot → input column, or one that is added
    added: AddedColumns | None = None

    def travels_as(self, name: str) -> str:
        """The column of the common stream that holds a column of the input."""
        places = {key.name: key_name(i) for i, key in enumerate(self.keys)}
        if self.time is not None:
            places[self.time] = TIME
        # A key that is compared in another form has its own value in a slot.
        places.update({column: slot_name(slot) for slot, column in self.slots.items()})
        return places[name]


class Task(Protocol):
    """What runs in a Python worker."""

    def run(
        self, instance: int | None, batches: Iterator[pa.RecordBatch]
    ) -> Iterator[pa.RecordBatch]: ...


@dataclass(frozen=True)
class Worker:
    """Calls the task in a Python worker; a class of this package, so that it pickles by name."""

    task: Task
    order: tuple[int, ...] | None  # which instance a task is, by its number; None: rows tell

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        instance = None if self.order is None else self.order[_partition()]
        try:
            yield from self.task.run(instance, batches)
        except SkewlessError as failure:  # what else a worker raises is Spark's to tell
            raise TaskFailure(framed(str(failure))) from failure
        if left_behind():
            retire()


class Assign(Protocol):
    """What names the instances of the rows of an input partition, in a Python worker."""

    def run(self, partition: int, hashes: Iterator[pa.Int64Array]) -> Iterator[pa.Int32Array]: ...


@dataclass(frozen=True)
class _Assigner:
    """Calls the assigning half of a task on an input partition."""

    assign: Assign

    def instances(self, hashes: Iterator[pa.Array]) -> Iterator[pa.Array]:
        """Spark tells by the annotations what kind of function it is."""
        return self.assign.run(_partition(), hashes)


def _partition() -> int:
    context = TaskContext.get()
    assert context is not None, "runs inside a Spark task"
    return context.partitionId()


def quoted(name: str) -> Column:
    """A column by its exact name, dots and all."""
    return F.col("`" + name.replace("`", "``") + "`")


class RowIndex(Protocol):
    """Adds the hashes by which rows are found that have several of them."""

    def added(self, frame: DataFrame, code: int) -> DataFrame:
        """The rows of a side with their postings and spread value in columns of their own."""
        ...


@dataclass(frozen=True)
class SetKind:
    """A column of sets: arrays of items, maps from item to weight, or arrays of (item, weight)."""

    column: str  # of the common stream
    entries: str  # SQL from `{}`, the column, to an array of items or of structs
    item: str  # SQL from `x`, an element of it, to the item
    weight: str | None  # and to its weight


@dataclass(frozen=True)
class SetRows:
    """Adds what a join by sets needs to the rows of both sides."""

    left: SetKind
    right: SetKind
    keys: tuple[str, ...]  # of the common stream; part of every hash
    compared_as: T.DataType  # the items
    indexed_for: int  # how many common items a pair has at least
    hash_is_item: bool

    def added(self, frame: DataFrame, code: int) -> DataFrame:
        """The rows of a side with their items, postings and spread value in columns of their own.

        One column after the other: within one expression each would be computed wherever it is
        used.
        """
        sets = self.left if code == LEFT_CODE else self.right
        told = frame.selectExpr("*", f"{self._items(sets)} AS {ITEMS}")
        hashes = ITEMS if self._is_plain(sets) else f"{ITEMS}.{ITEM_HASH}"
        count = f"size({ITEMS}) - {self.indexed_for - 1}"
        # A row that can match nothing has no posting, and burdens no single instance.
        usable = " AND ".join([f"{count} > 0", *(f"{key} IS NOT NULL" for key in self.keys)])
        some = f"slice({hashes}, 1, {count})"
        none = "CAST(array() AS ARRAY<BIGINT>)"
        told = told.selectExpr("*", f"IF({usable}, {some}, {none}) AS {POSTINGS}")
        spread = (*routing.hashable_columns(frame.schema), ITEMS)
        return told.selectExpr("*", f"xxhash64({', '.join(spread)}) AS {HASH}")

    def _is_plain(self, sets: SetKind) -> bool:
        return sets.weight is None and self.hash_is_item

    def _items(self, sets: SetKind) -> str:
        kind = self.compared_as.simpleString()
        item = f"CAST({sets.item} AS {kind})"
        entries = sets.entries.format(sets.column)
        if sets.weight is None:
            entries = f"array_distinct(CAST(array_compact({entries}) AS ARRAY<{kind}>))"
        else:
            worth = f"{sets.item} IS NOT NULL AND {sets.weight} <> 0"
            entries = f"filter({entries}, x -> {worth})"
        hashed = f"xxhash64({', '.join([*self.keys, item])})"
        if self._is_plain(sets):
            return f"sort_array(transform({entries}, x -> {hashed}))"
        fields = f"'{ITEM_HASH}', {hashed}"
        if not self.hash_is_item:
            fields += f", '{ITEM}', {item}"
        if sets.weight is not None:
            fields += f", '{WEIGHT}', CAST({sets.weight} AS DOUBLE)"
        return f"sort_array(transform({entries}, x -> named_struct({fields})))"


@dataclass(frozen=True)
class JoinRows:
    """Makes one frame of the rows of both sides.

    A column less has to be shuffled where the tasks can make the hash themselves.
    """

    left: SideColumns
    right: SideColumns
    slot_types: tuple[T.DataType, ...]
    with_hash: bool
    index: RowIndex | None = None

    def __call__(self, left: DataFrame, right: DataFrame) -> DataFrame:
        sides = []
        for frame, columns in ((left, self.left), (right, self.right)):
            if columns.added is not None:
                frame = columns.added.to(frame)
            side = frame.select(*_common_columns(columns, self.slot_types, self.with_hash))
            sides.append(side if self.index is None else self.index.added(side, columns.code))
        return sides[0].union(sides[1])


@dataclass(frozen=True)
class KeyedRows:
    """The rows of a keyed operator: hash, time, keys, and what it needs of the rest."""

    keys: tuple[str, ...]
    time: str
    payload: tuple[str, ...]

    def __call__(self, frame: DataFrame) -> DataFrame:
        keys = [quoted(name) for name in self.keys]
        return frame.select(
            F.xxhash64(*keys).alias(HASH),
            quoted(self.time).alias(TIME),
            *(key.alias(key_name(i)) for i, key in enumerate(keys)),
            *(quoted(name).alias(slot_name(i)) for i, name in enumerate(self.payload)),
        )


@dataclass(frozen=True)
class MapRows:
    """The rows of a map: the hash of what drives their cost, and all columns."""

    cost_key: tuple[str, ...]
    columns: tuple[str, ...]

    def __call__(self, frame: DataFrame) -> DataFrame:
        return frame.select(
            F.xxhash64(*(quoted(name) for name in self.cost_key)).alias(HASH),
            *(quoted(name).alias(slot_name(i)) for i, name in enumerate(self.columns)),
        )


def _common_columns(
    side: SideColumns, slot_types: tuple[T.DataType, ...], with_hash: bool
) -> list[Column]:
    keys = [compared(key) for key in side.keys]
    assert side.time is not None, "streams are joined by event time, too"
    time = quoted(side.time)
    hashed = []
    if with_hash:
        any_null = keys[0].isNull()
        for key in keys[1:]:
            any_null = any_null | key.isNull()
        # Null keys match nothing; hashed by their time they burden no single instance.
        hashed = [F.when(any_null, F.xxhash64(time)).otherwise(F.xxhash64(*keys)).alias(HASH)]
    slots = [
        quoted(side.slots[i]) if i in side.slots else F.lit(None).cast(kind)
        for i, kind in enumerate(slot_types)
    ]
    return [
        F.lit(side.code).cast(T.ByteType()).alias(SIDE),
        *hashed,
        time.alias(TIME),
        *(key.alias(key_name(i)) for i, key in enumerate(keys)),
        *(slot.alias(slot_name(i)) for i, slot in enumerate(slots)),
    ]


def compared(key: KeyColumn) -> Column:
    """A key in the type in which it is compared."""
    column = quoted(key.name)
    return column if key.kind == key.compared_as else column.cast(key.compared_as)


def run_tasks(
    batch: DataFrame,
    task: Task,
    route: Route,
    order: tuple[int, ...],
    spread_columns: tuple[str, ...],
    schema: T.StructType,
    *,
    plan_is_ours: bool,
    replicates: bool,
) -> DataFrame:
    """The result of a batch, computed when it is consumed: one task per instance.

    Spark starts tasks by their number; `order` says which instance gets which. Where user code may
    stand between us and the job (it may coalesce or union the result), the number of a task says
    nothing; then every row carries its instance, and a control row gives each instance at least
    one.
    """
    assign = getattr(task, "assign", None)
    if assign is not None:
        # Only the rows themselves say what they cost: the input partitions name their instances.
        arrow_udf: Any = F.arrow_udf  # its stubs know no function whose kind is told by annotations
        routed, instance = batch, arrow_udf(_Assigner(assign).instances, T.IntegerType())(HASH)
    elif isinstance(route, TileRoute):
        known_by = getattr(task, "id_column", None)
        routed, named = tile_visits(batch, route, spread_columns, known_by)
        instance = F.expr(named)
    elif POSTINGS in batch.columns:
        routed, named = routing.set_visits(batch, route)
        instance = F.expr(named)
    else:
        routed, named = routing.visits(batch, route, spread_columns, replicates=replicates)
        instance = F.expr(named)
    if not plan_is_ours:
        control = _control_rows(batch, route.instances)
        if INSTANCE not in routed.columns:
            routed = routed.select("*", instance.alias(INSTANCE))
        routed = routed.unionByName(control, allowMissingColumns=True)
        instance = F.col(INSTANCE)
    worker: Any = Worker(task, order if plan_is_ours else None)
    target = routing.positioned(instance, order)
    return routed.repartitionById(route.instances, target).mapInArrow(worker, schema)


def run_emission(
    session: SparkSession, task: Task, instances: int, schema: T.StructType
) -> DataFrame:
    """What a task gives that reads the state alone: one partition per instance, and no shuffle."""
    rows = session.range(0, instances, 1, numPartitions=instances)
    worker: Any = Worker(task, None)
    return rows.select(F.col("id").cast(T.IntegerType()).alias(INSTANCE)).mapInArrow(worker, schema)


def _control_rows(batch: DataFrame, instances: int) -> DataFrame:
    numbers = batch.sparkSession.range(0, instances, 1, numPartitions=1)
    return numbers.select(
        F.lit(CONTROL_CODE).cast(T.ByteType()).alias(SIDE),
        F.col("id").cast(T.IntegerType()).alias(INSTANCE),
    )
