"""Outer, semi and anti joins without Spark, against DuckDB: each row once, when it is certain."""

import tempfile
from datetime import timedelta

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import skewless as sk
from skewless.engine.chunks import Limits
from skewless.errors import SkewlessError
from skewless.kernels.predicate import Predicate
from skewless.operators.join.bounds import Bounds
from skewless.planning.hash import Hash
from skewless.routing.partitions import PartitionTable
from skewless.state.watermark import Delays
from skewless.testing import POINTS, LocalJoin, assert_same_rows, join_oracle
from tests.operators.join.test_join_local import (
    EPOCH,
    HOT,
    LEFT,
    RIGHT,
    Restless,
    batches,
    faults_of,
    local,
    poor_hash,
    text,
)
from tests.operators.join.test_near_local import cases as near_cases
from tests.operators.join.test_near_local import run as run_near
from tests.operators.join.test_sets_local import cases as set_cases
from tests.operators.join.test_sets_local import run as run_sets
from tests.operators.join.test_where_local import CONDITIONS
from tests.routing.cases import random_route, routes

SECOND = 1_000_000
TYPES = ["left", "right", "full", "left_semi", "left_anti"]
HOWS = st.sampled_from(TYPES)
BOUNDS = st.tuples(st.integers(-20, 20), st.integers(-20, 20)).map(sorted).map(tuple)
DELAYS = st.tuples(st.integers(0, 15), st.integers(0, 15))
TINY = Limits(run_bytes=1, chunk_bytes=1, chunk_rows=1)


def run(directory, made, how, within, late, *, faults=(), sql=None, **options) -> LocalJoin:
    micro = [None if x is None else x * SECOND for x in (*within, *late)]
    joined = local(
        directory,
        bounds=Bounds(micro[0], micro[1]),
        delays=Delays({"left": micro[2], "right": micro[3]}),
        how=how,
        **options,
    )
    found = joined.run(made, faults)
    expected = join_oracle(
        made,
        on=[("k", "k"), ("g", "g")],
        time=("lt", "rt"),
        within=(text(within[0]), text(within[1])),
        watermark=(text(late[0]), text(late[1])),
        how=how,
        where=sql,
    )
    assert_same_rows(found, expected)
    return joined


@given(
    made=batches(),
    how=HOWS,
    within=BOUNDS,
    late=DELAYS,
    instances=st.integers(1, 4),
    poor=st.booleans(),
    small=st.booleans(),
)
@settings(max_examples=120)
def test_every_type_equals_the_oracle(made, how, within, late, instances, poor, small) -> None:
    options = {"hash_keys": poor_hash} if poor else {}
    limits = TINY if small else Limits()
    with tempfile.TemporaryDirectory() as directory:
        run(directory, made, how, within, late, policy=Hash(instances), limits=limits, **options)


@given(
    made=batches(),
    how=HOWS,
    within=BOUNDS,
    late=DELAYS,
    ways=st.lists(routes(HOT, most=5, partitions=(5, 16)), min_size=1, max_size=4),
    small=st.booleans(),
    kills=st.lists(st.tuples(st.sampled_from(POINTS), st.integers(0, 4)), max_size=2),
)
@settings(max_examples=150)
def test_routes_and_kills_change_nothing(made, how, within, late, ways, small, kills) -> None:
    Restless.ways = tuple(ways)
    faults = faults_of(kills, len(made))
    limits = TINY if small else Limits()
    with tempfile.TemporaryDirectory() as directory:
        run(directory, made, how, within, late, join=Restless, faults=faults, limits=limits)


@given(
    case=near_cases(),
    how=st.sampled_from(["left", "left_semi", "left_anti"]),
    within=BOUNDS,
    late=DELAYS,
    keyed=st.booleans(),
    data=st.data(),
)
@settings(max_examples=80)
def test_joins_by_distance_equal_the_oracle(case, how, within, late, keyed, data) -> None:
    ways = st.lists(routes([], most=5, partitions=(5, 16)), min_size=1, max_size=3)
    Restless.ways = tuple(data.draw(ways))
    on = ("k",) if keyed else ()
    with tempfile.TemporaryDirectory() as directory:
        run_near(directory, case, within, late, on=on, how=how, join=Restless)


@given(
    case=set_cases(),
    how=st.sampled_from(["left", "right", "full", "left_anti"]),
    within=BOUNDS,
    late=DELAYS,
    keyed=st.booleans(),
    data=st.data(),
)
@settings(max_examples=80)
def test_joins_by_sets_equal_the_oracle(case, how, within, late, keyed, data) -> None:
    ways = st.lists(routes([], most=5, partitions=(5, 16)), min_size=1, max_size=3)
    Restless.ways = tuple(data.draw(ways))
    on = ("k",) if keyed else ()
    with tempfile.TemporaryDirectory() as directory:
        run_sets(directory, case, within, late, on=on, how=how, join=Restless)


