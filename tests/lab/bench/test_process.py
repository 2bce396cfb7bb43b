"""A measuring process: what is heard from it, and how its end is noticed."""

import sys

from skewless.lab.bench.child import Job
from skewless.lab.bench.engines import Replay
from skewless.lab.bench.measure import Batch
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
