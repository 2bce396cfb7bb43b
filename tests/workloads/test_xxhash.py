"""The hash in numpy is Spark's, bit for bit."""

import numpy as np
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from skewless.workloads.xxhash import xxhash64

# From Spark: select xxhash64(k).
KNOWN = {
    0: -5252525462095825812,
    1: -7001672635703045582,
    -1: 3858142552250413010,
    42: -6876166290308861218,
    2**63 - 1: -3246596055638297850,
    -(2**63): -8619748838626508300,
    123456789012345: 755925937788029102,
}


@pytest.mark.parametrize(("key", "expected"), KNOWN.items())
def test_known_values(key: int, expected: int) -> None:
    assert xxhash64(np.array([key], np.int64)).view(np.int64).tolist() == [expected]


def test_spark_agrees(spark: SparkSession) -> None:
    keys = np.random.default_rng(3).integers(-(2**63), 2**63 - 1, 200)
    frame = spark.createDataFrame([(k,) for k in keys.tolist()], "k long")
    found = {row.k: row.h for row in frame.select("k", F.xxhash64("k").alias("h")).collect()}
    expected = xxhash64(keys).view(np.int64).tolist()
    assert [found[key] for key in keys.tolist()] == expected
