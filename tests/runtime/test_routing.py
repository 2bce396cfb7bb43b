"""Routes in Spark SQL send every row where `skewless.routing` sends it."""

from functools import reduce

import numpy as np
import pytest
from pyspark.sql import DataFrame, SparkSession

from skewless.engine.columns import HASH, LEFT_CODE, REPLICA, RIGHT_CODE, SIDE
from skewless.kernels.hashing import xxhash64
from skewless.routing.partitions import PartitionTable
from skewless.routing.route import Route, at_home
from skewless.runtime.routing import visits
from tests.routing.cases import KINDS, random_route, table_route

CODES = {"left": LEFT_CODE, "right": RIGHT_CODE}
INSTANCES, PARTITIONS = 12, 48


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("replicates", [True, False], ids=["replicated", "at home"])
def test_spark_sends_rows_the_same_ways(spark: SparkSession, kind: str, replicates: bool) -> None:
    """Three random routes of every kind in one query; it prints the seed."""
    found, expected = set(), set()
    queries = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        keys = rng.integers(0, 2**64, 24, dtype=np.uint64)
        owners = tuple(rng.integers(0, INSTANCES, PARTITIONS).tolist())
        table = PartitionTable(INSTANCES - seed, tuple(o % (INSTANCES - seed) for o in owners))
        way = random_route(kind, table, keys[:12].tolist(), rng)
        rows, wanted = _sent(spark, seed, way, keys, rng, replicates)
        queries.append(rows)
        expected |= wanted
    for r in reduce(DataFrame.unionAll, queries).collect():
        found.add((r["seed"], r["n"], r["at"], r[SIDE] >= REPLICA))
    assert found == expected


def test_an_entry_of_several_instances_is_dealt_the_same_way(spark: SparkSession) -> None:
    rng = np.random.default_rng(7)
    keys = rng.integers(0, 2**64, 6, dtype=np.uint64)
    members = [tuple(rng.permutation(5)[:n].tolist()) for n in (1, 2, 2, 3, 5)]
    table = PartitionTable(5, tuple(rng.integers(0, 5, 16).tolist()))
    chosen = zip(keys.tolist(), members, strict=False)
    way = table_route(table, [(h, m, None) for h, m in chosen])
    rows, expected = _sent(spark, 7, way, keys, rng, replicates=True)
    found = {(r["seed"], r["n"], r["at"], r[SIDE] >= REPLICA) for r in rows.collect()}
    assert found == expected
    assert len({n for _, n, _, _ in found}) == len(found), "no row is replicated"


def _sent(
    spark: SparkSession,
    seed: int,
    way: Route,
    keys: np.ndarray,
    rng: np.random.Generator,
    replicates: bool,
) -> tuple[DataFrame, set[tuple[int, int, int, bool]]]:
    """Rows as Spark sends them, and (seed, row, instance, whether a replica) as numpy does."""
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
    sent, named = visits(frame, way, ["n"] if way.spreads else [], replicates=replicates)
    expected = set()
    for side in CODES:
        of_side = np.flatnonzero(sides == side)
        spread = xxhash64(of_side.astype(np.int64))
        ways = (
            way.visits(side, hashes[of_side], spread)
            if replicates
            else at_home(way.homes(side, hashes[of_side], spread))
        )
        rows = of_side[ways.row].tolist()
        replica = (~ways.home).tolist()
        places = ways.instance.tolist()
        expected |= {(seed, *way) for way in zip(rows, places, replica, strict=True)}
    return sent.selectExpr(f"{seed} AS seed", "n", f"{named} AS at", SIDE), expected
