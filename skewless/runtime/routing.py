"""Routes in Spark SQL: the same instances as `skewless.routing`, without Python per row.

Expressions are built as SQL text and parsed once: put together call by call, each part would cost a
trip into the JVM in every batch. Constant arrays are one text literal that the optimiser folds, so
they do not change the generated code.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any, Generic, TypeVar

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from skewless.engine.columns import (
    HASH,
    INSTANCE,
    LEFT_CODE,
    POSTINGS,
    REPLICA,
    SIDE,
    TIME,
    key_name,
)
from skewless.routing.entries import Entry
from skewless.routing.grid import GridRoute
from skewless.routing.groups import GroupRoute
from skewless.routing.lookup import KeyLookup
from skewless.routing.partitions import HASH_SHIFT, SCALE_SHIFT, PartitionTable
from skewless.routing.route import Route
from skewless.routing.splits import Split
from skewless.routing.table import TableRoute
from skewless.runtime.constants import constants, scaled
from skewless.runtime.types import is_hashable

# Columns on the way: a row's hash, the place of its key among the exceptions of a table (−1: it is
# none), that of its home among the members of all of them, and its home. Of a row with several
# postings these are bound for each of them, and the row has a home of its own.
_HASHED, _PLACE, _CELL, _HOME = "hashed", "place", "cell", "home"
_POSTING, _FIRST, _ROW_HOME = "posting", "first", "row_home"
_Key = Entry | Split
_Starts = Callable[[_Key, int], list[int]]
_R = TypeVar("_R", bound=Route)


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
    return F.get(F.expr(constants(position)), instance)


def visits(
    batch: DataFrame, route: Route, spread_columns: Sequence[str], *, replicates: bool
) -> tuple[DataFrame, str]:
    """The rows as they go to instances, and the SQL expression that names the instance.

    Where rows may visit several instances and the operator wants it (`replicates`), they are
    repeated, and all but the one at home are marked as replicas.
    """
    sql = _sql_of(route, _hash_of(batch), _side_of(batch))
    # A deterministic, uniform hash of the row.
    spread = f"xxhash64({', '.join(spread_columns)})" if spread_columns else "0L"
    if not (replicates and route.replicates):
        return batch, sql.home(spread)
    sent = batch
    # One column after the other: within one expression each would be computed wherever it is used.
    for column in sql.steps(spread):
        sent = sent.selectExpr("*", column)
    sent = sent.selectExpr("*", f"explode({sql.targets()}) AS {INSTANCE}")
    marked = f"CAST({SIDE} + IF({INSTANCE} = {_HOME}, 0, {REPLICA}) AS TINYINT) AS {SIDE}"
    others = [c for c in batch.columns if c != SIDE]
    return sent.selectExpr(marked, *others, INSTANCE), INSTANCE


def set_visits(batch: DataFrame, route: Route) -> tuple[DataFrame, str]:
    """Rows with several postings as they go to instances, to each of them once.

    `skewless.routing.postings.row_visits` in SQL. The column of the postings ends here; HASH has a
    deterministic, uniform hash of the row.
    """
    first = _sql_of(route, _FIRST).home(HASH)
    anywhere = f"CAST({scaled(HASH, route.instances)} AS INT)"
    every = _sql_of(route, _POSTING)
    if route.replicates:
        visited = every.targets()
        for step in reversed(list(every.steps(HASH))):
            value, name = step.rsplit(" AS ", 1)
            # Bound to a name, so that it is computed once for all of its uses.
            visited = f"get(transform(array({value}), {name} -> {visited}), 0)"
        visited = f"flatten(transform({POSTINGS}, {_POSTING} -> {visited}))"
    else:
        visited = f"transform({POSTINGS}, {_POSTING} -> {every.home(HASH)})"
    sent = batch.selectExpr("*", f"get({POSTINGS}, 0) AS {_FIRST}")
    sent = sent.selectExpr("*", f"IF({_FIRST} IS NULL, {anywhere}, {first}) AS {_ROW_HOME}")
    visited = f"array_distinct(concat(array({_ROW_HOME}), {visited}))"
    sent = sent.selectExpr("*", f"explode({visited}) AS {INSTANCE}")
    marked = f"CAST({SIDE} + IF({INSTANCE} = {_ROW_HOME}, 0, {REPLICA}) AS TINYINT) AS {SIDE}"
    others = [c for c in batch.columns if c not in (SIDE, POSTINGS)]
    return sent.selectExpr(marked, *others, INSTANCE), INSTANCE


def _hash_of(batch: DataFrame) -> str:
    """The hash of a row: a column, or made from the one key where none travels."""
    if HASH in batch.columns:
        return HASH
    key = key_name(0)
    # Null keys match nothing; hashed by what else they have they burden no single instance.
    others = [TIME] if TIME in batch.columns else hashable_columns(batch.schema)
    return f"IF({key} IS NULL, xxhash64({', '.join(others)}), xxhash64({key}))"


def _side_of(batch: DataFrame) -> str:
    """The side of a row; rows of a single input are routed as left ones."""
    return SIDE if SIDE in batch.columns else str(LEFT_CODE)


def owners(batch: DataFrame, table: PartitionTable) -> str:
    """The SQL expression that names the owner of a row's partition."""
    return _owner(table, _hash_of(batch))


