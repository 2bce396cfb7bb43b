"""The process in which one engine of the benchmark of keyed state is measured.

As in `skewless.lab.bench.child`: a `Job` comes in, `ready`, `batch` and `end` go out. The job's
engine is named as in `keyed_engines.ENGINES`; there is one input, which both sides of its replay
name.
"""

import json
import os
import sys
from dataclasses import asdict
from typing import Any

from skewless.lab.bench.child import Emit, Job, follow, has_rows, ready
from skewless.lab.bench.keyed_engines import ENGINES
from skewless.lab.bench.measure import Batch


def batch_of(progress: Any) -> Batch:
    """A record of Spark's progress as the figures that are kept of it.

    Of Spark's operators `matches` are the rows that they gave; of Skewless, pairs of a self-join.
    """
    seconds = progress["durationMs"]["addBatch"] / 1e3
    number, rows = progress["batchId"], progress["numInputRows"]
    own = progress.get("skewless")
    if own is None:
        return Batch(number, seconds, rows, matches=progress["sink"]["numOutputRows"])
    (keyed,) = own["operators"]
    return Batch(
        number,
        seconds,
        rows,
        matches=keyed["matches"],
        state_rows=keyed["state"]["rows"],
        state_bytes=keyed["state"]["bytes"],
        peak_memory_bytes=keyed["peakMemoryBytes"],
    )


def measure(job: Job, emit: Emit) -> None:
    """Run the engine on a session of its own."""
    engine = ENGINES[job.engine]
    spark = ready(job, engine.settings, emit)
    query = engine.start(spark, job.replay)
    try:
        follow(query, job, emit)
        done = [p for p in query.recentProgress if has_rows(p)]
    finally:
        query.stop()
    emit({"event": "end", "batches": [asdict(batch_of(progress)) for progress in done]})
    spark.stop()


def main() -> None:
    job = Job.from_json(sys.stdin.readline())
    with os.fdopen(int(sys.argv[1]), "w", buffering=1) as pipe:

        def emit(event: dict[str, Any]) -> None:
            pipe.write(json.dumps(event) + "\n")

        measure(job, emit)


if __name__ == "__main__":
    main()
