"""The process in which one engine of the benchmark of keyed state is measured.

As in `skewless.lab.bench.child`: a `Job` comes in, `ready`, `batch` and `end` go out. The job's
engine is named as in `keyed_engines.ENGINES`; there is one input, which both sides of its replay
name.
"""

from skewless.lab.bench.child import Job, measure_query
from skewless.lab.bench.keyed_engines import ENGINES
from skewless.lab.bench.pipe import Emit, answer


def measure(job: Job, emit: Emit) -> None:
    engine = ENGINES[job.engine]
    measure_query(job, emit, engine.start, engine.settings)


if __name__ == "__main__":
    answer(Job.from_json, measure)
