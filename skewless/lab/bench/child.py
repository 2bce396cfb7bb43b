"""The process in which one engine is measured: a fresh Java machine, one query, then the end.

It reads a `Job` from its standard input and writes one JSON line per event to a pipe: `ready`, when
Spark is up; `batch`, as batches are done; `end`, with the record of all of them.
"""

import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from skewless.lab.bench import with_flink, with_pathway
from skewless.lab.bench.engines import ENGINES, Replay, session_settings
from skewless.lab.bench.measure import Batch
from skewless.lab.bench.verdict import FLOOR

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

POLL_S = 0.5
LEAST_BATCHES = 2  # the first is left out

Emit = Callable[[dict[str, Any]], None]


@dataclass(frozen=True)
class Job:
    """What the process is to do."""

    engine: str
    replay: Replay
    batches: int
    warm_up: int
    budget_s: float  # the query is stopped after this time, once it has done `LEAST_BATCHES`
    driver_memory: str

    def as_json(self) -> str:
        return json.dumps(asdict(self))

    @staticmethod
    def from_json(text: str) -> "Job":
        fields = json.loads(text)
        return Job(**{**fields, "replay": Replay(**fields["replay"])})


def batch_of(progress: Any, *, joins: bool = True) -> Batch:
    """A record of Spark's progress as the figures that are kept of it."""
    seconds = progress["durationMs"]["addBatch"] / 1e3
    number, rows = progress["batchId"], progress["numInputRows"]
    own = progress.get("skewless")
    if own is None:
        matches = progress["sink"]["numOutputRows"] if joins else None
        return Batch(number, seconds, rows, matches=matches)
    join = own["operators"][0]
    return Batch(
        number,
        seconds,
        rows,
        matches=join["matches"],
        state_rows=sum(join["state"]["rows"].values()),
        state_bytes=join["state"]["bytes"],
        peak_memory_bytes=join["peakMemoryBytes"],
    )


def has_rows(progress: Any) -> bool:
    """Whether this record is of a batch with data: Spark's join ends with one that only evicts."""
    return bool(progress["numInputRows"]) and "addBatch" in progress["durationMs"]


def follow(query: Any, job: Job, emit: Emit, clock: Callable[[], float] = time.monotonic) -> None:
    """Wait for the query, telling which batch it is at, and stop it when its time is up."""
    began = clock()
    told = 0
    while not query.awaitTermination(POLL_S):
        # One record: all of them in every round would take time from what is measured.
        last = query.lastProgress
        if last is None or not has_rows(last):
            continue
        done = last["batchId"] + 1
        if done > told:
            told = done
            emit({"event": "batch", "done": done})
        if done >= min(job.batches, LEAST_BATCHES) and clock() - began > job.budget_s:
            return


def ready(job: Job, own: Mapping[str, str], emit: Emit) -> "SparkSession":
    """The session of this process, with an engine's own settings; told when it is up."""
    import skewless as sk

    settings = session_settings(own, job.replay.cores, job.driver_memory)
    spark = sk.session(master=f"local[{job.replay.cores}, 4]", app_name="bench", config=settings)
    jvm = spark.sparkContext._jvm
    assert jvm is not None, "the session is local"
    java = jvm.java.lang.System.getProperty("java.version")
    emit({"event": "ready", "java": java, "settings": settings})
    return spark


def measure(job: Job, emit: Emit) -> None:
    """Run the engine on a session of its own."""
    engine = ENGINES[job.engine]
    assert engine.start is not None, "runs on Spark"
    spark = ready(job, engine.settings, emit)
    query = engine.start(spark, job.replay)
    try:
        follow(query, job, emit)
        done = [p for p in query.recentProgress if has_rows(p)]
    finally:
        query.stop()
    records = [batch_of(progress, joins=job.engine != FLOOR) for progress in done]
    emit({"event": "end", "batches": [asdict(batch) for batch in records]})
    spark.stop()


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
    job = Job.from_json(sys.stdin.readline())
    with os.fdopen(int(sys.argv[1]), "w", buffering=1) as pipe:

        def emit(event: dict[str, Any]) -> None:
            pipe.write(json.dumps(event) + "\n")

        ELSEWHERE.get(job.engine, measure)(job, emit)


if __name__ == "__main__":
    main()
