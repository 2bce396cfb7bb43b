"""Joins by sets without Spark, against Python: whatever the sets, routes, hashes, kills are."""

import tempfile
from datetime import UTC, datetime, timedelta
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
from skewless.operators.join.match import Match
from skewless.planning.policy import RoutingPolicy
from skewless.state.watermark import Delays
from skewless.testing import POINTS, Fault, LocalJoin, assert_same_rows, join_oracle
from skewless.testing.local import spread_hash
from tests.operators.join.test_join_local import Restless, bounds, delays, faults_of, text
from tests.routing.cases import routes

STAMP = pa.timestamp("us", "UTC")
EPOCH = datetime(2024, 1, 1, tzinfo=UTC)
KINDS = {
    "texts": pa.list_(pa.string()),
    "numbers": pa.list_(pa.int64()),
    "reals": pa.list_(pa.float64()),
    "map": pa.map_(pa.string(), pa.float64()),
    "structs": pa.list_(pa.struct([("item", pa.int32()), ("weight", pa.float32())])),
}
NAN = float("nan")
ITEMS: dict[str, list[Any]] = {
    "texts": ["a", "b", "c", "d", "e", "", None],
    "numbers": [0, 1, 2, 3, -(2**62), None],
    "reals": [0.0, -0.0, NAN, 1.5, -1.5, None],
    "map": ["a", "b", "c", "d", "hot"],
    "structs": [1, 2, 3, 4, None],
}
# Sums of such weights are exact, so that a product can lie exactly on the border.
WEIGHTS = st.sampled_from([-2.0, -0.5, 0.0, 0.25, 0.5, 1.0, 3.0, None])


def schemas(kind: str) -> tuple[pa.Schema, pa.Schema]:
    items = KINDS[kind]
    left = [("k", pa.string()), ("lt", STAMP), ("items", items), ("a", pa.int64())]
    right = [("k", pa.string()), ("rt", STAMP), ("items", items), ("b", pa.int64())]
    return pa.schema(left), pa.schema(right)


def sets(kind: str) -> st.SearchStrategy[Any]:
    item = st.sampled_from(ITEMS[kind])
    if kind == "map":
        return st.none() | st.dictionaries(item, WEIGHTS, max_size=5).map(lambda d: list(d.items()))
    if kind == "structs":
        entry = st.builds(lambda i, w: {"item": i, "weight": w}, item, WEIGHTS)
        return st.none() | st.lists(st.none() | entry, max_size=6)
    return st.none() | st.lists(item, max_size=7)


@st.composite
def cases(draw: st.DrawFn) -> tuple[str, Match, list[tuple[pa.Table, pa.Table]]]:
    kind = draw(st.sampled_from(list(KINDS)))
    match: Match
    if kind in ("map", "structs"):
        match = sk.InnerProduct("items", draw(st.sampled_from([0.0625, 0.25, 0.5, 1, 2.5])))
    else:
        match = sk.Overlap("items", draw(st.integers(1, 4)))
    made = []
    keys = st.sampled_from(["x", "x", "x", "y", None])
    for number in range(draw(st.integers(1, 4))):
        sides = []
        for schema in schemas(kind):
            row = st.tuples(keys, st.integers(0, 30), sets(kind))
            drawn = draw(st.lists(row, max_size=9))
            times = [EPOCH + timedelta(seconds=s + 8 * number) for _, s, _ in drawn]
            values = [100 * number + i for i in range(len(drawn))]
            columns = [[k for k, _, _ in drawn], times, [s for _, _, s in drawn], values]
            arrays = [pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)]
            sides.append(pa.table(arrays, schema=schema))
        made.append((sides[0], sides[1]))
    return kind, match, made


def poor_hash(table: pa.Table) -> np.ndarray:
    """Three hashes for all keys and items, above and below the sign."""
    codes = [len(str(row)) % 3 for row in zip(*table.to_pydict().values(), strict=True)]
    return np.array([1, 2**63 + 5, 2**62], np.uint64)[codes]


def zero_blind_hash(table: pa.Table) -> np.ndarray:
    """Equal for items that are equal, with a few collisions."""
    return spread_hash(table) % np.uint64(7) << np.uint64(61)


