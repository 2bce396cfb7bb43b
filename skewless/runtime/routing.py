"""Routes in Spark SQL: the same instances as `skewless.routing`, without Python per row.

Expressions are built as SQL text and parsed once: put together call by call, each part would cost a
trip into the JVM in every batch. Constant arrays are one text literal that the optimiser folds, so
they do not change the generated code.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from skewless.engine.columns import HASH, INSTANCE, LEFT_CODE, REPLICA, SIDE, TIME, key_name
from skewless.routing.join_matrix import grid_shape
from skewless.routing.lookup import KeyLookup
from skewless.routing.partitions import HASH_SHIFT, SCALE_SHIFT
from skewless.routing.route import Route
from skewless.routing.splits import Split
from skewless.runtime.types import is_hashable

# Columns on the way: a row's hash, the place of its key among the split ones (−1: it is none), that
# of its home among the members of all splits, and its home.
_HASHED, _SPLIT, _CELL, _HOME = "hashed", "split", "cell", "home"
_Starts = Callable[[Split, int], list[int]]


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
    if not (replicates and route.replicates):
        return batch, sql.home_of(spread)
    sent = batch
    # One column after the other: within one expression each would be computed wherever it is used.
    for column in sql.steps(spread):
        sent = sent.selectExpr("*", column)
    sent = sent.selectExpr("*", f"explode({sql.targets()}) AS {INSTANCE}")
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
        size, begin = self._of_split(self._split_index())
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
        along = self._reach(self._members(), [s.columns for s in route.splits], _line_starts)
        down = self._reach(self._transposed(), [s.lines for s in route.splits], _column_starts)
        return f"IF({_SPLIT} < 0, {alone}, IF({SIDE} = {LEFT_CODE}, {along}, {down}))"

    def steps(self, spread: str) -> Iterator[str]:
        """The columns that `targets` needs, one made from the other, the row's home last."""
        if self.route.kind != "table":
            yield f"{self.home_of(spread)} AS {_HOME}"
            return
        yield f"{self.hash} AS {_HASHED}"
        of_hash = replace(self, hash=_HASHED)
        yield f"IF({of_hash._may_be_split()}, {of_hash._split_index()}, -1) AS {_SPLIT}"
        size, begin = self._of_split(_SPLIT)
        cell = f"CAST({begin} + {_scaled(spread, size)} AS INT)"
        yield f"IF({_SPLIT} < 0, NULL, {cell}) AS {_CELL}"
        yield f"IF({_SPLIT} < 0, {of_hash.owner()}, get({self._members()}, {_CELL})) AS {_HOME}"

    def _reach(self, members: str, sizes: Sequence[int], starts: _Starts) -> str:
        """A part of the members, as long as the row's split says, from where its cell says."""
        begins = [start for split, first in self._placed() for start in starts(split, first)]
        begin = f"get({_constants(begins)}, {_CELL})"
        return f"slice({members}, {begin} + 1, get({_constants(sizes)}, {_SPLIT}))"

    def _placed(self) -> Iterator[tuple[Split, int]]:
        """Every split, and where its members begin among all."""
        first = 0
        for split in self.route.splits:
            yield split, first
            first += len(split.members)

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

    def _of_split(self, index: str) -> tuple[str, str]:
        """How many members the row's split key has and where they begin; null for other keys."""
        sizes = [len(s.members) for s in self.route.splits]
        begins = [first for _, first in self._placed()]
        return f"get({_constants(sizes)}, {index})", f"get({_constants(begins)}, {index})"

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


def _line_starts(split: Split, first: int) -> list[int]:
    """Where the line of every cell begins."""
    return [first + n // split.columns * split.columns for n in range(len(split.members))]


def _column_starts(split: Split, first: int) -> list[int]:
    """Where the column of every cell begins, among members that stand column by column."""
    return [first + n % split.columns * split.lines for n in range(len(split.members))]


def _constants(numbers: Sequence[int], kind: str = "INT") -> str:
    return f"CAST(split('{','.join(map(str, numbers))}', ',') AS ARRAY<{kind}>)"
