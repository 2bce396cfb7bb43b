"""What `shed=` costs where it is not needed: the same join with it and without it, by turns.

The process reads a `Pairs` from its standard input and writes one JSON line per event to a pipe:
`batch`, as pairs are done; `end`, with the seconds of both in each.
"""

import statistics
import tempfile
from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from skewless.lab.bench.engines import SCHEMA
from skewless.lab.bench.pipe import Emit, Request, answer, follow, session, settings, to_nowhere

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Far above what a batch takes.
LIMIT = "60 seconds"


@dataclass(frozen=True)
class Pairs(Request):
    """What the process is to do."""

    left: str
    right: str
    window_s: float
    warm_up: int  # batches of every run that do not count
    pairs: int
    folder: str
    cores: int
    driver_memory: str


@dataclass(frozen=True)
class Pair:
    """A batch without `shed` and with it, medians of one run each.

    Where other programs take turns on the cores, the CPU time of the tasks differs less than the
    time of the batch.
    """

    plain: float  # seconds
    shed: float
    plain_cpu_ms: float  # of all tasks
    shed_cpu_ms: float
    matches: tuple[int, int]
    fraction: float  # the least of all batches with `shed`

    @property
    def slower(self) -> float:
        return self.shed / self.plain - 1

    @property
    def slower_by_cpu(self) -> float:
        return self.shed_cpu_ms / self.plain_cpu_ms - 1


def compare(pairs: Pairs, emit: Emit) -> None:
    spark = session(pairs.cores, settings(pairs.driver_memory))
    found = run(spark, pairs, emit)
    emit({"event": "end", "items": [asdict(pair) for pair in found]})
    spark.stop()


def run(spark: "SparkSession", pairs: Pairs, emit: Emit) -> list[Pair]:
    """The pairs, after one that warms up; who begins alternates."""
    found: list[Pair] = []
    for number in range(pairs.pairs + 1):
        records: dict[bool, list[Any]] = {}
        for with_shed in (False, True) if number % 2 else (True, False):
            records[with_shed] = _batches(spark, pairs, with_shed=with_shed)
        if number:
            found.append(pair_of(records[False], records[True], pairs.warm_up))
        emit({"event": "batch", "done": number})
    return found


def pair_of(plain: list[Any], shed: list[Any], warm_up: int) -> Pair:
    """What is kept of the progress of two runs."""

    def seconds(records: list[Any]) -> float:
        return statistics.median(p["durationMs"]["addBatch"] for p in records[warm_up:]) / 1e3

    def operators(records: list[Any]) -> list[Any]:
        return [p["skewless"]["operators"][0] for p in records]

    def cpu_ms(records: list[Any]) -> float:
        return statistics.median(sum(j["load"]["cpuMs"]) for j in operators(records[warm_up:]))

    return Pair(
        seconds(plain),
        seconds(shed),
        cpu_ms(plain),
        cpu_ms(shed),
        (
            sum(join["matches"] for join in operators(plain)),
            sum(join["matches"] for join in operators(shed)),
        ),
        min(join["shed"]["fraction"] for join in operators(shed)),
    )


def _batches(spark: "SparkSession", pairs: Pairs, *, with_shed: bool) -> list[Any]:
    import skewless as sk

    left, right = (
        spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(folder)
        for folder in (pairs.left, pairs.right)
    )
    matches = sk.join(
        left,
        right,
        on="k",
        time="ts",
        within=timedelta(seconds=pairs.window_s),
        watermark="0 seconds",
        balance=sk.Hash(pairs.cores),
        shed=sk.Shed(LIMIT) if with_shed else None,
    )
    with tempfile.TemporaryDirectory(dir=pairs.folder) as checkpoint:
        return follow(to_nowhere(matches, f"{checkpoint}/c"), lambda event: None)


if __name__ == "__main__":
    answer(Pairs.from_json, compare)
