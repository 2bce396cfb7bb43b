"""Pathway's interval join on the same rows, for an environment in which Pathway is installed.

Pathway has no micro-batches. It joins the first batches, then all of them, each from start to end;
the difference is what the others take, without the start.
"""

import importlib.util
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.csv
import pyarrow.parquet as pq

from skewless.lab.bench.measure import Batch

NAME = PACKAGE = "pathway"


def installed() -> bool:
    return importlib.util.find_spec(NAME) is not None


def measure(
    left: str, right: str, within_s: float, cores: int, first: int, emit: Callable[[Any], None]
) -> tuple[list[Batch], dict[int, int]]:
    """Time per batch, and the matches in so many of the first batches."""
    os.environ["PATHWAY_THREADS"] = str(cores)
    emit({"event": "ready", "java": None, "settings": {"threads": str(cores)}})
    names = sorted(path.name for path in Path(left).iterdir())
    rows = _rows(left, names) + _rows(right, names)
    with tempfile.TemporaryDirectory() as folder:
        seconds, matches = {}, {}
        for count in (first, len(names)):
            sides = [
                _as_csv(side, names[:count], Path(folder, str(count))) for side in (left, right)
            ]
            seconds[count], matches[count] = _join(sides[0], sides[1], round(within_s * 1e6))
            emit({"event": "batch", "done": count})
    per_batch = rows // len(names)
    rest = (seconds[len(names)] - seconds[first]) / (len(names) - first)
    started = [Batch(i, seconds[first] / first, per_batch) for i in range(first)]
    return started + [Batch(i, rest, per_batch) for i in range(first, len(names))], matches


def _rows(side: str, names: list[str]) -> int:
    return sum(int(pq.read_metadata(Path(side, name)).num_rows) for name in names)


def _as_csv(side: str, names: list[str], folder: Path) -> str:
    """The same rows as text, with the time in microseconds; written before the clock starts."""
    target = folder / Path(side).name
    target.mkdir(parents=True)
    for name in names:
        table = pq.read_table(Path(side, name))
        table = table.set_column(1, "us", table["ts"].cast("int64"))
        pyarrow.csv.write_csv(table, target / f"{name}.csv")
    return str(target)


def _join(left_folder: str, right_folder: str, within_us: int) -> tuple[float, int]:
    import pathway as pw

    schema = pw.schema_from_types(k=int, us=int, v=int)
    left = pw.io.csv.read(left_folder, schema=schema, mode="static")
    right = pw.io.csv.read(right_folder, schema=schema, mode="static")
    within = pw.temporal.interval(-within_us, within_us)
    joined = pw.temporal.interval_join(
        left, right, left.us, right.us, within, left.k == right.k
    ).select(left.k, left.us, left.v, us_right=right.us, v_right=right.v)
    counted = [0]
    pw.io.subscribe(
        joined.reduce(rows=pw.reducers.count()),
        lambda key, row, time, is_addition: counted.append(row["rows"]),
    )
    began = time.perf_counter()
    pw.run(monitoring_level=pw.MonitoringLevel.NONE)
    elapsed_s = time.perf_counter() - began
    pw.internals.parse_graph.G.clear()
    return elapsed_s, max(counted)