def run(
    directory: object,
    case: tuple[str, Match, list[tuple[pa.Table, pa.Table]]],
    within: tuple[int | None, int | None],
    late: tuple[int | None, int | None],
    *,
    on: tuple[str, ...] = (),
    faults: tuple[Fault, ...] = (),
    join: type[LocalJoin] = LocalJoin,
    **options: Any,
) -> LocalJoin:
    kind, match, made = case
    micro = [None if x is None else x * 1_000_000 for x in (*within, *late)]
    joined = join(
        str(directory),
        list(on),
        ("lt", "rt"),
        Bounds(micro[0], micro[1]),
        Delays({"left": micro[2], "right": micro[3]}),
        *schemas(kind),
        match=match,
        **options,
    )
    found = joined.run(made, faults)
    expected = join_oracle(
        made,
        on=[(k, k) for k in on],
        time=("lt", "rt"),
        within=(text(within[0]), text(within[1])),
        watermark=(text(late[0]), text(late[1])),
        match=match,
        how=options.get("how", "inner"),
    )
    assert_same_rows(found, expected)
    counts = [p["operators"][0] for p in joined.progress]
    if not faults and "how" not in options:
        assert sum(c["matches"] for c in counts) == expected.num_rows
        for side in (0, 1):
            name = ("left", "right")[side]
            assert sum(c["rows"][name] for c in counts) == sum(b[side].num_rows for b in made)
    return joined


@given(case=cases(), within=bounds, late=delays, instances=st.integers(1, 4), keyed=st.booleans())
@settings(max_examples=60)
def test_the_join_equals_the_oracle(case, within, late, instances, keyed) -> None:
    with tempfile.TemporaryDirectory() as directory:
        on = ("k",) if keyed else ()
        run(directory, case, within, late, on=on, policy=sk.Hash(instances))


@given(
    case=cases(),
    within=bounds,
    late=delays,
    keyed=st.booleans(),
    poor=st.sampled_from([poor_hash, zero_blind_hash]),
)
@settings(max_examples=60)
def test_colliding_hashes_change_nothing(case, within, late, keyed, poor) -> None:
    if case[0] == "reals" and poor is poor_hash:
        poor = zero_blind_hash  # the other tells 0.0 from −0.0, as no hash of Spark's does
    with tempfile.TemporaryDirectory() as directory:
        on = ("k",) if keyed else ()
        run(directory, case, within, late, on=on, hash_keys=poor, policy=sk.Hash(3))


@given(
    case=cases(),
    within=bounds,
    late=delays,
    keyed=st.booleans(),
    small=st.booleans(),
    data=st.data(),
    kills=st.lists(st.tuples(st.sampled_from(POINTS), st.integers(0, 3)), max_size=3),
)
@settings(max_examples=60)
def test_routes_and_kills_change_nothing(case, within, late, keyed, small, data, kills) -> None:
    """Hot items split or with entries of their own, groups and grids, another in every batch."""
    kind, _, made = case
    on = ("k",) if keyed else ()
    known = [i for i in ITEMS[kind] if i is not None]
    item = KINDS[kind].key_type if kind == "map" else KINDS[kind].value_type
    item = item.field(0).type if pa.types.is_struct(item) else item
    columns = {"k": ["x"] * len(known)} if keyed else {}
    hot = spread_hash(pa.table({**columns, "i": pa.array(known, item)}))
    ways = routes(sorted(set(hot.tolist())), most=5, partitions=(5, 16))
    Restless.ways = tuple(data.draw(st.lists(ways, min_size=1, max_size=3)))
    limits = Limits(run_bytes=1, chunk_bytes=1, chunk_rows=1) if small else Limits()
    faults = faults_of(kills, len(made))
    with tempfile.TemporaryDirectory() as directory:
        run(directory, case, within, late, on=on, join=Restless, limits=limits, faults=faults)


def skewed_batches(count: int, rows: int, seed: int = 3) -> list[tuple[pa.Table, pa.Table]]:
    """One item is in nearly every set, and time moves on."""
    rng = np.random.default_rng(seed)
    made = []
    for number in range(count):
        sides = []
        for schema in schemas("numbers"):
            items = [
                [*([0, 1] if rng.random() < 0.9 else []), *rng.integers(2, 40, 3).tolist()]
                for _ in range(rows)
            ]
            seconds = rng.integers(0, 4, rows) + 3 * number
            times = [EPOCH + timedelta(seconds=int(s)) for s in seconds]
            columns = [["x"] * rows, times, items, range(rows)]
            sides.append(
                pa.table(
                    [pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)],
                    schema=schema,
                )
            )
        made.append((sides[0], sides[1]))
    return made


POLICIES: dict[str, RoutingPolicy] = {
    "Hash": sk.Hash(3),
    "Auto": sk.Auto(3, threshold=0.01),
    "LsStream": sk.LsStream(3, threshold=0.1),
    "FastJoin": sk.FastJoin(3),
    "ContRand": sk.ContRand(4, group=2),
    "JoinMatrix": sk.JoinMatrix(4),
    "Mixed": sk.Mixed(3),
    "MinTable": sk.MinTable(3),
    "MinMig": sk.MinMig(3),
    "Readj": sk.Readj(3),
}