class _Sql(ABC, Generic[_R]):
    """The text of a route; `hash` and `side` are the expressions of a row's hash and side."""

    def __init__(self, route: _R, hash_: str, side: str = SIDE) -> None:
        self.route = route
        self.hash = hash_
        self.side = side

    @abstractmethod
    def home(self, spread: str) -> str:
        """The instance that keeps a row: `Route.homes`."""

    def steps(self, spread: str) -> Iterator[str]:
        """The columns that `targets` needs, one made from the other, the row's home last."""
        yield f"{self.home(spread)} AS {_HOME}"

    @abstractmethod
    def targets(self) -> str:
        """All the instances that a row visits: `Route.visits`."""


class _TableSql(_Sql[TableRoute]):
    """Entries and splits are looked up together; an entry's rows visit their home alone."""

    @cached_property
    def _keys(self) -> tuple[_Key, ...]:
        return self.route.exceptions

    @cached_property
    def _lookup(self) -> KeyLookup | None:
        return KeyLookup.of([key.hash for key in self._keys])

    def home(self, spread: str) -> str:
        if not self._keys:
            return self._owner()
        size, begin = self._of_key(self._place())
        member = f"get({self._members()}, CAST({begin} + {scaled(spread, size)} AS INT))"
        is_exception = f"{self._may_be_exception()} AND {size} IS NOT NULL"
        return f"IF({is_exception}, {member}, {self._owner()})"

    def steps(self, spread: str) -> Iterator[str]:
        yield f"{self.hash} AS {_HASHED}"
        hashed = _TableSql(self.route, _HASHED)
        yield f"IF({hashed._may_be_exception()}, {hashed._place()}, -1) AS {_PLACE}"
        size, begin = self._of_key(_PLACE)
        cell = f"CAST({begin} + {scaled(spread, size)} AS INT)"
        yield f"IF({_PLACE} < 0, NULL, {cell}) AS {_CELL}"
        yield f"IF({_PLACE} < 0, {hashed._owner()}, get({self._members()}, {_CELL})) AS {_HOME}"

    def targets(self) -> str:
        along = self._reach(self._members(), [_line(k) for k in self._keys], _line_starts)
        down = self._reach(self._transposed(), [_column(k) for k in self._keys], _column_starts)
        split = f"IF({SIDE} = {LEFT_CODE}, {along}, {down})"
        return f"IF({_PLACE} < {len(self.route.entries)}, array({_HOME}), {split})"

    def _reach(self, members: str, sizes: Sequence[int], starts: _Starts) -> str:
        """A part of the members, as long as the row's split says, from where its cell says."""
        begins = [start for key, first in self._placed() for start in starts(key, first)]
        begin = f"get({constants(begins)}, {_CELL})"
        return f"slice({members}, {begin} + 1, get({constants(sizes)}, {_PLACE}))"

    def _placed(self) -> Iterator[tuple[_Key, int]]:
        """Every exception, and where its members begin among all."""
        first = 0
        for key in self._keys:
            yield key, first
            first += len(key.members)

    def _owner(self) -> str:
        return _owner(self.route.table, self.hash)

    def _members(self) -> str:
        return constants([m for key in self._keys for m in key.members])

    def _transposed(self) -> str:
        """The members of every split column by column, each where `_members` has it."""
        return constants(
            [
                m
                for key in self._keys
                for c in range(_line(key))
                for m in key.members[c :: _line(key)]
            ]
        )

    def _may_be_exception(self) -> str:
        """Only rows of a partition that has exceptions are compared with them."""
        touched = {key.partition for key in self._keys}
        flags = [1 if p in touched else 0 for p in range(self.route.partitions)]
        return f"get({constants(flags)}, {_partition(self.route.partitions, self.hash)}) = 1"

    def _of_key(self, place: str) -> tuple[str, str]:
        """How many members the row's key has and where they begin; null for other keys."""
        sizes = [len(key.members) for key in self._keys]
        begins = [first for _, first in self._placed()]
        return f"get({constants(sizes)}, {place})", f"get({constants(begins)}, {place})"

    def _place(self) -> str:
        """The place of the row's key among the exceptions; −1, which is no place, for others."""
        lookup = self._lookup
        signed = [key.hash - 2**64 if key.hash >= 2**63 else key.hash for key in self._keys]
        if lookup is None:
            return f"CAST(array_position({constants(signed, 'BIGINT')}, {self.hash}) - 1 AS INT)"
        bucket = f"CAST({self.hash} & {len(lookup.displacements) - 1} AS INT)"
        moved = f"CAST(get({constants(lookup.displacements)}, {bucket}) AS BIGINT)"
        mixed = f"(shiftrightunsigned({self.hash}, {lookup.shift}) ^ {moved})"
        slot = f"CAST({mixed} & {len(lookup.places) - 1} AS INT)"
        place = f"get({constants(lookup.places)}, {slot})"
        return f"IF(get({constants(signed, 'BIGINT')}, {place}) = {self.hash}, {place}, -1)"


