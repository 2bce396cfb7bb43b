"""Tiles in Spark SQL send every row where numpy does."""

from functools import reduce

import numpy as np
from pyspark.sql import DataFrame, SparkSession

from skewless.engine.columns import (
    ACTION,
    ADD,
    BOX,
    INSTANCE,
    LEFT_CODE,
    REMOVE,
    REPLICA,
    RIGHT_CODE,
    SIDE,
    SNAPSHOT,
    UNKNOWN,
    X,
    Y,
)
from skewless.routing.cells import CellGrid
from skewless.routing.tiles import even_tiles
from skewless.runtime.tiles import tile_visits
from tests.operators.subscribe.cases import random_tiles

BOUNDS = (-73.9, 40.1, -70.3, 44.7)


def places(rng: np.random.Generator, grid: CellGrid, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Points anywhere in the bounds, and on the very lines between cells."""
    x_min, y_min, x_max, y_max = grid.bounds
    x, y = rng.uniform(x_min, x_max, count), rng.uniform(y_min, y_max, count)
    line = rng.integers(0, grid.side + 1, count) / grid.side
    on_line = rng.random((2, count)) < 0.3
    x = np.where(on_line[0], x_min + line * (x_max - x_min), x)
    return x, np.where(on_line[1], y_min + line * (y_max - y_min), y)


def test_spark_sends_points_and_rectangles_the_same_ways(spark: SparkSession) -> None:
    """Several random maps in one query."""
    queries, expected = [], set()
    for seed in range(4):
        rng = np.random.default_rng(seed)
        grid = CellGrid(2 ** (2 * seed), BOUNDS)
        route = random_tiles(even_tiles(grid, 5), rng)
        x, y = places(rng, grid, 150)
        u, v = places(rng, grid, 150)
        low, high = (np.minimum(x, u), np.minimum(y, v)), (np.maximum(x, u), np.maximum(y, v))
        # Some reach beyond the bounds.
        high = (high[0] + rng.choice([0.0, 50.0, np.inf], 150), high[1])
        rows = [
            (n, LEFT_CODE, *place, None, None) for n, place in enumerate(zip(x, y, strict=True))
        ]
        rows += [(n, RIGHT_CODE, *box) for n, box in enumerate(zip(*low, *high, strict=True))]
        plain = [tuple(v.item() if hasattr(v, "item") else v for v in row) for row in rows]
        schema = f"row int, {SIDE} byte, {', '.join(f'{c} double' for c in BOX)}"
        frame = spark.createDataFrame(plain, schema)
        sent, named = tile_visits(frame, route, ["row"])
        assert named == INSTANCE
        spread = frame.selectExpr("row", "xxhash64(row) AS h").distinct().collect()
        by_number = {row["row"]: row["h"] for row in spread}
        spreads = np.array([by_number[n] for n in range(150)], np.int64).view(np.uint64)
        queries.append(sent.selectExpr(f"{seed} AS seed", "row", SIDE, INSTANCE))
        homes = route.homes("left", grid.hashes(grid.cells(x, y)), spreads)
        expected |= {(seed, n, LEFT_CODE, at) for n, at in enumerate(homes.tolist())}
        top, bottom = grid.rows(low[1]), grid.rows(high[1])
        left, right = grid.columns(low[0]), grid.columns(high[0])
        visits = route.reached(top, left, bottom, right)
        codes = np.where(visits.home, RIGHT_CODE, RIGHT_CODE + REPLICA).tolist()
        ways = zip(visits.row.tolist(), codes, visits.instance.tolist(), strict=True)
        expected |= {(seed, *way) for way in ways}
        alone, expression = tile_visits(
            frame.where(f"{SIDE} = 0").select("row", X, Y), route, ["row"]
        )
        single = alone.selectExpr("row", f"{expression} AS at").collect()
        assert {(r["row"], r["at"]) for r in single} == set(enumerate(homes.tolist()))
    collected = [tuple(row) for row in reduce(DataFrame.unionAll, queries).collect()]
    assert len(set(collected)) == len(collected), "a row goes to an instance once"
    assert set(collected) == expected


def test_a_change_goes_whole_to_its_tiles_and_the_others_hear_of_its_end(
    spark: SparkSession,
) -> None:
    """Bad rows go whole to all, so that all leave them out; past points are asked for in place."""
    grid = CellGrid(4, (0.0, 0.0, 4.0, 4.0))
    route = even_tiles(grid, 4)  # quarters
    nan, box = float("nan"), (0.5, 0.5, 0.6, 0.6)
    rows = [
        ("added", ADD, *box),
        ("wide", ADD, 0.5, 0.5, 3.5, 0.6),
        ("ended", REMOVE, None, None, None, None),
        ("bad", ADD, 0.5, 0.5, nan, 0.6),
        ("inverted", ADD, 0.6, 0.5, 0.5, 0.6),
        (None, ADD, *box),
        ("unknown", UNKNOWN, *box),
        ("past", SNAPSHOT, *box),
    ]
    schema = f"p0 string, {ACTION} byte, {', '.join(f'{c} double' for c in BOX)}"
    frame = spark.createDataFrame(rows, schema).selectExpr(
        f"CAST({RIGHT_CODE} AS TINYINT) AS {SIDE}", "*", "7L AS n", "p0 AS p1"
    )
    sent, _ = tile_visits(frame, route, [], "p0")
    told: dict[str, list[tuple[int, bool]]] = {}
    for row in sent.collect():
        is_whole = row["p1"] is not None if row["p0"] else row[X] is not None
        if not is_whole:
            assert (row[ACTION], row[X], row["n"]) == (REMOVE, None, 7)
        told.setdefault(row["p0"], []).append((row[INSTANCE], is_whole))
    whole = {name: sorted(i for i, is_whole in at if is_whole) for name, at in told.items()}
    home, below = 0, route.table.owners[3]
    assert whole["added"] == [home]
    assert whole["wide"] == sorted([home, below])
    assert len(whole["ended"]) == 1
    for name in ("bad", "inverted", None, "unknown"):
        assert whole[name] == [0, 1, 2, 3], name
    assert told["past"] == [(home, True)]
    assert all(len(told[name]) == 4 for name in ("added", "wide", "ended"))
