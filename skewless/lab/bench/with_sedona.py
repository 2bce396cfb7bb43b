"""SedonaDB's distance join on the same rows as a batch, for an environment that has it installed.

SedonaDB is Apache Sedona's engine for one machine (`pip install sedonadb`). Sedona on Spark needs
jars that are not on PyPI.
"""

import importlib.util
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from skewless.lab.bench.measure import Batch

NAME = PACKAGE = "sedonadb"


def installed() -> bool:
    return importlib.util.find_spec(PACKAGE) is not None


def measure(
    left: str, right: str, within_s: float, radius: float, emit: Callable[[Any], None]
) -> tuple[list[Batch], int]:
    """The join of all rows at once, twice: the first time warms up; and how many pairs there are.

    It has no state and no windows that move on, so its time is that of all batches together.
    """
    with warnings.catch_warnings():
        # It complains about libraries for projections and rasters, which are not needed here.
        warnings.simplefilter("ignore")
        import sedonadb

        engine = sedonadb.connect()
    emit({"event": "ready", "java": None, "settings": {}})
    rows = 0
    for name, folder in (("l", left), ("r", right)):
        table = pa.concat_tables(pq.read_table(path) for path in sorted(Path(folder).iterdir()))
        at = table["ts"].cast(pa.int64())
        plain = pa.table({"id": table["id"], "at": at, "x": table["x"], "y": table["y"]})
        engine.create_data_frame(plain).to_view(name)
        rows += table.num_rows
    batches, pairs = [], 0
    for number in range(2):
        began = time.perf_counter()
        pairs = _pairs(engine, round(within_s * 1e6), radius)
        batches.append(Batch(number, time.perf_counter() - began, rows))
        emit({"event": "batch", "done": number + 1})
    return batches, pairs


def _pairs(engine: Any, within_us: int, radius: float) -> int:
    """How many pairs there are; their columns are computed, as by the other contenders."""
    sides = [
        f"(SELECT id AS {s}_id, at AS {s}_at, x AS {s}_x, y AS {s}_y, ST_Point(x, y) AS {s} "
        f"FROM {s})"
        for s in ("l", "r")
    ]
    found = engine.sql(
        "SELECT l_id, l_at, l_x, l_y, r_id, r_at, r_x, r_y "
        f"FROM {sides[0]} JOIN {sides[1]} "
        f"ON ST_DWithin(l, r, {radius!r}) AND ABS(l_at - r_at) <= {within_us}"
    )
    return sum(batch.num_rows for batch in pa.RecordBatchReader.from_stream(found))
