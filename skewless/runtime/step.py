"""One micro-batch on Spark: route, run the tasks through the sink, commit."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from pyspark.sql import DataFrame
from pyspark.sql import types as T

from skewless.runtime.dispatch import run_tasks
from skewless.runtime.engine import Attempt, Engine
from skewless.runtime.sinks import Sink
from skewless.runtime.types import has_fixed_width

# Adaptive execution would re-plan a job whose partitioning is the whole point.
_SETTINGS = {"spark.sql.adaptive.enabled": "false"}
# Spark measures an Arrow batch after every row, to keep it below this: a third of the time of a
# batch, and for nothing where rows have one size and their number is limited, too.
_FIXED_WIDTH_SETTINGS = {"spark.sql.execution.arrow.maxBytesPerBatch": str(2**31 - 1)}
Transform = Callable[[DataFrame], DataFrame]


@dataclass
class Step:
    """The foreachBatch function of a Skewless query."""

    engine: Engine
    sink: Sink
    schema: T.StructType
    spread_columns: tuple[str, ...]  # what tells the rows of one key apart
    transforms: tuple[Transform, ...] = ()
    _configured: bool = field(default=False, init=False)

    def __call__(self, batch: DataFrame, batch_id: int) -> None:
        try:
            self._run(batch, batch_id)
        except Exception:
            raise
        except BaseException as death:
            # Spark would wait for ever for an answer: its callback passes on Exceptions only, not
            # the SystemExit of a function that calls sys.exit().
            raise RuntimeError(f"{type(death).__name__}: {death}") from death

    def _run(self, batch: DataFrame, batch_id: int) -> None:
        clock = _Clock()
        engine = self.engine
        attempt = engine.begin(batch_id)
        if not self._configured:
            self._configure(batch)
        plan_is_ours = self.sink.plan_is_ours and not self.transforms
        result = self._result(batch, attempt, plan_is_ours)
        for transform in self.transforms:
            result = transform(result)
        engine.faults.reach("before_sink", batch_id)
        clock.lap("prepare")
        self.sink.write(result, batch_id)
        clock.lap("sink")
        engine.faults.reach("after_sink", batch_id)
        if engine.missing(attempt):
            # The sink did not consume everything (a limit, a look at the first rows, nothing at
            # all): the rows must reach the state all the same.
            self._result(batch, attempt, True).write.format("noop").mode("overwrite").save()
        clock.lap("complete")
        engine.finish(attempt, clock.laps_ms)

    def _configure(self, batch: DataFrame) -> None:
        """Sets the session of the query, which is a copy of the user's."""
        fixed = _FIXED_WIDTH_SETTINGS if has_fixed_width(batch.schema) else {}
        for key, value in {**_SETTINGS, **fixed}.items():
            batch.sparkSession.conf.set(key, value)
        self._configured = True

    def _result(self, batch: DataFrame, attempt: Attempt, plan_is_ours: bool) -> DataFrame:
        return run_tasks(
            batch,
            attempt.task,
            attempt.state.route,
            attempt.order,
            self.spread_columns,
            self.schema,
            plan_is_ours=plan_is_ours,
        )


class _Clock:
    """Milliseconds from lap to lap."""

    def __init__(self) -> None:
        self.laps_ms: dict[str, float] = {}
        self._last = time.perf_counter()

    def lap(self, name: str) -> None:
        now = time.perf_counter()
        self.laps_ms[name] = round(1e3 * (now - self._last), 3)
        self._last = now
