"""Spark and the kernel make the same hash of a whole number, of whatever size."""

import numpy as np
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from skewless.kernels.hashing import xxhash64

KINDS = {"tinyint": np.int8, "smallint": np.int16, "int": np.int32, "bigint": np.int64}


@pytest.mark.parametrize("name", KINDS)
def test_spark_agrees(spark: SparkSession, name: str) -> None:
    kind = KINDS[name]
    limits = np.iinfo(kind)
    keys = np.random.default_rng(3).integers(limits.min, limits.max, 200, kind, endpoint=True)
    keys[:3] = limits.min, limits.max, 0
    frame = spark.createDataFrame([(k,) for k in keys.tolist()], f"k {name}")
    found = {row.k: row.h for row in frame.select("k", F.xxhash64("k").alias("h")).collect()}
    assert [found[key] for key in keys.tolist()] == xxhash64(keys).view(np.int64).tolist()
