"""The engine without Spark: the same tasks, state and commits, driven in this process."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from skewless.engine.chunks import Limits
from skewless.engine.columns import (
    HASH,
    ITEM,
    ITEM_HASH,
    ITEMS,
    LEFT_CODE,
    POINT_X,
    POINT_Y,
    REPLICA,
    RIGHT_CODE,
    SIDE,
    TIME,
    WEIGHT,
    key_name,
    slot_name,
)
from skewless.engine.engine import Attempt, Engine
from skewless.kernels.conditions import SetCondition
from skewless.kernels.groups import without_negative_zero
from skewless.kernels.near import NearCondition
from skewless.kernels.pieces import one_array
from skewless.kernels.predicate import Predicate
from skewless.operators.join.asof import AsOf
from skewless.operators.join.bounds import LEFT, RIGHT, SIDES, Bounds
from skewless.operators.join.choosing import ClosestInTime, KNearest
from skewless.operators.join.how import How
from skewless.operators.join.layout import Layout, OutputColumn
from skewless.operators.join.match import (
    InnerProduct,
    Match,
    Overlap,
    SetMatch,
    columns_of,
    condition_of,
)
from skewless.operators.join.near import Near, Nearest
from skewless.operators.join.operator import JoinOperator
from skewless.operators.join.postings import SETS
from skewless.planning.hash import Hash
from skewless.routing.postings import row_visits
from skewless.routing.route import Route, Visits
from skewless.shedding.policy import Shed, Shedding
from skewless.state.faults import Fault, Faults, SimulatedKill
from skewless.state.storage import Storage
from skewless.state.watermark import Delays
from skewless.testing.points import cell_items, doubles

Batch = tuple[pa.Table, pa.Table]
Input = TypeVar("Input")
HashFunction = Callable[[pa.Table], npt.NDArray[np.uint64]]


def spread_hash(keys: pa.Table) -> npt.NDArray[np.uint64]:
    """A good 64-bit hash of the key columns, equal where Spark says that they are."""
    columns = (
        without_negative_zero(column) if pa.types.is_floating(column.type) else column
        for column in keys.columns
    )
    # As text: pandas would turn whole numbers beside nulls into fractions, and hash those.
    values = [column.to_pylist() for column in columns]
    rows = np.array([repr(row) for row in zip(*values, strict=True)], object)
    return pd.util.hash_array(rows, categorize=False).astype(np.uint64)


@dataclass
class LocalQuery(ABC, Generic[Input]):
    """Runs an operator in this process; a fault kills its engine, and a new one goes on.

    The sink is a dictionary from batch to rows, replaced when a batch is replayed. `hash_keys` may
    be a poor hash: the result must not depend on it.
    """

    directory: str
    _: KW_ONLY
    policy: Any = field(default_factory=lambda: Hash(2))
    hash_keys: HashFunction = spread_hash
    limits: Limits = field(default_factory=Limits)
    drop_bad_rows: bool = False
    sink: dict[int, pa.Table] = field(default_factory=dict)
    progress: list[dict[str, Any]] = field(default_factory=list)
    operator: Any = field(init=False)
    engine: Engine = field(init=False)

    def __post_init__(self) -> None:
        self.operator = self._new_operator()
        self.engine = self._new_engine()

    def run(self, batches: Sequence[Input], faults: Sequence[Fault] = ()) -> pa.Table:
        """All batches in turn; a fault kills the engine, and a new one replays the batch."""
        pending = list(faults)
        for number, batch in enumerate(batches):
            while True:
                self.engine.faults = Faults(tuple(pending[:1]))
                try:
                    self.step(number, batch)
                    break
                except SimulatedKill:
                    pending.pop(0)
                    self.engine = self._new_engine()
        return self.rows()

    def step(self, number: int, batch: Input) -> None:
        """One micro-batch: route, run every task, emit what is due, sink, commit."""
        engine = self.engine
        attempt = self._loaded(engine.begin(number), batch)
        engine.faults.reach("before_sink", number)
        part = attempt.parts[0]
        rows, instances = self._sent(batch, part.state.route)
        results: list[pa.RecordBatch] = []
        for instance in part.order:
            mine = rows.filter(pa.array(instances == instance))
            results += part.task.run(instance, batches_of(mine))
        assert not engine.missing(attempt), "every task leaves a report"
        results += self._emitted(attempt)
        self.sink[number] = pa.Table.from_batches(results, self.output_schema)
        engine.faults.reach("after_sink", number)
        self.progress.append(engine.finish(attempt, {}).progress)

    def rows(self) -> pa.Table:
        """What the sink holds."""
        tables = [table for _, table in sorted(self.sink.items())]
        return pa.concat_tables([self.output_schema.empty_table(), *tables])

    @property
    @abstractmethod
    def output_schema(self) -> pa.Schema:
        """Of what the sink gets."""

    @abstractmethod
    def _new_operator(self) -> Any:
        """The operator, made once."""

    @abstractmethod
    def _sent(self, batch: Input, route: Route) -> tuple[pa.Table, npt.NDArray[np.int64]]:
        """The rows of a batch as tasks read them, and the instance that each goes to."""

    def _loaded(self, attempt: Attempt, batch: Input) -> Attempt:
        """The same try at a batch, with a new copy of the table if there is one to be read."""
        return attempt

    def _new_engine(self) -> Engine:
        engine = Engine(Storage(self.directory), (self.operator,), 2, self.drop_bad_rows)
        engine.open()
        return engine

    def _emitted(self, attempt: Attempt) -> Iterator[pa.RecordBatch]:
        emission = self.engine.emission(attempt, 0)
        if emission is not None:
            for instance in range(emission.instances):
                yield from emission.run(instance, iter(()))


@dataclass
class LocalJoin(LocalQuery[Batch]):
    """Joins micro-batches of two tables whose key columns have the same names and types.

    With `match` by sets or distance, too, or by it alone; `hash_keys` then hashes the keys and an
    item, or the keys and the block of a cell. `where` is a predicate on a pair, made by hand: no
    Spark is here to read SQL.
    """

    on: Sequence[str]
    time: tuple[str, str]
    bounds: Bounds
    delays: Delays
    left_schema: pa.Schema
    right_schema: pa.Schema
    match: Match | None = None
    shed: Shedding | None = None
    how: str = "inner"
    where: Predicate | None = None  # on the columns of the two tables

    def _new_operator(self) -> JoinOperator:
        self._payload = {
            LEFT: [c for c in self.left_schema.names if c not in (*self.on, self.time[0])],
            RIGHT: [c for c in self.right_schema.names if c not in (*self.on, self.time[1])],
        }
        # No sharing of slots here: the left's come first, then the right's.
        slots = {LEFT: 0, RIGHT: len(self._payload[LEFT])}
        self._slots = {
            side: {c: slot_name(slots[side] + i) for i, c in enumerate(self._payload[side])}
            for side in SIDES
        }
        output = [OutputColumn(k, LEFT, key_name(i)) for i, k in enumerate(self.on)]
        taken = set(self.on)
        for side, schema, time in (
            (LEFT, self.left_schema, self.time[0]),
            (RIGHT, self.right_schema, self.time[1]),
        )[: 2 if How(self.how).gives_pairs else 1]:
            for name in schema.names:
                if name not in self.on:
                    column = TIME if name == time else self._slots[side][name]
                    output.append(
                        OutputColumn(f"{name}_right" if name in taken else name, side, column)
                    )
                    taken.add(name)
        layout = Layout(
            keys=len(self.on),
            left_slots=tuple(self._slots[LEFT].values()),
            right_slots=tuple(self._slots[RIGHT].values()),
            output=tuple(output),
            hash_is_key=False,
            values=self._values(),
            compared=self._compared,
            distance=self.match.distance if isinstance(self.match, Near | Nearest) else None,
            inputs={
                side: (
                    *((key, key_name(i)) for i, key in enumerate(self.on)),
                    (time, TIME),
                    *self._slots[side].items(),
                )
                for side, time in zip(SIDES, self.time, strict=True)
            },
        )
        layout = replace(layout, types=tuple(map(self._type, output)))
        fingerprint = {"operator": "join", "on": list(self.on)}
        return JoinOperator(
            layout,
            self.match.within(self.bounds) if isinstance(self.match, AsOf) else self.bounds,
            self.delays,
            self.policy,
            fingerprint,
            limits=self.limits,
            condition=self._condition(layout),
            where=self.where
            and self.where.renamed({side: dict(layout.inputs[side]) for side in SIDES}),
            chooser=self._chooser,
            how=How(self.how),
            shedding=self.shed,
        )

    @property
    def _chooser(self) -> KNearest | ClosestInTime | None:
        if isinstance(self.match, AsOf):
            return ClosestInTime()
        return KNearest(self.match.k) if isinstance(self.match, Nearest) else None

    @property
    def _by(self) -> SetMatch | Near | Nearest | None:
        """What rows are joined by besides their keys; None: keys are all."""
        return None if isinstance(self.match, AsOf) else self.match

    @property
    def _compared(self) -> tuple[str, ...]:
        """What rows carry to be compared by."""
        if isinstance(self.match, Near | Nearest):
            return POINT_X, POINT_Y
        return () if self._by is None else (ITEMS,)

    def _condition(self, layout: Layout) -> SetCondition | NearCondition | None:
        match = self._by
        if isinstance(match, Near | Nearest):
            point = (POINT_X, POINT_Y)
            return NearCondition(match.metric, point, point, match.cells.most, layout.key_columns)
        if match is None:
            return None
        return condition_of(match, layout.key_columns, hash_is_item=False)

    def _values(self) -> dict[str, str | None]:
        """Per side: where the column travels that says what a row is worth."""
        if not isinstance(self.shed, Shed):
            return {}
        return {
            side: self._slots[side].get(name) if name is not None else None
            for side, name in zip(SIDES, self.shed.values, strict=True)
        }

    @property
    def output_schema(self) -> pa.Schema:
        layout = self.operator.layout
        columns = [(c.name, self._type(c)) for c in layout.output]
        return pa.schema(
            columns if layout.distance is None else [*columns, (layout.distance, pa.float64())]
        )

    def _type(self, column: OutputColumn) -> pa.DataType:
        schema = self.left_schema if column.side == LEFT else self.right_schema
        name = column.name if column.name in schema.names else column.name[: -len("_right")]
        return schema.field(name).type

    def _sent(self, batch: Batch, route: Route) -> tuple[pa.Table, npt.NDArray[np.int64]]:
        sent = [self._visits(side, t, route) for side, t in zip(SIDES, batch, strict=True)]
        instances = np.concatenate([where for _, where in sent])
        return pa.concat_tables(table for table, _ in sent), instances

    def _visits(
        self, side: str, table: pa.Table, route: Route
    ) -> tuple[pa.Table, npt.NDArray[np.int64]]:
        """The rows of a side as they go to instances, replicas marked."""
        rows = self._normalise(side, table)
        hashes = rows.column(HASH).to_numpy().view(np.uint64)
        if self._by is None:
            spread = spread_hash(rows.drop_columns([HASH]))
            visits = route.visits(side, hashes, spread)  # type: ignore[arg-type]
        else:
            visits = self._posting_visits(side, rows, route, hashes)
        code = LEFT_CODE if side == LEFT else RIGHT_CODE
        codes = np.where(visits.home, code, code + REPLICA).astype(np.int8)
        sent = rows.take(pa.array(visits.row)).set_column(0, SIDE, pa.array(codes))
        return sent, visits.instance

    def _posting_visits(
        self, side: str, rows: pa.Table, route: Route, spread: npt.NDArray[np.uint64]
    ) -> Visits:
        """A row goes once to every instance that any of its postings goes to."""
        sets = SETS.of(one_array(rows.column(ITEMS)))
        is_near = isinstance(self.match, Near | Nearest)
        # A row is found by all of its cells.
        owner, postings = sets.postings(1 if is_near else self.operator.condition.indexed_for)
        null = np.zeros(rows.num_rows, np.bool_)
        for key in self.operator.layout.key_columns:
            null |= pc.is_null(rows.column(key)).to_numpy()
        owner, postings = owner[~null[owner]], postings[~null[owner]]
        return row_visits(route, side, owner, postings, spread)  # type: ignore[arg-type]

    def _items(self, table: pa.Table, side: str) -> pa.Array:
        """The sets as they travel: per row its items by hash, each with its weight."""
        assert isinstance(self.match, Overlap | InnerProduct), "rows are joined by sets"
        column = columns_of(self.match)[side == RIGHT]
        kind = table.schema.field(column).type
        is_map = pa.types.is_map(kind)
        item_kind = kind.key_type if is_map else kind.value_type
        if pa.types.is_struct(item_kind):
            item_kind = item_kind.field(0).type
        given = table.column(column).to_pylist()
        flat: list[tuple[int, Any, float | None]] = []
        for row, items in enumerate(given):
            for entry in items or ():
                item, weight = entry, None
                if self.match.is_weighted:
                    # A map has pairs, an array has structs.
                    item, weight = entry if is_map else (entry or {"": None, " ": None}).values()
                    if weight is None or weight == 0:
                        continue
                if item is not None:
                    flat.append((row, item, weight))
        if not self.match.is_weighted:
            flat = list({(row, _same(item)): (row, item, None) for row, item, _ in flat}.values())
        keys = table.select(list(self.on)).take(pa.array([row for row, _, _ in flat], pa.int64()))
        items = pa.array([item for _, item, _ in flat], item_kind)
        hashed = pa.table([*keys.columns, items], names=[*keys.column_names, ITEM])
        hashes = self.hash_keys(hashed).astype(np.uint64).view(np.int64)
        sets: list[list[dict[str, Any]] | None] = [None if g is None else [] for g in given]
        for at in sorted(range(len(flat)), key=lambda n: (hashes[n], repr(_same(flat[n][1])))):
            row, item, weight = flat[at]
            of_row = sets[row]
            assert of_row is not None, "null sets have no items"
            of_row.append({ITEM_HASH: int(hashes[at]), ITEM: item, WEIGHT: weight})
        weight_field = [(WEIGHT, pa.float64())] if self.match.is_weighted else []
        struct = pa.struct([(ITEM_HASH, pa.int64()), (ITEM, item_kind), *weight_field])
        return pa.array(sets, pa.list_(struct))

    def _normalise(self, side: str, table: pa.Table) -> pa.Table:
        keys = table.select(list(self.on))
        null = np.zeros(table.num_rows, np.bool_)
        for key in self.on:
            null |= pc.is_null(table.column(key)).to_numpy()
        hashes = np.zeros(table.num_rows, np.uint64)
        if self._by is None:
            hashes = np.where(null, np.uint64(0), self.hash_keys(keys)).astype(np.uint64)
        time = self.time[0] if side == LEFT else self.time[1]
        code = LEFT_CODE if side == LEFT else RIGHT_CODE
        columns: dict[str, Any] = {
            SIDE: pa.array(np.full(table.num_rows, code, np.int8)),
            HASH: pa.array(hashes.view(np.int64)),
            TIME: table.column(time),
        }
        for i, key in enumerate(self.on):
            columns[key_name(i)] = table.column(key)
        if self._by is not None:
            columns[HASH] = pa.array(spread_hash(table).view(np.int64))
        if isinstance(self.match, Near | Nearest):
            is_left = side == LEFT
            columns[ITEMS] = cell_items(
                self.match, table, is_left=is_left, on=self.on, hash_=self.hash_keys
            )
            for name, column in zip(self._compared, self.match.points[not is_left], strict=True):
                columns[name] = doubles(table, column)
        elif self._by is not None:
            columns[ITEMS] = self._items(table, side)
        for owner, schema in ((LEFT, self.left_schema), (RIGHT, self.right_schema)):
            for name, slot in self._slots[owner].items():
                kind = schema.field(name).type
                columns[slot] = (
                    table.column(name) if owner == side else pa.nulls(table.num_rows, kind)
                )
        return pa.table(columns)


def _same(item: Any) -> Any:
    """A form that is equal for items that are: NaN is NaN, and −0.0 is 0.0."""
    return ("NaN" if item != item else item + 0.0) if isinstance(item, float) else item


def batches_of(table: pa.Table) -> Iterator[pa.RecordBatch]:
    """A table as Spark hands it to a task: in small batches."""
    return iter(table.combine_chunks().to_batches(max_chunksize=1000))
