"""One micro-batch on Spark: route, run the tasks through the sink, commit."""

import logging
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import DataFrame

from skewless.engine.engine import Attempt, Engine
from skewless.failures import account
from skewless.observe.dropped import dropped_line
from skewless.runtime.deadletters import DeadLetters
from skewless.runtime.dispatch import run_emission, run_tasks
from skewless.runtime.failures import (
    BatchFailure,
    framed,
    in_users_code,
    interruption,
    of_batch,
)
from skewless.runtime.garbage import GarbageCollection
from skewless.runtime.lookups import load_table
from skewless.runtime.routing import hashable_columns
from skewless.runtime.sinks import InParts, Sink
from skewless.runtime.topology import Node, Source, Table, Topology
from skewless.runtime.types import has_fixed_width

_LOG = logging.getLogger("skewless")
_CHECKSUM = "spark.sql.shuffle.orderIndependentChecksum"
_SETTINGS = {
    # Adaptive execution would re-plan a job whose partitioning is the whole point.
    "spark.sql.adaptive.enabled": "false",
    # A map deals rows out in the order in which they come, which may be another one when Spark
    # repeats a lost task: it has to notice that, and to repeat all that had read the first result.
    f"{_CHECKSUM}.enabled": "true",
    f"{_CHECKSUM}.enableFullRetryOnMismatch": "true",
}
# Spark measures an Arrow batch after every row, to keep it below this: a third of the time of a
# batch, and for nothing where rows have one size and their number is limited, too.
_RECORDS = "spark.sql.execution.arrow.maxRecordsPerBatch"
_FIXED_WIDTH_SETTINGS = {"spark.sql.execution.arrow.maxBytesPerBatch": str(2**31 - 1)}


# Stopping a query interrupts the job of its batch. Spark looks for that in what the function of a
# batch has raised with a pattern that recurses once per character: over the long message of its own
# error, which is all that Python has to pass on, it overflows Java's stack.
_AS_SPARK_KNOWS_IT = "py4j.protocol.Py4JJavaError: An error occurred while calling the sink.\n: {}"


class InterruptedBatch(Exception):  # noqa: N818 - not an error: the query was stopped
    """The batch ends because its query was stopped; a restart takes it up again."""


