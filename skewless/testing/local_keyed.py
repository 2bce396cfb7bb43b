"""The keyed operator without Spark: the same tasks, state and commits, driven in this process."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from skewless.engine.chunks import Limits
from skewless.engine.columns import HASH, TIME, key_name, slot_name
from skewless.engine.engine import Attempt
from skewless.operators.keyed.layout import INPUT
from skewless.operators.keyed.operator import KeyedOperator, layout_of
from skewless.operators.keyed.process import Process
from skewless.operators.keyed.windows import Window
from skewless.planning.hash import Hash
from skewless.planning.policy import RoutingPolicy
from skewless.state.watermark import Delays
from skewless.testing.local import HashFunction, LocalQuery, batches_of, spread_hash


@dataclass
class LocalKeyed(LocalQuery[pa.Table]):
    """Runs micro-batches of one table through a keyed operator.

    The sink is a dictionary from batch to rows, replaced when a batch is replayed. `hash_keys` may
    be a poor hash: the result must not depend on it.
    """

    directory: str
    schema: pa.Schema
    by: Sequence[str]
    time: str
    process: Process
    window: Window = None
    delay_us: int | None = 0
    mode: str = "append"
    policy: RoutingPolicy = field(default_factory=lambda: Hash(2))
    hash_keys: HashFunction = spread_hash
    limits: Limits = field(default_factory=Limits)
    drop_bad_rows: bool = False
    sink: dict[int, pa.Table] = field(default_factory=dict)
    progress: list[dict[str, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.operator = KeyedOperator(
            layout_of(self.schema, self.by, self.time, self.process),
            self.process,
            self.window,
            Delays({INPUT: self.delay_us}),
            self.policy,
            {"operator": "keyed", "by": list(self.by), **self.process.describe()},
            self.mode,
            self.limits,
        )
        self.engine = self._new_engine()

    def step(self, number: int, batch: pa.Table) -> None:
        """One micro-batch: route, run every task, emit what is due, sink, commit."""
        attempt = self.engine.begin(number)
        faults = self.engine.faults
        faults.reach("before_sink", number)
        rows = self._normalise(batch)
        hashes = rows.column(HASH).to_numpy().view(np.uint64)
        part = attempt.parts[0]
        route = part.state.route
        spread = spread_hash(rows.drop_columns([HASH]))
        instances = route.homes("left", hashes, spread)
        results: list[pa.RecordBatch] = []
        for instance in part.order:
            mine = rows.filter(pa.array(instances == instance))
            results += part.task.run(instance, batches_of(mine))
        assert not self.engine.missing(attempt), "every task leaves a report"
        results += self._emitted(attempt)
        self.sink[number] = pa.Table.from_batches(results, self.operator.output_schema)
        faults.reach("after_sink", number)
        self.progress.append(self.engine.finish(attempt, {}).progress)

    def rows(self) -> pa.Table:
        """What the sink holds."""
        tables = [t for _, t in sorted(self.sink.items())]
        return pa.concat_tables([self.operator.output_schema.empty_table(), *tables])

    def _emitted(self, attempt: Attempt) -> Iterator[pa.RecordBatch]:
        emission = self.engine.emission(attempt, 0) if self.operator.emits else None
        if emission is not None:
            for instance in range(emission.instances):
                yield from emission.run(instance, iter(()))

    def _normalise(self, table: pa.Table) -> pa.Table:
        hashes = self.hash_keys(table.select(list(self.by))).astype(np.uint64)
        columns: dict[str, Any] = {
            HASH: pa.array(hashes.view(np.int64)),
            TIME: table.column(self.time),
        }
        for i, key in enumerate(self.by):
            columns[key_name(i)] = table.column(key)
        for i, name in enumerate(self.operator.layout.payload):
            columns[slot_name(i)] = table.column(name)
        return pa.table(columns)