class _GroupSql(_Sql[GroupRoute]):
    """Right rows visit the whole group."""

    def home(self, spread: str) -> str:
        first, size = self._group()
        return f"CAST({first} + {scaled(spread, size)} AS INT)"

    def targets(self) -> str:
        first, size = self._group()
        group = f"CAST(sequence({first}, {first} + {size} - 1) AS ARRAY<INT>)"
        return f"IF({SIDE} = {LEFT_CODE}, array({_HOME}), {group})"

    def _group(self) -> tuple[str, str]:
        group = self.route.group
        first = f"({_owner(self.route.table, self.hash)} DIV {group} * {group})"
        return first, f"least({group}, {self.route.instances} - {first})"


class _GridSql(_Sql[GridRoute]):
    """Left rows visit a row of the grid, right rows a column."""

    def home(self, spread: str) -> str:
        rows, columns = self.route.shape
        # The line takes the upper half of the spread value, the cell the lower.
        lower = f"shiftleft({spread}, 32)"
        along = f"{scaled(spread, rows)} * {columns} + {scaled(lower, columns)}"
        down = f"{scaled(spread, columns)} + {scaled(lower, rows)} * {columns}"
        return f"CAST(IF({self.side} = {LEFT_CODE}, {along}, {down}) AS INT)"

    def targets(self) -> str:
        rows, columns = self.route.shape
        line = f"({_HOME} DIV {columns} * {columns})"
        along = f"sequence({line}, {line} + {columns - 1})"
        place = f"({_HOME} % {columns})"
        down = f"sequence({place}, {place} + {(rows - 1) * columns}, {columns})"
        both = f"CAST({along} AS ARRAY<INT>), CAST({down} AS ARRAY<INT>)"
        return f"IF({SIDE} = {LEFT_CODE}, {both})"


_SQL: dict[type[Route], type[_Sql[Any]]] = {
    TableRoute: _TableSql,
    GroupRoute: _GroupSql,
    GridRoute: _GridSql,
}


def _sql_of(route: Route, hash_: str, side: str = SIDE) -> _Sql[Any]:
    return _SQL[type(route)](route, hash_, side)


def _owner(table: PartitionTable, hash_: str) -> str:
    """The instance of the row's partition."""
    return f"get({constants(table.assignment)}, {_partition(table.partitions, hash_)})"


def _partition(partitions: int, hash_: str) -> str:
    upper = f"shiftrightunsigned({hash_}, {HASH_SHIFT})"
    return f"CAST(shiftright({upper} * {partitions}, {SCALE_SHIFT}) AS INT)"


def _line(key: _Key) -> int:
    """How many members the line of a left row has."""
    return key.columns if isinstance(key, Split) else 1


def _column(key: _Key) -> int:
    """How many members the column of a right row has."""
    return key.lines if isinstance(key, Split) else 1


def _line_starts(key: _Key, first: int) -> list[int]:
    """Where the line of every cell begins."""
    line = _line(key)
    return [first + n // line * line for n in range(len(key.members))]


def _column_starts(key: _Key, first: int) -> list[int]:
    """Where the column of every cell begins, among members that stand column by column."""
    line, column = _line(key), _column(key)
    return [first + n % line * column for n in range(len(key.members))]
