"""Joins by distance without Spark, against DuckDB and a haversine of numpy's: whatever the points,
routes, hashes and kills are."""

import tempfile
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import skewless as sk
from skewless.engine.badrows import BadRowError
from skewless.engine.chunks import Limits
from skewless.operators.join.bounds import Bounds
from skewless.operators.join.near import Near
from skewless.routing.blocks import blocks, cell_hashes
from skewless.state.watermark import Delays
from skewless.testing import POINTS, Fault, LocalJoin, assert_same_rows, join_oracle
from skewless.testing.local import spread_hash
from tests.operators.join.test_join_local import Restless, bounds, delays, faults_of, text
from tests.operators.join.test_sets_local import POLICIES
from tests.routing.cases import routes

STAMP = pa.timestamp("us", "UTC")
EPOCH = datetime(2024, 1, 1, tzinfo=UTC)
# Points on borders of cells, on a radius exactly, in a crowd, and far away.
PLANE = [0.0, -0.0, 1.0, 1.5, 2.0, 2.002, 3.0, 4.0, -1.0, -5.0, 1e11, None]
LONGITUDES = [180.0, -180.0, 179.9999, -179.9999, 0.0, -0.0, 90.0, 0.0045, None]
LATITUDES = [90.0, -90.0, 89.9999, -89.99, 0.0, 52.5, 0.0045, None]
KINDS = [pa.float64(), pa.float32(), pa.int64(), pa.decimal128(20, 4)]
Batches = list[tuple[pa.Table, pa.Table]]


def schemas(kinds: tuple[pa.DataType, pa.DataType]) -> tuple[pa.Schema, pa.Schema]:
    left = [("k", pa.string()), ("lt", STAMP), ("x", kinds[0]), ("y", kinds[0]), ("a", pa.int64())]
    right = [("k", pa.string()), ("rt", STAMP), ("u", kinds[1]), ("v", kinds[1]), ("b", pa.int64())]
    return pa.schema(left), pa.schema(right)


def of_kind(value: float | None, kind: pa.DataType) -> Any:
    if value is None or pa.types.is_floating(kind):
        return value
    return int(value) if pa.types.is_integer(kind) else Decimal(str(value))


@st.composite
def cases(draw: st.DrawFn) -> tuple[Near, tuple[pa.DataType, pa.DataType], Batches]:
    distance = draw(st.sampled_from([None, "apart"]))
    on_globe = draw(st.booleans())
    points = {"left": ("x", "y"), "right": ("u", "v"), "distance": distance}
    if on_globe:
        metres = draw(st.sampled_from([1.0, 499.0, 700.0, 2e4, 9e6, 1.6e7]))
        match, kinds = sk.Near(metres=metres, **points), (pa.float64(), pa.float64())
        xs, ys = st.sampled_from(LONGITUDES), st.sampled_from(LATITUDES)
    else:
        match = sk.Near(radius=draw(st.sampled_from([1, 2.5, 5.0])), **points)
        kinds = (draw(st.sampled_from(KINDS)), draw(st.sampled_from(KINDS)))
        xs = ys = st.sampled_from(PLANE)
    keys = st.sampled_from(["x", "x", "x", "y", None])
    made = []
    for number in range(draw(st.integers(1, 4))):
        sides = []
        for schema, kind in zip(schemas(kinds), kinds, strict=True):
            drawn = draw(st.lists(st.tuples(keys, st.integers(0, 30), xs, ys), max_size=9))
            columns = [
                [k for k, _, _, _ in drawn],
                [EPOCH + timedelta(seconds=s + 8 * number) for _, s, _, _ in drawn],
                [of_kind(x, kind) for _, _, x, _ in drawn],
                [of_kind(y, kind) for _, _, _, y in drawn],
                [100 * number + i for i in range(len(drawn))],
            ]
            arrays = [pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)]
            sides.append(pa.table(arrays, schema=schema))
        made.append((sides[0], sides[1]))
    return match, kinds, made


def poor_hash(table: pa.Table) -> np.ndarray:
    """Three hashes for all blocks, above and below the sign."""
    codes = [len(str(row)) % 3 for row in zip(*table.to_pydict().values(), strict=True)]
    return np.array([64, 2**63 + 128, 2**62], np.uint64)[codes]


def local(
    directory: object,
    match: Any,
    kinds: tuple[pa.DataType, pa.DataType],
    within: tuple[int | None, int | None],
    late: tuple[int | None, int | None],
    *,
    on: tuple[str, ...] = (),
    join: type[LocalJoin] = LocalJoin,
    **options: Any,
) -> LocalJoin:
    micro = [None if x is None else x * 1_000_000 for x in (*within, *late)]
    return join(
        str(directory),
        list(on),
        ("lt", "rt"),
        Bounds(micro[0], micro[1]),
        Delays({"left": micro[2], "right": micro[3]}),
        *schemas(kinds),
        match=match,
        **options,
    )


