"""The hash in numpy is Spark's, bit for bit."""

import numpy as np
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from skewless.kernels.hashing import xxhash64

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


def test_smaller_numbers_are_hashed_as_four_bytes() -> None:
    # From Spark: select xxhash64(cast(k as int)), and the same of a smallint and a tinyint.
    expected = [3614696996920510707, -6698625589789238999, 9201179564109417620]
    for kind in (np.int32, np.int16, np.int8):
        hashes = xxhash64(np.array([0, 1, -5], kind))
        assert hashes.view(np.int64).tolist() == expected


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