@pytest.mark.parametrize("how", TYPES)
def test_state_is_empty_when_the_window_has_passed(tmp_path, how) -> None:
    """Nothing is left of rows, matched or not, with or without a key, once time has gone on."""
    made = []
    for second in (0, 5, 10, 500, 1_000, 1_500):
        moment = EPOCH + timedelta(seconds=second)
        left = [{"k": k, "g": 0, "lt": moment, "a": second} for k in ("x", "y", None, "x")]
        right = [{"k": k, "g": 0, "rt": moment, "b": "r"} for k in ("x", "z", None)]
        made.append((pa.Table.from_pylist(left, LEFT), pa.Table.from_pylist(right, RIGHT)))
    joined = run(tmp_path, made, how, (-7, 3), (0, 0), policy=Hash(2))
    stored = joined.progress[-1]["operators"][0]["state"]["rows"]
    # Those of the last two batches: the emission of a batch reads what leaves with it.
    assert sum(stored.values()) <= 14
    on_disk = list((tmp_path / "segments").rglob("*.arrow"))
    assert sum(p.stat().st_size for p in on_disk) < 40_000


def test_what_could_never_be_known_is_refused(tmp_path) -> None:
    for how, bounds, named in (
        ("left", Bounds(0, None), "upper bound"),
        ("left_semi", Bounds(0, None), "upper bound"),
        ("right", Bounds(None, 0), "lower bound"),
        ("full", Bounds(None, 0), "lower bound"),
    ):
        with pytest.raises(SkewlessError, match=rf"within: .*{named}.*how='{how}'"):
            local(tmp_path, bounds=bounds, how=how)
    for how, side in (("left", "right"), ("left_anti", "right"), ("right", "left")):
        never = Delays({"left": 0, "right": 0, side: None})
        with pytest.raises(SkewlessError, match=rf"watermark: got None for the {side} side"):
            local(tmp_path, delays=never, how=how)
    with pytest.raises(SkewlessError, match=r"how: .*'inner' or 'left'"):
        local(tmp_path, how="full", match=sk.AsOf("backward"))
    with pytest.raises(SkewlessError, match=r"shed: .*how='left'"):
        local(tmp_path, how="left", shed=sk.Shed(max_latency="2 seconds"))


def test_a_match_counts_that_the_same_batch_makes_forget(tmp_path) -> None:
    """A stored row finds its match in the batch whose later rows let both of them leave."""
    made = []
    for lefts, rights in ((("x", 0),), (("y", 0),)), ((("y", 100),), (("x", 5), ("z", 100))):
        left = [{"k": k, "g": 0, "lt": EPOCH + timedelta(seconds=s), "a": s} for k, s in lefts]
        right = [{"k": k, "g": 0, "rt": EPOCH + timedelta(seconds=s), "b": k} for k, s in rights]
        made.append((pa.Table.from_pylist(left, LEFT), pa.Table.from_pylist(right, RIGHT)))
    for how in TYPES:
        joined = run(tmp_path / how, made, how, (-1, 10), (0, 0), policy=Hash(1))
        alone = [row for row in joined.rows().to_pylist() if row["k"] == "x"]
        assert len(alone) == (how != "left_anti"), how


@given(
    made=batches(),
    how=HOWS,
    within=BOUNDS,
    late=DELAYS,
    condition=CONDITIONS,
    ways=st.lists(routes(HOT, most=5, partitions=(5, 16)), min_size=1, max_size=3),
    small=st.booleans(),
)
@settings(max_examples=80)
def test_a_row_whose_pairs_all_fail_the_condition_has_no_match(
    made, how, within, late, condition, ways, small
) -> None:
    Restless.ways = tuple(ways)
    node, sql = condition
    options = {"where": Predicate(node), "limits": TINY if small else Limits(), "join": Restless}
    with tempfile.TemporaryDirectory() as directory:
        run(directory, made, how, within, late, sql=sql, **options)


@pytest.mark.parametrize("how", TYPES)
def test_segments_are_merged_while_routes_change(tmp_path, how) -> None:
    """Sixty batches in a window of twenty, on routes of every kind, with kills."""
    rng = np.random.default_rng(5)
    made = []
    for number in range(60):
        sides = []
        for schema, time, value in ((LEFT, "lt", "a"), (RIGHT, "rt", "b")):
            seconds = rng.integers(0, 3, 12)
            values = [number * 100 + i for i in range(12)]
            rows = {
                "k": [["x", "y", "z", "hot", None][k] for k in rng.integers(0, 5, 12)],
                "g": rng.integers(0, 6, 12),
                time: [EPOCH + timedelta(seconds=int(s) + 2 * number) for s in seconds],
                value: values if value == "a" else list(map(str, values)),
            }
            sides.append(pa.table(rows).cast(schema))
        made.append((sides[0], sides[1]))
    table = PartitionTable(3, tuple(rng.integers(0, 3, 16).tolist()))
    kinds = ("table", "splits", "groups", "table", "mixed", "grid")
    Restless.ways = tuple(random_route(kind, table, HOT, rng) for kind in kinds)
    faults = faults_of([(point, 9 * n + 4) for n, point in enumerate(POINTS)], len(made))
    joined = run(tmp_path, made, how, (-20, 20), (3, 3), join=Restless, faults=faults)
    states = [progress["operators"][0]["state"] for progress in joined.progress]
    assert max(state["merged"] for state in states) > 0, "compaction never ran"
