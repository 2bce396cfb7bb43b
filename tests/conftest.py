"""One Spark session for the whole suite, and a guard that stops every query."""

import os
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings
from pyspark.sql import SparkSession

import skewless as sk

# Tests are short: a JVM that compiles quickly is done before one that compiles well has warmed up.
os.environ.setdefault("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")

# Machines are noisy: time is never a reason to fail, and a failure prints its seed.
settings.register_profile(
    "skewless", deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("skewless")


@pytest.fixture(scope="session")
def spark_session() -> Iterator[SparkSession]:
    session = sk.session(config={"spark.sql.shuffle.partitions": "2"})
    yield session
    session.stop()


@pytest.fixture
def spark(spark_session: SparkSession) -> Iterator[SparkSession]:
    """The shared session; no query outlives its test."""
    yield spark_session
    for query in spark_session.streams.active:
        query.stop()
