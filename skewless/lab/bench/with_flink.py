"""Flink SQL's interval join on the same rows, for an environment in which PyFlink is installed.

Flink has no micro-batches, but every row can carry the number of its batch and every match the
wall-clock time at which it was made: a batch takes from the last match of the one before to its
own.
"""

import importlib.util
import math
import os
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.csv
import pyarrow.parquet as pq

from skewless.lab.bench.measure import Batch
from skewless.lab.workloads.streams import JITTER_US

NAME = "flink"
PACKAGE = "apache-flink"

# Two rows of a side that are in the wrong order are at most this far apart.
_DELAY_MS = 2 * JITTER_US // 1_000 + 1
_TABLE = """
CREATE TABLE {name} (
  k BIGINT, us BIGINT, v BIGINT, batch INT,
  ts AS TO_TIMESTAMP_LTZ(us / 1000, 3),
  WATERMARK FOR ts AS ts - {delay}
) WITH ('connector' = 'filesystem', 'format' = 'csv', 'path' = '{path}')
"""
# Flink's event time has milliseconds, so the microseconds are compared again. The sums keep the
# columns in the result of the join; the windows only make the counts come seldom and once.
_JOIN = """
WITH joined AS (
  SELECT GREATEST(l.batch, r.batch) AS batch, l.ts, l.v, r.v AS v_right,
    CURRENT_ROW_TIMESTAMP() AS made
  FROM left_side AS l JOIN right_side AS r
  ON l.k = r.k AND r.ts BETWEEN l.ts - {window} AND l.ts + {window}
    AND r.us BETWEEN l.us - {within_us} AND l.us + {within_us}
)
SELECT batch, COUNT(*), SUM(v), SUM(v_right), CAST(MAX(made) AS TIMESTAMP(3))
FROM TABLE(TUMBLE(TABLE joined, DESCRIPTOR(ts), INTERVAL '10' SECOND))
GROUP BY window_start, window_end, batch
"""

Part = Sequence[Any]  # a row of `_JOIN`: some of the matches of a batch


def installed() -> bool:
    return importlib.util.find_spec("pyflink") is not None


def measure(
    left: str, right: str, within_s: float, cores: int, heap: str, emit: Callable[[Any], None]
) -> list[Batch]:
    """Time and matches of every batch."""
    # Java outlives the folder by a moment, and leaves its own temporary files behind.
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        options = f"-Xmx{heap} -Djava.io.tmpdir={folder}"
        os.environ |= {"JVM_ARGS": options, "FLINK_LOG_DIR": folder}
        sides = {"left_side": Path(folder, "left.csv"), "right_side": Path(folder, "right.csv")}
        counts = [_as_csv(*pair) for pair in zip((left, right), sides.values(), strict=True)]
        rows = [sum(pair) for pair in zip(*counts, strict=True)]
        settings = _settings(cores)
        environment = _environment(settings)
        emit({"event": "ready", "java": _java(), "settings": settings})
        for name, path in sides.items():
            delay = _interval(_DELAY_MS)
            environment.execute_sql(_TABLE.format(name=name, delay=delay, path=path.as_uri()))
        began_s = time.time()
        parts = []
        done = 0
        with environment.execute_sql(_query(within_s)).collect() as results:
            for part in results:
                parts.append(part)
                if part[0] > done:  # a match of the next batch
                    done = part[0]
                    emit({"event": "batch", "done": done})
    return batches_of(parts, rows, began_s)


def batches_of(parts: Iterable[Part], rows: Sequence[int], began_s: float) -> list[Batch]:
    """The record of every batch; one without a match ends with the one before it."""
    matches = [0] * len(rows)
    ends = [began_s] * len(rows)
    for number, count, _, _, made in parts:
        matches[number] += count
        ends[number] = max(ends[number], made.replace(tzinfo=UTC).timestamp())
    batches = []
    for number, (end_s, count) in enumerate(zip(ends, matches, strict=True)):
        batches.append(Batch(number, max(end_s - began_s, 0.0), rows[number], matches=count))
        began_s = max(began_s, end_s)
    return batches


def _as_csv(side: str, target: Path) -> list[int]:
    """The rows of a side as one text file, in the order of the batches; how many each has.

    One file, because a source takes several in any order and by several readers at once: rows of
    the later ones would push the watermark past those of the others. So each side has one reader.
    """
    counts = []
    options = pyarrow.csv.WriteOptions(include_header=False)
    with target.open("wb") as file:
        for number, path in enumerate(sorted(Path(side).iterdir())):
            table = pq.read_table(path)
            table = table.set_column(1, "us", table["ts"].cast("int64"))
            table = table.append_column("batch", [np.full(len(table), number, np.int32)])
            pyarrow.csv.write_csv(table, file, options)
            counts.append(len(table))
    return counts


def _query(within_s: float) -> str:
    """The whole milliseconds of two times differ by at most the window, rounded up."""
    within_us = round(within_s * 1e6)
    return _JOIN.format(window=_interval(math.ceil(within_us / 1_000)), within_us=within_us)


def _interval(ms: int) -> str:
    return f"INTERVAL '{ms // 1_000}.{ms % 1_000:03}' SECOND"


def _settings(cores: int) -> dict[str, str]:
    return {
        "parallelism.default": str(cores),
        "pipeline.object-reuse": "true",
        "table.local-time-zone": "UTC",  # in which the time of a match is told
    }


def _environment(settings: dict[str, str]) -> Any:
    from pyflink.common import Configuration
    from pyflink.table import EnvironmentSettings, TableEnvironment

    configuration = Configuration()
    for key, value in settings.items():
        configuration.set_string(key, value)
    builder = EnvironmentSettings.new_instance().in_streaming_mode()
    return TableEnvironment.create(builder.with_configuration(configuration).build())


def _java() -> str:
    from pyflink.java_gateway import get_gateway

    version: str = get_gateway().jvm.System.getProperty("java.version")
    return version
