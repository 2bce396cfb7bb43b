"""A batch's result on Spark is what its tasks give and what its emission gives, both."""

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.cloudpickle import register_pickle_by_value, unregister_pickle_by_value

import skewless as sk
from skewless.engine.intake import named_instance
from skewless.operators.join.operator import JoinOperator
from skewless.runtime.stream import Stream
from skewless.state.commit import OperatorState
from skewless.state.faults import Fault
from skewless.state.manifest import Segments
from skewless.state.storage import Storage
from skewless.testing import Replay

TIME = pa.timestamp("us", "UTC")
EPOCH = datetime(2024, 1, 1, tzinfo=UTC)
SCHEMA = pa.schema(
    [("k", pa.int64()), ("lt", TIME), ("a", pa.int64()), ("rt", TIME), ("b", pa.int64())]
)


@dataclass(frozen=True)
class Told:
    """Gives one row per instance, which says up to when the watermark has come."""

    watermark_us: int
    batch: int

    def run(
        self, instance: int | None, batches: Iterator[pa.RecordBatch]
    ) -> Iterator[pa.RecordBatch]:
        named = named_instance(batches) if instance is None else instance
        row = {"k": [-1], "lt": [self.watermark_us], "a": [named], "rt": [0], "b": [self.batch]}
        yield pa.RecordBatch.from_pydict(row, SCHEMA)


class Telling(JoinOperator):
    """A join that also gives a row when the watermark of a batch is known."""

    @property
    def emits(self) -> bool:
        return True

    def emission(
        self,
        before: OperatorState,
        after: OperatorState,
        storage: Storage,
        stored: Callable[[], Segments],
        batch: int,
    ) -> Told | None:
        return None if after.watermark_us is None else Told(after.watermark_us, batch)


@pytest.fixture(autouse=True)
def _workers_know_this_module() -> Iterator[None]:
    """They cannot import it: its classes travel with the tasks."""
    register_pickle_by_value(sys.modules[__name__])
    yield
    unregister_pickle_by_value(sys.modules[__name__])


def telling(stream: Stream) -> Stream:
    plain = stream.node.operator
    fields: dict[str, Any] = {
        name: getattr(plain, name) for name in JoinOperator.__dataclass_fields__
    }
    return Stream(replace(stream.node, operator=Telling(**fields)), stream.schema, stream.session)


def test_tasks_and_emission_both_reach_the_sink_once(spark, tmp_path: Path) -> None:
    def moment(seconds: int) -> datetime:
        return EPOCH + timedelta(seconds=seconds)

    left = pa.schema([("k", pa.int64()), ("lt", TIME), ("a", pa.int64())])
    right = pa.schema([("k", pa.int64()), ("rt", TIME), ("b", pa.int64())])
    batches = [
        (
            pa.table([[1, 2], [moment(10 * n)] * 2, [n, n]], schema=left),
            pa.table([[1, 1], [moment(10 * n)] * 2, [7, 8]], schema=right),
        )
        for n in range(3)
    ]
    replay = Replay(spark, tmp_path, batches)
    found = replay.run(
        lambda one, other: telling(
            sk.join(
                one,
                other,
                on="k",
                time=("lt", "rt"),
                within="1 second",
                watermark="0 seconds",
                balance=sk.Hash(2),
            )
        ),
        faults=[Fault("after_sink", 1)],
    )
    pairs = sorted((row["a"], row["b"]) for row in found.to_pylist() if row["k"] == 1)
    assert pairs == [(n, b) for n in range(3) for b in (7, 8)]
    told = sorted((row["b"], row["a"], row["lt"]) for row in found.to_pylist() if row["k"] == -1)
    assert told == [(n, i, moment(10 * n)) for n in range(3) for i in range(2)]
    assert replay.restarts == 1
