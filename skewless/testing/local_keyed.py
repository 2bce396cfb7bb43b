"""The keyed operator without Spark: the same tasks, state and commits, driven in this process."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from skewless.engine.columns import HASH, TIME, key_name, slot_name
from skewless.operators.keyed.layout import INPUT
from skewless.operators.keyed.operator import KeyedOperator, layout_of
from skewless.operators.keyed.process import Process
from skewless.operators.keyed.windows import Window
from skewless.routing.route import Route
from skewless.state.watermark import Delays
from skewless.testing.local import LocalQuery, spread_hash


@dataclass
class LocalKeyed(LocalQuery[pa.Table]):
    """Runs micro-batches of one table through a keyed operator."""

    schema: pa.Schema
    by: Sequence[str]
    time: str
    process: Process
    window: Window = None
    delay_us: int | None = 0
    mode: str = "append"

    def _new_operator(self) -> KeyedOperator:
        return KeyedOperator(
            layout_of(self.schema, self.by, self.time, self.process),
            self.process,
            self.window,
            Delays({INPUT: self.delay_us}),
            self.policy,
            {"operator": "keyed", "by": list(self.by), **self.process.describe()},
            self.mode,
            self.limits,
        )

    @property
    def output_schema(self) -> pa.Schema:
        return self.operator.output_schema

    def _sent(self, batch: pa.Table, route: Route) -> tuple[pa.Table, npt.NDArray[np.int64]]:
        rows = self._normalise(batch)
        hashes = rows.column(HASH).to_numpy().view(np.uint64)
        spread = spread_hash(rows.drop_columns([HASH]))
        return rows, route.homes("left", hashes, spread)

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