@pytest.mark.parametrize("policy", POLICIES)
def test_every_policy_gives_the_same_pairs(tmp_path, policy: str) -> None:
    made = skewed_batches(6, 25)
    case = ("numbers", sk.Overlap("items", 3), made)
    joined = run(tmp_path, case, (-6, 6), (4, 4), policy=POLICIES[policy])
    counts = [p["operators"][0] for p in joined.progress]
    assert sum(c["comparisons"] for c in counts) > sum(c["matches"] for c in counts) > 0


def test_a_hot_item_is_split_and_its_work_is_shared(tmp_path) -> None:
    made = skewed_batches(8, 60)
    case = ("numbers", sk.Overlap("items", 2), made)
    joined = run(tmp_path, case, (-9, 9), (9, 9), policy=sk.Auto(4, threshold=0.01))
    assert joined.engine._last.operators[0].route.splits, "no item was split"


def test_many_batches_are_merged_and_forgotten_and_rows_are_counted_once(tmp_path) -> None:
    made = skewed_batches(60, 10)
    case = ("numbers", sk.Overlap("items", 3), made)
    joined = run(tmp_path, case, (-50, 50), (3, 3), policy=sk.Hash(1))
    states = [p["operators"][0]["state"] for p in joined.progress]
    assert max(s["merged"] for s in states) > 0, "compaction never ran"
    # On one instance a row is stored once, however many postings it has.
    assert states[0]["rows"] == {"left": 10, "right": 10}
    assert states[-1]["rows"]["left"] < 60 * 10 / 2, "old rows are not forgotten"


def test_sets_of_ten_thousand_items_travel_once_to_an_instance(tmp_path) -> None:
    large = list(range(10_000))
    left = [large, list(range(9_990, 10_100)), [5]]
    right = [large[::-1], [9_995, 9_996, 9_997, 20_000], [5, 6, 7], []]
    tables = [
        pa.table([["x"] * len(s), [EPOCH] * len(s), s, list(range(len(s)))], schema=schema)
        for s, schema in zip((left, right), schemas("numbers"), strict=True)
    ]
    case = ("numbers", sk.Overlap("items", 3), [(tables[0], tables[1])])
    joined = run(tmp_path, case, (0, 0), (0, 0), policy=sk.Hash(4))
    told = joined.progress[0]["operators"][0]
    assert told["rows"] == {"left": 3, "right": 4}
    assert sum(told["replicas"].values()) <= 7 * 3


@pytest.mark.parametrize("weight", [NAN, float("inf"), -float("inf")])
def test_weights_that_are_no_numbers_make_a_bad_row(tmp_path, weight: float) -> None:
    rows = [[("a", 1.0), ("b", weight)], [("a", 1.0)]]
    tables = [
        pa.table([["x"] * 2, [EPOCH] * 2, rows, [7, 8]], schema=schema) for schema in schemas("map")
    ]

    def join(name: str, *, drop: bool) -> LocalJoin:
        zero = Delays({"left": 0, "right": 0})
        match = sk.InnerProduct("items", 0.5)
        given = ([], ("lt", "rt"), Bounds(0, 0), zero, *schemas("map"))
        return LocalJoin(
            str(tmp_path / name), *given, match=match, drop_bad_rows=drop, policy=sk.Hash(3)
        )

    with pytest.raises(BadRowError, match=r"left input has a row whose set has a weight.*'a': 7"):
        join("fail", drop=False).step(0, (tables[0], tables[1]))
    dropping = join("drop", drop=True)
    dropping.step(0, (tables[0], tables[1]))
    told = dropping.progress[0]["operators"][0]
    assert told["badRows"] == {"left": 1, "right": 1}
    assert dropping.rows().to_pylist()[0]["a"] == 8
    assert dropping.rows().num_rows == 1


def test_null_sets_are_counted_as_null_keys_and_late_rows_once(tmp_path) -> None:
    schema = schemas("texts")
    wide = [f"item {n}" for n in range(30)]
    batches = []
    for second in (60, 5):
        at = [EPOCH + timedelta(seconds=second)] * 3
        rows = [None, wide, []]
        batches.append(tuple(pa.table([["x"] * 3, at, rows, [1, 2, 3]], schema=s) for s in schema))
    case = ("texts", sk.Overlap("items", 2), batches)
    joined = run(tmp_path, case, (0, 0), (0, 0), policy=sk.Hash(5))
    first, second = (p["operators"][0] for p in joined.progress)
    assert first["nullKeys"] == {"left": 1, "right": 1}
    assert first["rows"] == second["rows"] == second["late"] == {"left": 3, "right": 3}
    assert len(second["dropped"]) == 5
