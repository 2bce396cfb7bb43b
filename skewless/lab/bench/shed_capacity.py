"""How many rows per second a full join keeps up with: a few batches at rising rates.

The process reads a `Calibration` from its standard input and writes one JSON line per event to a
pipe: `batch`, as rates are done; `end`, with what was measured at each.
"""

import statistics
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from skewless.lab.bench.pipe import Emit, Request, answer, follow, session, settings, to_nowhere
from skewless.lab.bench.shed_child import joined, turn_of
from skewless.lab.bench.shed_streams import sides, write

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STEP = 1.6  # from one rate to the next
MEASURED = 3  # batches at each, after one that fills the windows


@dataclass(frozen=True)
class Calibration(Request):
    """What the process is to do."""

    folder: str
    window_s: float
    interval_s: float
    first_rate: float  # rows per second of each side
    rates: int  # at most
    cores: int
    driver_memory: str


@dataclass(frozen=True)
class Point:
    """A batch of one interval at a rate, with full windows: medians of some."""

    rate: float
    seconds: float
    comparisons: float


def capacity(points: Sequence[Point], interval_s: float) -> Point:
    """Where a batch takes just the interval.

    Between the rates around it, by the square of the rate: comparisons grow with it. If all are
    below, the highest rate.

    >>> capacity([Point(100, 0.5, 1e3), Point(200, 2.0, 4e3)], interval_s=1.0)
    Point(rate=141.42..., seconds=1.0, comparisons=2000.0)
    """
    below = [p for p in points if p.seconds <= interval_s]
    above = [p for p in points if p.seconds > interval_s]
    low = max(below, key=lambda p: p.rate, default=Point(0.0, 0.0, 0.0))
    above = [p for p in above if p.rate > low.rate]
    if not above:
        return low
    high = min(above, key=lambda p: p.rate)
    part = (interval_s - low.seconds) / (high.seconds - low.seconds)
    square = low.rate**2 + part * (high.rate**2 - low.rate**2)
    comparisons = low.comparisons + part * (high.comparisons - low.comparisons)
    return Point(square**0.5, interval_s, comparisons)


def calibrate(calibration: Calibration, emit: Emit) -> None:
    spark = session(calibration.cores, settings(calibration.driver_memory))
    points = rising(spark, calibration, emit)
    emit({"event": "end", "items": [asdict(point) for point in points]})
    spark.stop()


def rising(spark: "SparkSession", calibration: Calibration, emit: Emit) -> list[Point]:
    """Rates one after the other, until a batch takes longer than the interval."""
    rate = calibration.first_rate
    # Java compiles while it runs: the first time does not count.
    measure(spark, calibration, rate)
    points: list[Point] = []
    while len(points) < calibration.rates:
        points.append(measure(spark, calibration, rate))
        emit({"event": "batch", "done": len(points)})
        if points[-1].seconds > calibration.interval_s:
            break
        rate *= STEP
    return points


def measure(spark: "SparkSession", calibration: Calibration, rate: float) -> Point:
    """One rate: a batch that fills the windows, then some of an interval each."""
    window_s, interval_s = calibration.window_s, calibration.interval_s
    edges = [0.0, *(window_s + n * interval_s for n in range(MEASURED + 1))]
    with tempfile.TemporaryDirectory(dir=calibration.folder) as folder:
        write(sides([(rate, edges[-1])], window_s), Path(folder), edges)
        result = joined(spark, folder, window_s, calibration.cores, one_by_one=True)
        query = to_nowhere(result, f"{folder}/checkpoint")
        turns = [turn_of(p) for p in follow(query, lambda event: None)][-MEASURED:]
    return Point(
        rate,
        statistics.median(turn.seconds for turn in turns),
        statistics.median(turn.comparisons for turn in turns),
    )


if __name__ == "__main__":
    answer(Calibration.from_json, calibrate)