@dataclass
class Step:
    """The foreachBatch function of a Skewless query."""

    engine: Engine
    sink: Sink
    topology: Topology
    dead_letters: DeadLetters | None = None
    garbage: GarbageCollection = field(default_factory=GarbageCollection)
    now: Callable[[], float] = time.perf_counter
    # Spark's query, where it is at hand and operators must know how long its batches take.
    query: Any = None
    _configured: bool = field(default=False, init=False)
    _first: int | None = field(default=None, init=False)  # batch of this process
    _shares_ms: deque[float] = field(default_factory=lambda: deque(maxlen=3), init=False)

    def __call__(self, batch: DataFrame, batch_id: int) -> None:
        try:
            self._run(batch, batch_id)
            self.garbage.after_batch()
        except Exception as failure:
            interrupted = interruption(failure)
            if interrupted is not None:
                raise InterruptedBatch(_AS_SPARK_KNOWS_IT.format(interrupted)) from None
            raise of_batch(failure, batch_id) from None
        except BaseException as death:
            # Spark would wait for ever for an answer: its callback passes on Exceptions only, not
            # the SystemExit of a function that calls sys.exit().
            told = account(death, f"the process was told to end (batch {batch_id})")
            raise BatchFailure(framed(told)) from death

    def _run(self, batch: DataFrame, batch_id: int) -> None:
        clock = _Clock(self.now)
        engine = self.engine
        if not self._configured:
            self._configure(batch)
        self._note_sparks_share(batch_id)
        attempt = self._loaded(batch, engine.begin(batch_id), clock)
        flow = _Flow(engine, self.topology, batch, attempt, clock)
        try:
            self._commit(flow, batch_id)
        finally:
            flow.release()

    def _loaded(self, batch: DataFrame, attempt: Attempt, clock: "_Clock") -> Attempt:
        """The same try at a batch, with a new copy of every table that is to be read now."""
        for number, task in self.engine.loading(attempt).items():
            table = self.topology.nodes[number].table
            assert table is not None, "an operator that loads a table has one"
            with in_users_code("the plan of a table", attempt.batch):
                rows = table.read(batch.sparkSession)
            copy = load_table(rows, task, attempt.parts[number].state.route.table)
            if copy.bad_rows:
                _LOG.warning(
                    "batch %d: %s bad rows of a table were dropped", attempt.batch, copy.bad_rows
                )
            attempt = self.engine.loaded(attempt, number, copy.segments)
            clock.lap("load")
        return attempt

    def _commit(self, flow: "_Flow", batch_id: int) -> None:
        """Runs the tasks through the sink and publishes what has come of the batch."""
        engine, clock = self.engine, flow.clock
        # Before the result is asked for: that runs the tasks of operators that emit.
        engine.faults.reach("before_sink", batch_id)
        last, sink = self.topology.nodes[-1], self.sink
        rest = None
        if isinstance(sink, InParts) and last.comes_in_parts:
            # What the tasks give needs not be kept until the rest is known.
            result = flow.tasks(last, plan_is_ours=sink.plan_is_ours)
            clock.lap("prepare")
            sink.write(result, batch_id)
            clock.lap("sink")
            rest = flow.rest(last)
            if rest is not None:
                sink.write_rest(rest, batch_id)
                clock.lap("sink")
        else:
            result = flow.result(last, plan_is_ours=sink.plan_is_ours)
            clock.lap("prepare")
            sink.write(result, batch_id)
            clock.lap("sink")
        engine.faults.reach("after_sink", batch_id)
        flow.complete()
        clock.lap("complete")
        if self.dead_letters is not None:
            dropped_files = engine.dropped(flow.attempt)
            clock.lap("plan")
            self.dead_letters.write(flow.batch.sparkSession, dropped_files, batch_id)
            clock.lap("deadLetters")
        commit = engine.finish(flow.attempt, clock.laps_ms)
        dropped = dropped_line(commit.progress)
        if dropped is not None:
            _LOG.warning(dropped)

    def _note_sparks_share(self, batch_id: int) -> None:
        """What Spark itself took for the last batches: sources, offsets, its own commit.

        Not for the first, in which much is done once and for all.
        """
        if self.query is None:
            return
        first, self._first = self._first, batch_id if self._first is None else self._first
        last = None if first is None or first == batch_id - 1 else self.query.lastProgress
        if last is not None and last["batchId"] == batch_id - 1:
            took_ms = last["durationMs"].get("triggerExecution", 0.0)
            self._shares_ms.append(max(0.0, took_ms - self.engine.own_ms))
            self.engine.around_ms = min(self._shares_ms)

    def _configure(self, batch: DataFrame) -> None:
        """Sets the session of the query, which is a copy of the user's."""
        nodes = self.topology.nodes
        schemas = [batch.schema, *(node.schema for node in nodes)]
        # What code of the user's may add to a row is not known here, and it runs in this session.
        known = self.sink.plan_is_ours and not any(node.transforms for node in nodes)
        limited = int(batch.sparkSession.conf.get(_RECORDS, "10000") or 0) > 0
        is_fixed = known and limited and all(map(has_fixed_width, schemas))
        fixed = _FIXED_WIDTH_SETTINGS if is_fixed else {}
        for key, value in {**_SETTINGS, **fixed}.items():
            batch.sparkSession.conf.set(key, value)
        self._configured = True


