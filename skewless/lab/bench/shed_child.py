"""The process in which one way to shed is measured: files appear on schedule, one query reads them.

It reads a `Contest` from its standard input and writes one JSON line per event to a pipe: `batch`,
as files are released; `end`, with the record of all batches.
"""

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skewless.lab.bench.pipe import Emit, Request, answer, has_rows, session, settings
from skewless.lab.bench.shed_streams import AT_LEAST, SCHEMA, SIDES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from skewless.shedding.policy import Shedding

SHED, DROP, NONE = "Shed", "RandomDrop", "no shedding"
# After the last file a query that keeps up is done within so many intervals.
GRACE = 3


@dataclass(frozen=True)
class Contest(Request):
    """What the process is to do."""

    contender: str
    files: str  # prepared: one folder per side, one file per step
    folder: str  # for the source folders and the checkpoint
    rows: int  # in all files
    window_s: float
    interval_s: float
    step_s: float
    cores: int
    driver_memory: str


@dataclass(frozen=True)
class Turn:
    """One micro-batch of the join."""

    number: int
    seconds: float  # durationMs.triggerExecution: from its start to its commit
    left: int  # rows
    right: int
    late: int
    dropped: int  # rows that were not even stored
    matches: int
    offered: int  # comparisons of a full probe
    comparisons: int
    fraction: float
    missed: float = 0.0
    missed_error: float = 0.0
    is_done: bool = True  # otherwise it was running when time was up, and has taken so long


def turn_of(progress: Any) -> Turn:
    """A record of Spark's progress as the figures that are kept of it."""
    join = progress["skewless"]["operators"][0]
    shed = join.get("shed")
    return Turn(
        number=progress["batchId"],
        seconds=progress["durationMs"]["triggerExecution"] / 1e3,
        left=join["rows"]["left"],
        right=join["rows"]["right"],
        late=sum(join["late"].values()),
        dropped=sum(shed["droppedRows"].values()) if shed else 0,
        matches=join["matches"],
        offered=shed["offered"] if shed else join["comparisons"],
        comparisons=join["comparisons"],
        fraction=shed["fraction"] if shed else 1.0,
        missed=(shed["missed"] or 0.0) if shed else 0.0,
        missed_error=(shed["missedError"] or 0.0) if shed else 0.0,
    )


def release(
    files: Path,
    folder: Path,
    steps: Sequence[str],
    step_s: float,
    emit: Emit,
    *,
    clock: Callable[[], float] = time.monotonic,
    wait: Callable[[float], None] = time.sleep,
) -> None:
    """Lets the files of a step appear when the time is over that its rows are of.

    They were written before: a link is all that is made, and it costs no time.
    """
    began = clock()
    for number, name in enumerate(steps):
        wait(max(0.0, began + (number + 1) * step_s - clock()))
        for side in SIDES:
            os.link(files / side / name, folder / side / name)
        emit({"event": "batch", "done": number + 1})


def joined(
    spark: "SparkSession",
    folder: str,
    window_s: float,
    cores: int,
    *,
    shed: "Shedding | None" = None,
    one_by_one: bool = False,
) -> Any:
    """The join of the benchmark, of two folders of files: all that are there, or `one_by_one`."""
    import skewless as sk

    reader = spark.readStream.schema(SCHEMA)
    if one_by_one:
        reader = reader.option("maxFilesPerTrigger", 1)
    sides = [reader.parquet(f"{folder}/{side}") for side in SIDES]
    return sk.join(
        sides[0],
        sides[1],
        match=sk.Overlap("items", AT_LEAST),
        time="ts",
        within=f"{window_s} seconds",
        watermark="0 seconds",
        balance=sk.Hash(cores),
        shed=shed,
    )


def contend(contest: Contest, emit: Emit) -> None:
    spark = session(contest.cores, settings(contest.driver_memory))
    turns = run(spark, contest, emit)
    emit({"event": "end", "items": [asdict(turn) for turn in turns]})
    spark.stop()


def run(spark: "SparkSession", contest: Contest, emit: Emit) -> list[Turn]:
    """One query, while files are released; what its batches were."""
    import skewless as sk

    limit = f"{contest.interval_s} seconds"
    shed = {SHED: sk.Shed(limit), DROP: sk.RandomDrop(limit), NONE: None}[contest.contender]
    folder, files = Path(contest.folder), Path(contest.files)
    for side in SIDES:
        (folder / side).mkdir(parents=True)
    result = joined(spark, contest.folder, contest.window_s, contest.cores, shed=shed)
    query = (
        result.writeStream.format("noop")
        .option("checkpointLocation", f"{contest.folder}/checkpoint")
        .trigger(processingTime=limit)
        .start()
    )
    try:
        steps = sorted(path.name for path in (files / SIDES[0]).iterdir())
        # The first batch starts workers and compiles: the clock begins after it.
        release(files, folder, steps[:1], 0.0, lambda event: None)
        query.processAllAvailable()
        release(files, folder, steps[1:], contest.step_s, emit)
        deadline = time.monotonic() + GRACE * contest.interval_s
        while not query.awaitTermination(contest.interval_s / 2):
            records = [p for p in query.recentProgress if has_rows(p)]
            if sum(p["numInputRows"] for p in records) >= contest.rows:
                return [turn_of(p) for p in records]
            if time.monotonic() > deadline:
                return [*(turn_of(p) for p in records), unfinished(records[-1], datetime.now(UTC))]
        return []
    finally:
        query.stop()


def unfinished(last: Any, now: datetime) -> Turn:
    """The batch that was running since the last one ended."""
    ended_s = (
        datetime.fromisoformat(last["timestamp"]).timestamp()
        + last["durationMs"]["triggerExecution"] / 1e3
    )
    return Turn(
        last["batchId"] + 1, now.timestamp() - ended_s, 0, 0, 0, 0, 0, 0, 0, 1.0, is_done=False
    )


if __name__ == "__main__":
    answer(Contest.from_json, contend)
