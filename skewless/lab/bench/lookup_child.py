"""The process in which one engine of the benchmark of stream and table is measured.

As in `skewless.lab.bench.child`; the stream is on the left of the job's replay, the table on its
right.
"""

from skewless.lab.bench.child import Job, measure_query
from skewless.lab.bench.lookup_engines import ENGINES
from skewless.lab.bench.pipe import Emit, answer


def measure(job: Job, emit: Emit) -> None:
    engine = ENGINES[job.engine]
    measure_query(job, emit, engine.start, engine.settings)


if __name__ == "__main__":
    answer(Job.from_json, measure)
