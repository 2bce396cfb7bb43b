"""Routes in Spark SQL send every row where `skewless.routing` sends it."""

import numpy as np
import pytest
from pyspark.sql import SparkSession

from skewless.engine.columns import HASH, LEFT_CODE, REPLICA, RIGHT_CODE, SIDE
from skewless.kernels.hashing import xxhash64
from skewless.routing.partitions import PartitionTable, partition_of
from skewless.routing.route import Route
from skewless.routing.splits import Split, divisors
from skewless.runtime.routing import visits

CODES = {"left": LEFT_CODE, "right": RIGHT_CODE}
INSTANCES, PARTITIONS = 12, 48


def route(kind: str, keys: np.ndarray, rng: np.random.Generator) -> Route:
    table = PartitionTable(INSTANCES, tuple(rng.integers(0, INSTANCES, PARTITIONS).tolist()))
    if kind in ("groups", "grid"):
        return Route(table, kind=kind, group=5)
    splits = []
    for key in keys[: 0 if kind == "table" else len(keys) // 2].tolist():
        members = tuple(rng.permutation(INSTANCES)[: rng.integers(1, INSTANCES + 1)].tolist())
        place = int(partition_of(np.array([key], np.uint64), PARTITIONS)[0])
        splits.append(Split(key, place, members, int(rng.choice(divisors(len(members))))))
    return Route(table, tuple(splits))


@pytest.mark.parametrize("kind", ["table", "splits", "groups"])
@pytest.mark.parametrize("seed", range(3))
def test_spark_sends_rows_the_same_ways(spark: SparkSession, kind: str, seed: int) -> None:
    """Not the grid of Join-Matrix: there a row's home is chosen from another half of a number."""
    rng = np.random.default_rng(seed)
    keys = rng.integers(0, 2**64, 24, dtype=np.uint64)
    way = route(kind, keys, rng)
    row = np.arange(600)
    hashes = rng.choice(keys, len(row))
    sides = rng.choice(list(CODES), len(row))
    frame = spark.createDataFrame(
        [
            (int(n), int(h), CODES[s])
            for n, h, s in zip(row, hashes.view(np.int64), sides, strict=True)
        ],
        f"n long, {HASH} long, {SIDE} byte",
    )
    sent, named = visits(frame, way, ["n"], replicates=True)
    found = {
        (r["n"], r["at"], r[SIDE] >= REPLICA)
        for r in sent.selectExpr("n", f"{named} AS at", SIDE).collect()
    }
    expected = set()
    for side in CODES:
        of_side = np.flatnonzero(sides == side)
        ways = way.visits(side, hashes[of_side], xxhash64(of_side.astype(np.int64)))
        rows = of_side[ways.row].tolist()
        replica = (~ways.home).tolist()
        expected |= set(zip(rows, ways.instance.tolist(), replica, strict=True))
    assert found == expected
