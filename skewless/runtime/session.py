"""The embedded Spark session: local, quiet, and set as the engine likes it."""

import os
import sys
from typing import Any

from pyspark.sql import SparkSession

from skewless.errors import bad_argument

# What the engine likes. A session that a user brings works without any of it.
SETTINGS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    # Larger Arrow batches than Spark's default of 10,000 rows: fewer hand-overs to Python.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "20000",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "8",
    "spark.python.worker.reuse": "true",
    "spark.python.daemon.module": "skewless.runtime.daemon",
    # A query logs to the checkpoint in every batch; progress for people comes from its records.
    "spark.log.level": "ERROR",
}


def session(
    master: str = "local[*, 4]", app_name: str = "skewless", config: dict[str, Any] | None = None
) -> SparkSession:
    """A local Spark session with sensible settings, or the one that is already running.

    Tasks are retried up to four times, as on a cluster; `config` adds to the settings or
    overrides them.

        spark = sk.session(config={"spark.driver.memory": "4g"})
    """
    if config is not None and not isinstance(config, dict):
        raise bad_argument("config", config, "a dict of Spark settings")
    # Workers must run this very interpreter, also when its environment is not activated.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master(master).appName(app_name)
    for key, value in {**SETTINGS, **(config or {})}.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()
