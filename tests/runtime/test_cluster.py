"""The join on a standalone cluster, with a session that the user made; executors may die."""

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

import skewless as sk
from skewless.runtime.stream import Stream
from skewless.testing import (
    Cluster,
    Driver,
    Fault,
    Replay,
    assert_same_rows,
    join_oracle,
    standalone_cluster,
    wait_until,
)
from skewless.testing.driver import QUICK_JVM

from .batches import batches, join_options, oracle_options

pytestmark = pytest.mark.cluster

INSTANCES = 4


def session(url: str, events: str) -> SparkSession:
    """None of Skewless's own settings: an ordinary application of the cluster."""
    builder = SparkSession.builder.master(url).appName("test")
    for key, value in {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "512m",
        "spark.driver.extraJavaOptions": QUICK_JVM,
        "spark.executor.memory": "512m",
        "spark.executor.extraJavaOptions": QUICK_JVM,
        "spark.ui.enabled": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "2",
        "spark.scheduler.minRegisteredResourcesRatio": "1.0",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": events,
        "spark.eventLog.compress": "false",
        "spark.eventLog.rolling.enabled": "false",
    }.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def build(options: dict, left: DataFrame, right: DataFrame) -> Stream:
    return sk.join(left, right, **options, balance=sk.Hash(INSTANCES))


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with standalone_cluster(tmp_path_factory.mktemp("cluster")) as started:
        yield started
        wait_until(lambda: not started.executors(), 30, "the executors to leave with their driver")


@pytest.fixture
def driver(cluster: Cluster, tmp_path: Path) -> Iterator[Driver]:
    events = tmp_path / "events"
    events.mkdir()
    job = partial(build, join_options())
    with Driver(tmp_path, job, session=partial(session, cluster.url, str(events))) as made:
        yield made


def executors_used(folder: Path) -> set[str]:
    """Which executors ran the tasks of the join, by Spark's event log."""
    used = set()
    wide = set()
    for path in (folder / "events").iterdir():
        for line in path.read_text().splitlines():
            event = json.loads(line)
            if event["Event"] == "SparkListenerStageSubmitted":
                if event["Stage Info"]["Number of Tasks"] == INSTANCES:
                    wide.add(event["Stage Info"]["Stage ID"])
            elif event["Event"] == "SparkListenerTaskEnd" and event["Stage ID"] in wide:
                used.add(event["Task Info"]["Executor ID"])
    return used


def test_the_join_runs_on_all_executors(driver: Driver, tmp_path: Path) -> None:
    made = batches(4, rows=60, stray_s=60)
    Replay(None, tmp_path, made)
    driver.run()
    assert executors_used(tmp_path) == {"0", "1"}
    assert_same_rows(driver.rows(), join_oracle(made, **oracle_options()))


def test_a_killed_executor_is_replaced_and_the_query_goes_on(
    cluster: Cluster, driver: Driver, tmp_path: Path
) -> None:
    made = batches(5, rows=60, stray_s=60)
    Replay(None, tmp_path, made)
    marker = tmp_path / "struck"
    driver.start([Fault("in_task", batch=2, action="hang", once=str(marker))])
    wait_until(lambda: marker.exists() and marker.read_text(), 120, "a task of batch 2")
    cluster.executor_of(int(marker.read_text())).kill()
    driver.finish()
    assert len(executors_used(tmp_path)) >= 2
    assert_same_rows(driver.rows(), join_oracle(made, **oracle_options()))
