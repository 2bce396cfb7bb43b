"""The process in which one contender of the benchmark of spatial streams is measured.

As in `skewless.lab.bench.child`: a `Job` comes in, `ready`, `batch` and `end` go out. The job's
engine is named as in `spatial_engines.ENGINES`, or it is SedonaDB, which is not on Spark.
"""

from dataclasses import asdict

from skewless.lab.bench import with_sedona
from skewless.lab.bench.child import Job, measure_query
from skewless.lab.bench.pipe import Emit, answer
from skewless.lab.bench.spatial_engines import ENGINES, FLOORS
from skewless.lab.bench.spatial_scenes import RADIUS


def measure(job: Job, emit: Emit) -> None:
    if job.engine == with_sedona.NAME:
        _measure_sedona(job, emit)
        return
    engine = ENGINES[job.engine]
    assert engine.start is not None, "runs on Spark"
    counts = job.engine not in FLOORS  # what they give are no matches
    measure_query(job, emit, engine.start, engine.settings, counts=counts)


def _measure_sedona(job: Job, emit: Emit) -> None:
    replay = job.replay
    batches, total = with_sedona.measure(replay.left, replay.right, replay.within_s, RADIUS, emit)
    told = [asdict(batch) for batch in batches]
    emit({"event": "end", "batches": told, "totals": [[job.batches, total]]})


if __name__ == "__main__":
    answer(Job.from_json, measure)
