"""Routes in Spark SQL: the same instances as `skewless.routing`, without Python per row.

Expressions are built as SQL text and parsed once: put together call by call, each part would cost a
trip into the JVM in every batch. Constant arrays are one text literal that the optimiser folds, so
they do not change the generated code.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from skewless.operators.join.layout import (
    HASH,
    INSTANCE,
    LEFT_CODE,
    REPLICA,
    SIDE,
    TIME,
    key_name,
)
from skewless.routing.join_matrix import grid_shape
from skewless.routing.lookup import KeyLookup
from skewless.routing.partitions import HASH_SHIFT, SCALE_SHIFT
from skewless.routing.route import Route
from skewless.runtime.types import is_hashable

_HOME = "home"


def hashable_columns(schema: T.StructType) -> tuple[str, ...]:
    """The columns that tell rows apart and that Spark can hash."""
    return tuple(f.name for f in schema.fields if is_hashable(f.dataType))


def positioned(instance: Column, order: Sequence[int]) -> Column:
    """The task number of an instance; `order` has the instance of every task."""
    if list(order) == list(range(len(order))):
        return instance
    position = [0] * len(order)
    for place, number in enumerate(order):
        position[number] = place
    return F.get(F.expr(_constants(position)), instance)


def visits(
    batch: DataFrame, route: Route, spread_columns: Sequence[str], *, replicates: bool
) -> tuple[DataFrame, str]:
    """The rows as they go to instances, and the SQL expression that names the instance.

    Where rows may visit several instances and the operator wants it (`replicates`), they are
    repeated, and all but the one at home are marked as replicas.
    """
    sql = _Sql(route, _hash_of(batch))
    if route.kind == "table" and not route.splits:
        return batch, sql.owner()
    # An even number of a row that is the same whenever the row is read again.
    spread = f"xxhash64({', '.join(spread_columns)})" if spread_columns else "0L"
    home = sql.home_of(spread)
    if not (replicates and route.replicates):
        return batch, home
    targets = f"explode({sql.targets()}) AS {INSTANCE}"
    sent = batch.selectExpr("*", f"{home} AS {_HOME}").selectExpr("*", targets)
    marked = f"CAST({SIDE} + IF({INSTANCE} = {_HOME}, 0, {REPLICA}) AS TINYINT) AS {SIDE}"
    others = [c for c in batch.columns if c != SIDE]
    return sent.selectExpr(marked, *others, INSTANCE), INSTANCE


def _hash_of(batch: DataFrame) -> str:
    """The hash of a row: a column, or made from the one key where none travels."""
    if HASH in batch.columns:
        return HASH
    key = key_name(0)
    # Null keys match nothing; hashed by their time they burden no single instance.
    return f"IF({key} IS NULL, xxhash64({TIME}), xxhash64({key}))"


@dataclass(frozen=True)
class _Sql:
    """The text of a route; `hash` is the expression of a row's hash."""

    route: Route
    hash: str

    @cached_property
    def _lookup(self) -> KeyLookup | None:
        return KeyLookup.of([s.hash for s in self.route.splits])

    def home_of(self, spread: str) -> str:
        """The instance that keeps a row."""
        route = self.route
        if route.kind == "groups":
            first, size = self._group()
            return f"CAST({first} + {_scaled(spread, size)} AS INT)"
        if route.kind == "grid":
            rows, columns = grid_shape(route.instances)
            along = f"{_scaled(spread, rows)} * {columns} + {_scaled(self.hash, columns)}"
            down = f"{_scaled(spread, columns)} + {_scaled(self.hash, rows)} * {columns}"
            return f"CAST(IF({SIDE} = {LEFT_CODE}, {along}, {down}) AS INT)"
        size, begin = self._of_split()
        member = f"get({self._members()}, CAST({begin} + {_scaled(spread, size)} AS INT))"
        is_split = f"{self._may_be_split()} AND {size} IS NOT NULL"
        return f"IF({is_split}, {member}, {self.owner()})"

    def targets(self) -> str:
        """All the instances that a row visits."""
        route = self.route
        alone = f"array({_HOME})"
        if route.kind == "groups":
            first, size = self._group()
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
        size, begin = self._of_split()
        deep = self._by_split([s.lines for s in route.splits])
        wide = self._by_split([s.columns for s in route.splits])
        place = f"(array_position(slice({self._members()}, {begin} + 1, {size}), {_HOME}) - 1)"
        along = _part(self._members(), f"{begin} + {place} DIV {wide} * {wide}", wide)
        down = _part(self._transposed(), f"{begin} + {place} % {wide} * {deep}", deep)
        is_left = f"{SIDE} = {LEFT_CODE}"
        visits_others = f"{self._may_be_split()} AND IF({is_left}, {wide}, {deep}) > 1"
        return f"IF({visits_others}, IF({is_left}, {along}, {down}), {alone})"

    def owner(self) -> str:
        """The instance of the row's partition."""
        return f"get({_constants(self.route.table.assignment)}, {self._partition()})"

    def _members(self) -> str:
        return _constants([m for s in self.route.splits for m in s.members])

    def _transposed(self) -> str:
        """The members of every split column by column, each split where `_members` has it."""
        splits = self.route.splits
        return _constants(
            [m for s in splits for c in range(s.columns) for m in s.members[c :: s.columns]]
        )

    def _may_be_split(self) -> str:
        """Only rows of a partition that has a split key are compared with the split keys."""
        touched = {s.partition for s in self.route.splits}
        flags = [1 if p in touched else 0 for p in range(self.route.partitions)]
        return f"get({_constants(flags)}, {self._partition()}) = 1"

    def _of_split(self) -> tuple[str, str]:
        """How many members the row's split key has and where they begin; null for other keys."""
        sizes = [len(s.members) for s in self.route.splits]
        begins = [sum(sizes[:i]) for i in range(len(sizes))]
        return self._by_split(sizes), self._by_split(begins)

    def _by_split(self, numbers: Sequence[int]) -> str:
        """The number of the row's split key; null for other keys."""
        return f"get({_constants(numbers)}, {self._split_index()})"

    def _split_index(self) -> str:
        """The row's place among the split keys; −1, which is no place, for other keys."""
        lookup = self._lookup
        signed = [s.hash - 2**64 if s.hash >= 2**63 else s.hash for s in self.route.splits]
        if lookup is None:
            return f"CAST(array_position({_constants(signed, 'BIGINT')}, {self.hash}) - 1 AS INT)"
        bucket = f"CAST({self.hash} & {len(lookup.displacements) - 1} AS INT)"
        moved = f"CAST(get({_constants(lookup.displacements)}, {bucket}) AS BIGINT)"
        mixed = f"(shiftrightunsigned({self.hash}, {lookup.shift}) ^ {moved})"
        slot = f"CAST({mixed} & {len(lookup.places) - 1} AS INT)"
        place = f"get({_constants(lookup.places)}, {slot})"
        return f"IF(get({_constants(signed, 'BIGINT')}, {place}) = {self.hash}, {place}, -1)"

    def _group(self) -> tuple[str, str]:
        group = self.route.group
        first = f"({self.owner()} DIV {group} * {group})"
        return first, f"least({group}, {self.route.instances} - {first})"

    def _partition(self) -> str:
        upper = f"shiftrightunsigned({self.hash}, {HASH_SHIFT})"
        return f"CAST(shiftright({upper} * {self.route.partitions}, {SCALE_SHIFT}) AS INT)"


def _scaled(spread: str, size: str | int) -> str:
    """`skewless.routing.router.scaled`."""
    return f"shiftrightunsigned(shiftrightunsigned({spread}, 32) * {size}, 32)"


def _part(array: str, begin: str, size: str) -> str:
    return f"slice({array}, CAST({begin} + 1 AS INT), {size})"


def _constants(numbers: Sequence[int], kind: str = "INT") -> str:
    return f"CAST(split('{','.join(map(str, numbers))}', ',') AS ARRAY<{kind}>)"
