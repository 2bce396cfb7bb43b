"""The measuring process: what it is told, what is heard from it, and how its end is noticed."""

import sys
from typing import Any

from skewless.lab.bench.child import Job, batch_of
from skewless.lab.bench.engines import Replay
from skewless.lab.bench.measure import Batch
from skewless.lab.bench.pipe import follow, has_rows
from skewless.lab.bench.process import measure

JOB = Job(
    "skewless",
    Replay("l", "r", 0.5, 2, "c"),
    batches=5,
    warm_up=2,
    budget_s=10.0,
    driver_memory="1g",
)


def child(program: str) -> tuple[str, ...]:
    return (sys.executable, "-c", program)


def test_a_job_survives_the_pipe() -> None:
    assert Job.from_json(JOB.as_json()) == JOB


def test_events_come_back() -> None:
    program = """
import json, os, sys
job = json.loads(sys.stdin.readline())
print("noise that Spark makes")
with os.fdopen(int(sys.argv[1]), "w") as pipe:
    print(json.dumps({"event": "ready", "java": "17", "settings": {}}), file=pipe)
    print(json.dumps({"event": "batch", "done": 1}), file=pipe)
    batch = {"number": 0, "seconds": 0.1, "rows": 4}
    print(json.dumps({"event": "end", "batches": [batch]}), file=pipe)
"""
    done: list[int] = []
    outcome = measure(JOB, done.append, child(program))
    assert outcome.batches == [Batch(0, 0.1, 4)]
    assert outcome.java == "17"
    assert outcome.error is None
    assert done == [1]


def test_a_crash_is_told_with_its_last_words() -> None:
    outcome = measure(JOB, lambda done: None, child("raise SystemExit('no Java')"))
    assert outcome.batches == []
    assert outcome.error == "exit status 1; it said: no Java"


def record(number: int, rows: int = 10) -> dict[str, Any]:
    return {
        "batchId": number,
        "numInputRows": rows,
        "durationMs": {"addBatch": 250},
        "sink": {"numOutputRows": 3},
    }


def test_the_record_of_sparks_join() -> None:
    assert batch_of(record(4)) == Batch(4, 0.25, 10, matches=3)
    assert batch_of(record(4), counts=False) == Batch(4, 0.25, 10)


def test_the_record_of_skewless() -> None:
    state = {"rows": {"left": 1, "right": 2}, "bytes": 96}
    join = {"matches": 5, "state": state, "peakMemoryBytes": 7}
    progress = record(1) | {"skewless": {"operators": [join]}}
    assert batch_of(progress) == Batch(1, 0.25, 10, 5, 3, 96, 7)


def test_a_batch_that_only_evicts_is_no_batch() -> None:
    assert has_rows(record(1))
    assert not has_rows(record(1, rows=0))
    assert not has_rows(record(1) | {"durationMs": {}})


class FakeQuery:
    """One more batch at every look, until `ends` of them are done."""

    def __init__(self, ends: int) -> None:
        self._done, self._ends = 0, ends
        self.stopped = False

    def awaitTermination(self, timeout: float) -> bool:  # noqa: N802 - Spark's name
        self._done += 1
        return self._done > self._ends

    @property
    def lastProgress(self) -> dict[str, Any]:  # noqa: N802 - Spark's name
        return record(self._done - 1)

    @property
    def recentProgress(self) -> list[dict[str, Any]]:  # noqa: N802 - Spark's name
        return [record(number) for number in range(min(self._done, self._ends))]

    def stop(self) -> None:
        self.stopped = True


def followed(ends: int, seconds_per_look: float) -> list[int]:
    now = iter(range(1_000))
    events: list[dict[str, Any]] = []
    is_up = JOB.is_up(clock=lambda: next(now) * seconds_per_look)
    query = FakeQuery(ends)
    assert follow(query, events.append, is_up) == query.recentProgress
    assert query.stopped
    return [event["done"] for event in events]


def test_a_fast_query_runs_to_its_end() -> None:
    assert followed(ends=5, seconds_per_look=0.1) == [1, 2, 3, 4, 5]


def test_a_slow_query_is_stopped_after_two_batches() -> None:
    assert followed(ends=5, seconds_per_look=60.0) == [1, 2]
