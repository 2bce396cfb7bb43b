"""Runs one measurement in a process of its own and hears from it through a pipe."""

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import IO, Any, TypeVar

from skewless.lab.bench.child import Job
from skewless.lab.bench.measure import Batch

CHILD = (sys.executable, "-m", "skewless.lab.bench.child")
_LOG_TAIL = 12


@dataclass(frozen=True)
class Outcome:
    """What came back from a process; `error` says why there are no batches."""

    batches: list[Batch] = field(default_factory=list)
    # Matches in so many of the first batches, from an engine that does not count by batch.
    totals: dict[int, int] = field(default_factory=dict)
    java: str | None = None
    settings: dict[str, str] = field(default_factory=dict)
    error: str | None = None


OnBatch = Callable[[int], None]


def measure(job: Job, on_batch: OnBatch, command: Sequence[str] = CHILD) -> Outcome:
    """Start a process for the job, wait for it, and give what it measured.

    Fresh, so that no engine profits from code that another one had compiled, and settings that
    hold for a whole Java machine can differ.
    """
    outcome, failure = converse(job.as_json(), lambda events: _hear(events, on_batch), command)
    if failure is not None:
        return Outcome(error=failure)
    return outcome if outcome.batches else Outcome(error="it measured nothing")


Heard = TypeVar("Heard")
Item = TypeVar("Item")


def converse(
    request: str, hear: Callable[[IO[str]], Heard], command: Sequence[str]
) -> tuple[Heard, str | None]:
    """Start a process, tell it one line, hear its events to the end; what was heard, and what went
    wrong with the process if anything did."""
    reading, writing = os.pipe()
    with tempfile.TemporaryFile("w+") as log, os.fdopen(reading) as events:
        try:
            process = subprocess.Popen(
                [*command, str(writing)],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                pass_fds=(writing,),
                start_new_session=True,
                text=True,
            )
        finally:
            os.close(writing)
        try:
            assert process.stdin is not None, "it is a pipe"
            with suppress(BrokenPipeError), process.stdin as stdin:
                stdin.write(request + "\n")
            heard = hear(events)
            status = process.wait()
        finally:
            _end(process)
        if status == 0:
            return heard, None
        return heard, f"exit status {status}; it said: {_tail(log)}"


def listed(
    request: str,
    on_batch: OnBatch,
    command: Sequence[str],
    of_event: Callable[[dict[str, Any]], list[Item]],
) -> tuple[list[Item], str | None]:
    """What a process lists in its last event, and what went wrong if anything did."""

    def hear(events: IO[str]) -> list[Item]:
        items: list[Item] = []
        for line in events:
            event = json.loads(line)
            if event["event"] == "batch":
                on_batch(event["done"])
            else:
                items = of_event(event)
        return items

    items, failure = converse(request, hear, command)
    return items, failure or (None if items else "it measured nothing")


def _hear(events: IO[str], on_batch: OnBatch) -> Outcome:
    """Read events until the process closes its end of the pipe."""
    java: str | None = None
    settings: dict[str, str] = {}
    batches: list[Batch] = []
    totals: dict[int, int] = {}
    for line in events:
        event = json.loads(line)
        if event["event"] == "ready":
            java, settings = event["java"], event["settings"]
        elif event["event"] == "batch":
            on_batch(event["done"])
        elif event["event"] == "end":
            batches = [Batch(**batch) for batch in event["batches"]]
            totals = dict(event.get("totals", []))
    return Outcome(batches, totals, java, settings)


def _end(process: subprocess.Popen[str]) -> None:
    """Leave nothing running, also when the user breaks off: Java is in the same session."""
    if process.poll() is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _tail(log: IO[str]) -> str:
    log.seek(0)
    lines = [line.rstrip() for line in log if line.strip() and not line.startswith("\tat ")]
    return "\n".join(lines[-_LOG_TAIL:]) or "nothing"
