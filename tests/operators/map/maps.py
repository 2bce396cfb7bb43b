"""Runs maps without Spark: partitions assign, instances work, the operator learns."""

import json
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from skewless.engine.columns import HASH, INSTANCE
from skewless.engine.setting import Setting
from skewless.load.report import read_reports
from skewless.operators.map.function import MapFunction
from skewless.operators.map.layout import MapLayout
from skewless.operators.map.operator import MapOperator
from skewless.planning.shuffle.policy import ShufflePolicy
from skewless.state.commit import OperatorState
from skewless.state.faults import Faults
from skewless.state.naming import BatchNames
from skewless.state.storage import Storage
from skewless.testing.local import spread_hash
from skewless.testing.segments import HeldSegments


class LocalMap:
    """Micro-batches of a table through a map; `key` names the column that tells costs apart."""

    def __init__(
        self,
        directory: str,
        fn: Callable[..., Any],
        schema: pa.Schema,
        policy: ShufflePolicy,
        *,
        columns: Sequence[str],
        key: str,
        drop_bad_rows: bool = False,
        **options: Any,
    ) -> None:
        self.key = key
        self.layout = MapLayout(tuple(columns))
        function = MapFunction(fn, **options)
        self.operator = MapOperator(self.layout, schema, function, policy, {"operator": "map"})
        self.storage = Storage(directory)
        self.drop_bad_rows = drop_bad_rows
        self.faults = Faults()
        self.state = self.operator.initial_state(cores=2)
        self.progress: list[dict[str, Any]] = []

    def packed(self, table: pa.Table) -> pa.Table:
        """The table as it travels."""
        hashes = spread_hash(table.select([self.key])).view(np.int64)
        columns = [pa.array(hashes), *(table.column(c) for c in self.layout.columns)]
        return pa.table(columns, names=[HASH, *self.layout.slots])

    def step(self, batch: int, table: pa.Table, partitions: int = 3) -> list[dict[str, Any]]:
        """One micro-batch; the rows that came out."""
        state = self.operator.adopt(self.state, cores=2)
        names = BatchNames(batch, 0, "a")
        self.storage.make_directory(f"reports/{names.folder}")
        setting = Setting(
            self.storage,
            names,
            HeldSegments(),
            drop_bad_rows=self.drop_bad_rows,
            faults=self.faults,
        )
        task = self.operator.task(state, setting)
        rows = self.packed(table)
        size = -(-max(1, rows.num_rows) // partitions)
        assigned: list[pa.RecordBatch] = []
        for number in range(partitions):
            part = rows.slice(number * size, size).combine_chunks()
            batches = part.to_batches(max_chunksize=700)
            named = task.assign.run(number, (b.column(HASH) for b in batches))
            assigned += [
                b.append_column(INSTANCE, column) for b, column in zip(batches, named, strict=True)
            ]
        sent = pa.Table.from_batches(assigned) if assigned else None
        found: list[dict[str, Any]] = []
        reports = []
        for instance in self.operator.order(state):
            mine = []
            if sent is not None:
                chosen = pa.array(sent.column(INSTANCE).to_numpy() == instance)
                mine = sent.filter(chosen).combine_chunks().to_batches(max_chunksize=5_000)
            for out in task.run(instance, iter(mine)):
                found += out.to_pylist()
            reports += read_reports(self.storage, [names.report(instance)])
        after = self.operator.advance(state, reports, elapsed_ms=1.0)
        self.progress.append(json.loads(json.dumps(self.operator.progress(after, reports))))
        # As a commit keeps it.
        self.state = OperatorState.from_json(json.loads(json.dumps(after.to_json())))
        return found
