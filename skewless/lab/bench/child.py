"""The process in which one engine is measured: a fresh Java machine, one query, then the end.

It reads a `Job` from its standard input and writes one JSON line per event to a pipe: `ready`, when
Spark is up; `batch`, as batches are done; `end`, with the record of all of them.
"""

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Self

from skewless.lab.bench import with_flink, with_pathway
from skewless.lab.bench.engines import ENGINES, Replay, session_settings
from skewless.lab.bench.measure import Batch
from skewless.lab.bench.pipe import Emit, Request, answer, follow, session
from skewless.lab.bench.verdict import FLOOR

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LEAST_BATCHES = 2  # the first is left out


@dataclass(frozen=True)
class Job(Request):
    """What the process is to do."""

    engine: str
    replay: Replay
    batches: int
    warm_up: int
    budget_s: float  # the query is stopped after this time, once it has done `LEAST_BATCHES`
    driver_memory: str

    def is_up(self, clock: Callable[[], float] = time.monotonic) -> Callable[[int], bool]:
        """Whether the time is up that begins now, once so many batches are done."""
        began = clock()
        least = min(self.batches, LEAST_BATCHES)
        return lambda done: done >= least and clock() - began > self.budget_s

    @classmethod
    def from_json(cls, text: str) -> Self:
        fields = json.loads(text)
        return cls(**{**fields, "replay": Replay(**fields["replay"])})


def batch_of(progress: Any, *, counts: bool = True) -> Batch:
    """A record of Spark's progress as the figures that are kept of it.

    Of Spark's operators `matches` are the rows that they gave, if that `counts`; of Skewless, the
    pairs of its join.
    """
    seconds = progress["durationMs"]["addBatch"] / 1e3
    number, rows = progress["batchId"], progress["numInputRows"]
    own = progress.get("skewless")
    if own is None:
        matches = progress["sink"]["numOutputRows"] if counts else None
        return Batch(number, seconds, rows, matches=matches)
    operator = own["operators"][0]
    stored = operator["state"]["rows"]
    return Batch(
        number,
        seconds,
        rows,
        matches=operator["matches"],
        state_rows=sum(stored.values()) if isinstance(stored, dict) else stored,
        state_bytes=operator["state"]["bytes"],
        peak_memory_bytes=operator["peakMemoryBytes"],
    )


def ready(job: Job, own: Mapping[str, str], emit: Emit) -> "SparkSession":
    """The session of this process, with an engine's own settings; told when it is up."""
    settings = session_settings(own, job.replay.cores, job.driver_memory)
    spark = session(job.replay.cores, settings)
    jvm = spark.sparkContext._jvm
    assert jvm is not None, "the session is local"
    java = jvm.java.lang.System.getProperty("java.version")
    emit({"event": "ready", "java": java, "settings": settings})
    return spark


def measure_query(
    job: Job,
    emit: Emit,
    start: Callable[["SparkSession", Replay], Any],
    settings: Mapping[str, str],
    *,
    counts: bool = True,
) -> None:
    """Run a query on a session of its own."""
    spark = ready(job, settings, emit)
    query = start(spark, job.replay)
    records = [batch_of(p, counts=counts) for p in follow(query, emit, job.is_up())]
    emit({"event": "end", "batches": [asdict(batch) for batch in records]})
    spark.stop()


def measure(job: Job, emit: Emit) -> None:
    """Run the engine, which is on Spark."""
    engine = ENGINES[job.engine]
    assert engine.start is not None, "runs on Spark"
    # Rows without a match come in another batch than Spark's, and a function counts none.
    counts = job.engine != FLOOR and job.replay.how == "inner"
    measure_query(job, emit, engine.start, engine.settings, counts=counts)


def measure_pathway(job: Job, emit: Emit) -> None:
    replay = job.replay
    records, totals = with_pathway.measure(
        replay.left, replay.right, replay.within_s, replay.cores, job.warm_up, emit
    )
    batches = [asdict(batch) for batch in records]
    emit({"event": "end", "batches": batches, "totals": list(totals.items())})


def measure_flink(job: Job, emit: Emit) -> None:
    replay = job.replay
    records = with_flink.measure(
        replay.left, replay.right, replay.within_s, replay.cores, job.driver_memory, emit
    )
    emit({"event": "end", "batches": [asdict(batch) for batch in records]})


# The engines that are not on Spark.
ELSEWHERE = {with_flink.NAME: measure_flink, with_pathway.NAME: measure_pathway}


def main() -> None:
    answer(Job.from_json, lambda job, emit: ELSEWHERE.get(job.engine, measure)(job, emit))


if __name__ == "__main__":
    main()
