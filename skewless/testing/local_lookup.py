"""A lookup without Spark: the same tasks, state and commits, driven in this process."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from skewless.engine.columns import HASH, TIME, key_name, slot_name
from skewless.engine.engine import Attempt, Engine
from skewless.engine.loading import Loaded
from skewless.operators.join.asof import AsOf
from skewless.operators.join.bounds import LEFT, RIGHT, SIDES, Bounds
from skewless.operators.join.choosing import ClosestInTime
from skewless.operators.join.how import How
from skewless.operators.join.layout import Layout, OutputColumn
from skewless.operators.join.pairing import OTHER
from skewless.operators.lookup.operator import LookupOperator
from skewless.operators.lookup.terms import Terms
from skewless.routing.route import Route
from skewless.testing.local import Batch, LocalQuery, batches_of, spread_hash


@dataclass
class LocalLookup(LocalQuery[Batch]):
    """Looks micro-batches up in a table; a batch is (rows of the stream, the table as it is then).

    Key columns have the same names and types on both sides. `time` names the columns that `bounds`
    is about. The clock begins at 0 and moves by `tick_s` with every batch that is begun.
    """

    on: Sequence[str]
    stream_schema: pa.Schema
    table_schema: pa.Schema
    how: str = "inner"
    stream: str = LEFT
    time: tuple[str, str] | None = None
    bounds: Bounds = field(default_factory=lambda: Bounds(None, None))
    match: AsOf | None = None
    refresh_s: float | None = None
    tick_s: float = 1.0
    reads: list[int] = field(default_factory=list)  # the batches that have read the table

    def _new_operator(self) -> LookupOperator:
        self._now_s = 0.0
        how = How.of(self.how)
        table = OTHER[self.stream]
        schemas = {self.stream: self.stream_schema, table: self.table_schema}
        times = (
            dict.fromkeys(SIDES, "")
            if self.time is None
            else dict(zip(SIDES, self.time, strict=True))
        )
        self._travels = {
            side: {
                **{key: key_name(i) for i, key in enumerate(self.on)},
                **{
                    name: TIME if name == times[side] else slot_name(i)
                    for i, name in enumerate(schemas[side].names)
                    if name not in self.on
                },
            }
            for side in SIDES
        }
        keys_from = self.stream if how.name == "right" else LEFT
        output = [OutputColumn(k, keys_from, key_name(i)) for i, k in enumerate(self.on)]
        kinds = [schemas[LEFT].field(k).type for k in self.on]
        for side in SIDES if how.gives_pairs else (LEFT,):
            for name, place in self._travels[side].items():
                if name not in self.on:
                    output.append(OutputColumn(name, side, place))
                    kinds.append(schemas[side].field(name).type)
        slots = {
            side: tuple(p for p in self._travels[side].values() if p.startswith("p"))
            for side in SIDES
        }
        layout = Layout(
            keys=len(self.on),
            left_slots=slots[LEFT],
            right_slots=slots[RIGHT],
            output=tuple(output),
            types=tuple(kinds),
            hash_is_key=False,
            inputs={side: tuple(self._travels[side].items()) for side in SIDES},
        )
        self._schema = pa.schema([(c.name, k) for c, k in zip(output, kinds, strict=True)])
        bounds = self.bounds if self.match is None else self.match.within(self.bounds)
        terms = Terms(
            layout,
            how,
            self.stream,
            bounds,
            timed=self.time is not None,
            chooser=None if self.match is None else ClosestInTime(),
            limits=self.limits,
        )
        refresh_us = None if self.refresh_s is None else int(1e6 * self.refresh_s)
        fingerprint = {"operator": "lookup", "on": list(self.on)}
        return LookupOperator(terms, self.policy, fingerprint, refresh_us)

    @property
    def output_schema(self) -> pa.Schema:
        return self._schema

    def _new_engine(self) -> Engine:
        engine = super()._new_engine()
        engine.wall_clock = self._tick
        return engine

    def _tick(self) -> float:
        self._now_s += self.tick_s
        return self._now_s

    def _loaded(self, attempt: Attempt, batch: Batch) -> Attempt:
        for number, task in self.engine.loading(attempt).items():
            self.reads.append(attempt.batch)
            rows = self._normalise(self.operator.terms.table, batch[1])
            owner = attempt.parts[number].state.route.table.route(_hashes(rows))
            told = [
                piece
                for instance in np.unique(owner)
                for given in task.run(None, batches_of(rows.filter(pa.array(owner == instance))))
                for piece in given.to_pylist()
            ]
            attempt = self.engine.loaded(attempt, number, Loaded.of(told).segments)
        return attempt

    def _sent(self, batch: Batch, route: Route) -> tuple[pa.Table, npt.NDArray[np.int64]]:
        rows = self._normalise(self.stream, batch[0])
        spread = spread_hash(rows.drop_columns([HASH]))
        return rows, route.homes("left", _hashes(rows), spread)

    def _normalise(self, side: str, table: pa.Table) -> pa.Table:
        null = np.zeros(table.num_rows, np.bool_)
        for key in self.on:
            null |= pc.is_null(table.column(key)).to_numpy()
        hashes = self.hash_keys(table.select(list(self.on)))
        hashes = np.where(null, spread_hash(table), hashes).astype(np.uint64)
        columns = {place: table.column(name) for name, place in self._travels[side].items()}
        return pa.table({HASH: pa.array(hashes.view(np.int64)), **columns})


def _hashes(rows: pa.Table) -> npt.NDArray[np.uint64]:
    hashes: npt.NDArray[np.uint64] = rows.column(HASH).to_numpy().view(np.uint64)
    return hashes
