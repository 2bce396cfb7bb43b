"""What a measuring process is told, and what it keeps of the records of a query."""

from skewless.lab.bench.child import Job, batch_of
from skewless.lab.bench.engines import Replay
from skewless.lab.bench.measure import Batch

from .records import record

JOB = Job(
    "skewless",
    Replay("l", "r", 0.5, 2, "c"),
    batches=5,
    warm_up=2,
    budget_s=10.0,
    driver_memory="1g",
)


def test_a_job_survives_the_pipe() -> None:
    assert Job.from_json(JOB.as_json()) == JOB


def test_the_record_of_sparks_join() -> None:
    assert batch_of(record(4)) == Batch(4, 0.25, 10, matches=3)
    assert batch_of(record(4), counts=False) == Batch(4, 0.25, 10)


def test_the_record_of_skewless() -> None:
    state = {"rows": {"left": 1, "right": 2}, "bytes": 96}
    join = {"matches": 5, "state": state, "peakMemoryBytes": 7}
    progress = record(1) | {"skewless": {"operators": [join]}}
    assert batch_of(progress) == Batch(1, 0.25, 10, 5, 3, 96, 7)


def test_the_time_is_up_only_after_two_batches() -> None:
    now = iter([0.0, 60.0, 60.0, 9.0])
    is_up = JOB.is_up(clock=lambda: next(now))
    assert not is_up(1), "the clock is not asked"
    assert is_up(2)
    assert is_up(3)
    assert not is_up(4)
