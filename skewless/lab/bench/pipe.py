"""The measuring process's side of the talk: one request in, one JSON line per event out.

Events are `batch`, as batches are done, and `end`, with the record of all of them.
"""

import json
import os
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Self, TypeVar

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

POLL_S = 0.5

Emit = Callable[[dict[str, Any]], None]
Asked = TypeVar("Asked")


@dataclass(frozen=True)
class Request:
    """What a measuring process is to do, told in one line of JSON."""

    def as_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Self:
        return cls(**json.loads(text))


def answer(read: Callable[[str], Asked], measure: Callable[[Asked, Emit], None]) -> None:
    """What the program of a measuring process does: it is told what to measure, and tells."""
    request = read(sys.stdin.readline())
    with os.fdopen(int(sys.argv[1]), "w", buffering=1) as pipe:

        def emit(event: dict[str, Any]) -> None:
            pipe.write(json.dumps(event) + "\n")

        measure(request, emit)


def settings(driver_memory: str) -> dict[str, str]:
    """What all sessions of measuring processes have: the same heap, and records of all batches."""
    return {
        "spark.driver.memory": driver_memory,
        "spark.sql.streaming.numRecentProgressUpdates": "1000",
    }


def session(slots: int, config: dict[str, str]) -> "SparkSession":
    """The session of a measuring process, with so many tasks at once."""
    import skewless as sk

    return sk.session(master=f"local[{slots}, 4]", app_name="bench", config=config)


def to_function(stream: Any, function: Any, checkpoint: str) -> Any:
    """A query into a function of every batch, until all files are read."""
    writer = stream.writeStream.foreachBatch(function).option("checkpointLocation", checkpoint)
    return writer.trigger(availableNow=True).start()


def to_nowhere(stream: Any, checkpoint: str, mode: str | None = None) -> Any:
    """A query into the sink that takes everything and keeps nothing, until all files are read.

    Of a DataFrame or a stream of Skewless.
    """
    writer = stream.writeStream.format("noop").option("checkpointLocation", checkpoint)
    if mode is not None:
        writer = writer.outputMode(mode)
    return writer.trigger(availableNow=True).start()


def has_rows(progress: Any) -> bool:
    """Whether this record is of a batch with data: Spark's join ends with one that only evicts."""
    return bool(progress["numInputRows"]) and "addBatch" in progress["durationMs"]


def follow(query: Any, emit: Emit, enough: Callable[[int], bool] = lambda done: False) -> list[Any]:
    """Wait for a query, telling which batch it is at; the records of its batches.

    It is stopped early when so many batches are `enough`.
    """
    told = 0
    try:
        while not query.awaitTermination(POLL_S):
            # One record: all of them in every round would take time from what is measured.
            last = query.lastProgress
            if last is None or not has_rows(last):
                continue
            done = last["batchId"] + 1
            if done > told:
                told = done
                emit({"event": "batch", "done": done})
            if enough(done):
                break
        return [progress for progress in query.recentProgress if has_rows(progress)]
    finally:
        query.stop()
