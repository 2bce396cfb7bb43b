"""The settings of the embedded session."""

import pytest
from pyspark.sql import SparkSession

from skewless.runtime.session import settings_with

RETAINED = ("spark.ui.retainedJobs", "spark.ui.retainedStages", "spark.sql.ui.retainedExecutions")


def test_without_its_ui_spark_remembers_little_of_finished_batches(spark: SparkSession) -> None:
    assert [spark.conf.get(name) for name in RETAINED] == ["100"] * 3


def test_listings_of_files_that_were_read_expire(spark: SparkSession) -> None:
    assert spark.conf.get("spark.sql.metadataCacheTTLSeconds") == "600"


@pytest.mark.parametrize("on", [True, "true", "True"])
def test_with_its_ui_spark_remembers_what_it_shows(on: object) -> None:
    assert not set(RETAINED) & settings_with({"spark.ui.enabled": on}).keys()


def test_the_users_settings_win() -> None:
    settings = settings_with({"spark.ui.retainedJobs": 7, "spark.sql.session.timeZone": "CET"})
    assert settings["spark.ui.retainedJobs"] == 7
    assert settings["spark.sql.session.timeZone"] == "CET"