@dataclass(frozen=True)
class _Flow:
    """The rows of one micro-batch on their way through the operators."""

    engine: Engine
    topology: Topology
    batch: DataFrame
    attempt: Attempt
    clock: "_Clock"
    _emitted: dict[int, DataFrame] = field(default_factory=dict)
    _kept: list[DataFrame] = field(default_factory=list)

    def result(self, node: Node, *, plan_is_ours: bool) -> DataFrame:
        """What an operator gives, computed when it is consumed.

        `plan_is_ours`: nothing but our own code stands between the tasks and the job.
        """
        number = self.topology.number(node)
        if node.operator.emits:
            if number not in self._emitted:
                self._emitted[number] = self._emission(node, number)
            result = self._emitted[number]
        else:
            result = self._tasks(node, number, plan_is_ours and not node.transforms)
        for transform in node.transforms:
            with in_users_code("a function of transform", self.attempt.batch):
                result = transform(result)
        return result

    def complete(self, until: int | None = None) -> None:
        """Runs the tasks (of the first operators) that nobody has, or not to their end.

        A sink may have looked at the first rows only, and so may code between two operators.
        """
        for number in reversed(range(len(self.topology.nodes) if until is None else until)):
            if self.engine.missing(self.attempt, number):
                # Not ours: Spark starts no task for an empty plan.
                _consume(self._tasks(self.topology.nodes[number], number, plan_is_ours=False))

    def _emission(self, node: Node, number: int) -> DataFrame:
        """First all rows into the state, then what that has made due.

        What the tasks themselves give is kept until the batch is done, so that they run once. A
        kept block may be lost and made again wherever it is needed: rows carry their instance.
        """
        tasks = self._tasks(node, number, plan_is_ours=node.operator.waits)
        if not node.operator.waits:
            tasks = tasks.persist()
            self._kept.append(tasks)
        self.clock.lap("prepare")
        _consume(tasks)
        self.complete(number + 1)
        self.clock.lap("tasks")
        emitted = self._emitted_rows(node, number)
        if emitted is None:
            if node.operator.waits:
                return self.batch.sparkSession.createDataFrame([], node.schema)
            return tasks.select("*")  # not the kept frame itself: its user may let go of it
        return emitted if node.operator.waits else tasks.union(emitted)

    def rest(self, node: Node) -> DataFrame | None:
        """What the watermark of the batch has made due, once the tasks were consumed; None: it is
        nothing."""
        number = self.topology.number(node)
        self.complete(number + 1)
        self.clock.lap("complete")
        emitted = self._emitted_rows(node, number)
        self.clock.lap("plan")
        return emitted

    def _emitted_rows(self, node: Node, number: int) -> DataFrame | None:
        task = self.engine.emission(self.attempt, number)
        if task is None:
            return None
        instances = self.attempt.parts[number].state.route.instances
        return run_emission(self.batch.sparkSession, task, instances, node.schema)

    def release(self) -> None:
        """Lets go of what was kept for the length of the batch."""
        while self._kept:
            self._kept.pop().unpersist()

    def tasks(self, node: Node, *, plan_is_ours: bool) -> DataFrame:
        """What the tasks of an operator give, computed when it is consumed."""
        return self._tasks(node, self.topology.number(node), plan_is_ours)

    def _tasks(self, node: Node, number: int, plan_is_ours: bool) -> DataFrame:
        part = self.attempt.parts[number]
        rows = node.rows(*(self._input(child, node) for child in node.children))
        return run_tasks(
            rows,
            part.task,
            part.state.route,
            part.order,
            # What tells the rows of one key apart, where they may be at home on several instances.
            hashable_columns(rows.schema) if part.state.route.spreads else (),
            node.schema,
            plan_is_ours=plan_is_ours,
            replicates=node.replicates,
        )

    def _input(self, child: Source | Node | Table, node: Node) -> DataFrame | None:
        """What a child gives in this batch; None: a table was read in an earlier one."""
        reads_tables = self.attempt.batch == 0
        if isinstance(child, Table):
            return child.frame if reads_tables else None
        if isinstance(child, Source):
            return self.topology.input(self.batch, child)
        others = [c for c in node.children if reads_tables or not isinstance(c, Table)]
        # A union of several children numbers the partitions anew.
        return self.result(child, plan_is_ours=len(others) == 1)


def _consume(frame: DataFrame) -> None:
    frame.write.format("noop").mode("overwrite").save()


class _Clock:
    """Milliseconds from lap to lap; laps of one name add up."""

    def __init__(self, now: Callable[[], float]) -> None:
        self.laps_ms: dict[str, float] = {}
        self._now = now
        self._last = now()

    def lap(self, name: str) -> None:
        now = self._now()
        self.laps_ms[name] = round(self.laps_ms.get(name, 0.0) + 1e3 * (now - self._last), 3)
        self._last = now
