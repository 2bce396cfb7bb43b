"""The embedded Spark session: local, quiet, and set as the engine likes it."""

import os
import sys
from pathlib import Path
from typing import Any

from pyspark.errors import PySparkException
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
    # The file source caches a listing of every file it reads and never asks for it again: it stays
    # for 10 minutes, not until 250 MB are full.
    "spark.sql.metadataCacheTTLSeconds": "600",
}
# What Spark remembers of finished work is for its UI. By default it is the last 1,000 of each, some
# 30 KB of heap per batch.
_WITHOUT_UI = {
    "spark.ui.retainedJobs": "100",
    "spark.ui.retainedStages": "100",
    "spark.sql.ui.retainedExecutions": "100",
}

_DRIVER_OPTIONS = "spark.driver.extraJavaOptions"
_EXECUTOR_OPTIONS = "spark.executor.extraJavaOptions"
# Arrow in Java checks bounds and nulls at every access unless it is told not to. Spark's own code
# asks for nulls first and never reads past the end; half of the time of a result goes into this.
ARROW_OPTIONS = "-Darrow.enable_unsafe_memory_access=true -Darrow.enable_null_check_for_get=false"


def session(
    master: str = "local[*, 4]", app_name: str = "skewless", config: dict[str, Any] | None = None
) -> SparkSession:
    """A local Spark session with sensible settings, or the one that is already active, as it is.

    Tasks are retried up to four times, as on a cluster; `config` adds to the settings or
    overrides them.

        spark = sk.session(config={"spark.driver.memory": "4g"})
    """
    if config is not None and not isinstance(config, dict):
        raise bad_argument("config", config, "a dict of Spark settings")
    active = running()
    if active is not None:
        for key, value in (config or {}).items():
            active.conf.set(key, value)
        return active
    if master.startswith("local"):
        # Nothing outside this machine is spoken to, whatever its name resolves to.
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    # Workers must run this very interpreter, also when its environment is not activated.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master(master).appName(app_name)
    for key, value in settings_with(config or {}).items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def settings_with(config: dict[str, Any]) -> dict[str, Any]:
    """The settings of a new session, with the user's own, which win."""
    settings = {
        **SETTINGS,
        _DRIVER_OPTIONS: f"-Dlog4j2.configurationFile={_quiet_logs()} {ARROW_OPTIONS}",
        _EXECUTOR_OPTIONS: ARROW_OPTIONS,
        **config,
    }
    has_ui = str(settings["spark.ui.enabled"]).lower() == "true"
    return settings if has_ui else {**_WITHOUT_UI, **settings}


def running() -> SparkSession | None:
    """The session that a user has already, if any; nobody else may stop it."""
    return SparkSession.getActiveSession() or _of_another_thread()


def _of_another_thread() -> SparkSession | None:
    """Which session is active is a matter of the thread; one that another has made is there too."""
    found: SparkSession | None = getattr(SparkSession, "_instantiatedSession", None)
    is_stopped = found is None or found.sparkContext._jsc is None
    return None if is_stopped else found


def _quiet_logs() -> str:
    """A log4j configuration that shows errors only, from the first line on."""
    return str(Path(__file__).with_name("log4j2.properties"))


def parallelism(session: SparkSession) -> int:
    """How many tasks the session runs at once, as far as it tells."""
    try:
        return session.sparkContext.defaultParallelism
    except (PySparkException, AttributeError):  # Spark Connect has no context to ask
        return int(session.conf.get("spark.sql.shuffle.partitions") or 1)