def run(
    directory: object,
    case: tuple[Near, tuple[pa.DataType, pa.DataType], Batches],
    within: tuple[int | None, int | None],
    late: tuple[int | None, int | None],
    *,
    on: tuple[str, ...] = (),
    faults: tuple[Fault, ...] = (),
    **options: Any,
) -> LocalJoin:
    match, kinds, made = case
    joined = local(directory, match, kinds, within, late, on=on, **options)
    found = joined.run(made, faults)
    how = options.get("how", "inner")
    expected = join_oracle(
        made,
        on=[(k, k) for k in on],
        time=("lt", "rt"),
        within=(text(within[0]), text(within[1])),
        watermark=(text(late[0]), text(late[1])),
        match=match,
        how=how,
    )
    assert_same_rows(found, expected)
    if how != "inner":
        return joined
    if match.distance is not None:
        assert found.column_names[-1] == match.distance
        assert all(d <= match.metric.reach for d in found.column(match.distance).to_pylist())
    counts = [p["operators"][0] for p in joined.progress]
    if not faults:
        assert sum(c["matches"] for c in counts) == expected.num_rows
        assert sum(c["comparisons"] for c in counts) >= expected.num_rows
        for side in (0, 1):
            name = ("left", "right")[side]
            assert sum(c["rows"][name] for c in counts) == sum(b[side].num_rows for b in made)
    return joined


@given(case=cases(), within=bounds, late=delays, instances=st.integers(1, 4), keyed=st.booleans())
@settings(max_examples=100)
def test_the_join_equals_the_oracle(case, within, late, instances, keyed) -> None:
    with tempfile.TemporaryDirectory() as directory:
        on = ("k",) if keyed else ()
        run(directory, case, within, late, on=on, policy=sk.Hash(instances))


@given(case=cases(), within=bounds, late=delays, keyed=st.booleans())
@settings(max_examples=60)
def test_colliding_hashes_change_nothing(case, within, late, keyed) -> None:
    with tempfile.TemporaryDirectory() as directory:
        on = ("k",) if keyed else ()
        run(directory, case, within, late, on=on, hash_keys=poor_hash, policy=sk.Hash(3))


def hot_cells(match: Near, *, keyed: bool) -> list[int]:
    """The hashes of cells that many of the points are in."""
    some = np.array([0.0, 1.0, -5.0]), np.array([0.0, 2.0, 4.0])
    x, y = match.cells.own(*some)
    of_x, of_y = blocks(x, y)
    columns = {"k": ["x"] * len(x)} if keyed else {}
    of_block = spread_hash(pa.table({**columns, "block_x": of_x, "block_y": of_y}))
    return sorted(set(cell_hashes(of_block, x, y).tolist()))


@given(
    case=cases(),
    within=bounds,
    late=delays,
    keyed=st.booleans(),
    small=st.booleans(),
    data=st.data(),
    kills=st.lists(st.tuples(st.sampled_from(POINTS), st.integers(0, 3)), max_size=3),
)
@settings(max_examples=80)
def test_routes_and_kills_change_nothing(case, within, late, keyed, small, data, kills) -> None:
    """Hot cells split or with entries of their own, groups and grids, another in every batch."""
    match, _, made = case
    ways = routes(hot_cells(match, keyed=keyed), most=5, partitions=(5, 16))
    Restless.ways = tuple(data.draw(st.lists(ways, min_size=1, max_size=3)))
    limits = Limits(run_bytes=1, chunk_bytes=1, chunk_rows=1) if small else Limits()
    faults = faults_of(kills, len(made))
    on = ("k",) if keyed else ()
    with tempfile.TemporaryDirectory() as directory:
        run(directory, case, within, late, on=on, join=Restless, limits=limits, faults=faults)


def crowded_batches(count: int, rows: int, seed: int = 3) -> Batches:
    """Most points are in one cell, and time moves on."""
    rng = np.random.default_rng(seed)
    made = []
    for number in range(count):
        sides = []
        for schema in schemas((pa.float64(), pa.float64())):
            crowd = rng.random(rows) < 0.8
            points = np.where(
                crowd, rng.uniform(0, 1.9, (2, rows)), rng.uniform(-50, 50, (2, rows))
            )
            seconds = rng.integers(0, 4, rows) + 3 * number
            times = [EPOCH + timedelta(seconds=int(s)) for s in seconds]
            columns = [["x"] * rows, times, *points, range(rows)]
            sides.append(
                pa.table(
                    [pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)],
                    schema=schema,
                )
            )
        made.append((sides[0], sides[1]))
    return made


NEAR = sk.Near(radius=1.0, left=("x", "y"), right=("u", "v"))
DOUBLES = (pa.float64(), pa.float64())


@pytest.mark.parametrize("policy", POLICIES)
def test_every_policy_gives_the_same_pairs(tmp_path, policy: str) -> None:
    case = (NEAR, DOUBLES, crowded_batches(6, 25))
    joined = run(tmp_path, case, (-6, 6), (4, 4), policy=POLICIES[policy])
    counts = [p["operators"][0] for p in joined.progress]
    assert sum(c["comparisons"] for c in counts) > sum(c["matches"] for c in counts) > 0


def test_a_hot_cell_is_split_and_its_work_is_shared(tmp_path) -> None:
    case = (NEAR, DOUBLES, crowded_batches(8, 60))
    joined = run(tmp_path, case, (-9, 9), (9, 9), policy=sk.Auto(4, threshold=0.01))
    assert joined.engine._last.operators[0].route.splits, "no cell was split"


def test_many_batches_are_merged_and_forgotten_and_rows_are_counted_once(tmp_path) -> None:
    case = (NEAR, DOUBLES, crowded_batches(60, 10))
    joined = run(tmp_path, case, (-50, 50), (3, 3), policy=sk.Hash(1))
    states = [p["operators"][0]["state"] for p in joined.progress]
    assert max(s["merged"] for s in states) > 0, "compaction never ran"
    # On one instance a row is stored once, however many cells it reaches.
    assert states[0]["rows"] == {"left": 10, "right": 10}
    assert states[-1]["rows"]["left"] < 60 * 10 / 2, "old rows are not forgotten"


def test_most_points_travel_to_one_instance(tmp_path) -> None:
    """Only right rows are replicated, and only where a block of cells ends."""
    rng = np.random.default_rng(1)
    sides = []
    for schema in schemas(DOUBLES):
        points = rng.uniform(-500, 500, (2, 3_000))
        columns = [["x"] * 3_000, [EPOCH] * 3_000, *points, range(3_000)]
        arrays = [pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)]
        sides.append(pa.table(arrays, schema=schema))
    joined = run(tmp_path, (NEAR, DOUBLES, [(sides[0], sides[1])]), (0, 0), (0, 0))
    told = joined.progress[0]["operators"][0]
    assert told["replicas"]["left"] == 0
    assert told["replicas"]["right"] < 0.2 * 3_000


def shown(x: float | None, y: float | None) -> tuple[pa.Table, pa.Table]:
    tables = [
        pa.table([["x"] * 2, [EPOCH] * 2, [x, 1.0], [y, 1.0], [7, 8]], schema=schema)
        for schema in schemas(DOUBLES)
    ]
    return tables[0], tables[1]


NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("match", "x", "y", "says"),
    [
        *((NEAR, x, 0.0, "NaN, infinite, or too large") for x in (NAN, INF, -INF, 1.1e12)),
        (NEAR, 0.0, NAN, "coordinates are NaN"),
        *(
            (sk.Near(metres=5, left=("x", "y"), right=("u", "v")), x, y, "longitude is not from")
            for x, y in ((181.0, 0.0), (NAN, 0.0), (0.0, 90.5), (0.0, -INF), (-180.1, 0.0))
        ),
    ],
)
def test_bad_coordinates(tmp_path, match, x: float, y: float, says: str) -> None:
    with pytest.raises(BadRowError, match=rf"left input has a row whose .*{says}.*'a': 7"):
        local(tmp_path / "fail", match, DOUBLES, (0, 0), (0, 0)).step(0, shown(x, y))
    joined = local(tmp_path / "drop", match, DOUBLES, (0, 0), (0, 0), drop_bad_rows=True)
    joined.step(0, shown(x, y))
    told = joined.progress[0]["operators"][0]
    assert told["badRows"] == {"left": 1, "right": 1}
    assert told["nullKeys"] == {"left": 0, "right": 0}
    assert [(r["a"], r["b"]) for r in joined.rows().to_pylist()] == [(8, 8)]


def test_null_coordinates_are_counted_as_null_keys(tmp_path) -> None:
    joined = local(tmp_path, NEAR, DOUBLES, (0, 0), (0, 0))
    joined.step(0, shown(None, 1.0))
    joined.step(1, shown(1.0, None))
    told = [p["operators"][0] for p in joined.progress]
    assert told[0]["nullKeys"] == {"left": 1, "right": 1}
    assert joined.sink[0].num_rows == 1
