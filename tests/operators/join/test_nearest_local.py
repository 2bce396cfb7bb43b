"""The nearest rows without Spark, against a brute force: each left row once, when it is due."""

import tempfile
from datetime import timedelta

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import skewless as sk
from skewless.engine.chunks import Limits
from skewless.operators.join.bounds import Bounds
from skewless.state.watermark import Delays
from skewless.testing import POINTS, LocalJoin, assert_same_rows, join_oracle
from tests.operators.join.test_join_local import Restless, faults_of, text
from tests.operators.join.test_near_local import (
    DOUBLES,
    EPOCH,
    cases,
    crowded_batches,
    hot_cells,
    local,
    poor_hash,
    schemas,
)
from tests.operators.join.test_sets_local import POLICIES
from tests.routing.cases import routes

# A left row needs an upper bound and a right side that is not late for ever.
bounds = st.one_of(
    st.tuples(st.integers(-20, 20), st.integers(-20, 20)).map(sorted).map(tuple),
    st.tuples(st.none(), st.integers(-10, 10)),
)
delays = st.tuples(st.one_of(st.none(), st.integers(0, 15)), st.integers(0, 15))


def nearest(near: sk.Near, k: int) -> sk.Nearest:
    return sk.Nearest(
        k=k,
        left=near.left,
        right=near.right,
        radius=near.radius,
        metres=near.metres,
        distance=near.distance,
    )


def run(directory, case, within, late, *, k, on=(), faults=(), **options) -> LocalJoin:
    near, kinds, made = case
    match = nearest(near, k)
    joined = local(directory, match, kinds, within, late, on=on, **options)
    found = joined.run(made, faults)
    expected = join_oracle(
        made,
        on=[(key, key) for key in on],
        time=("lt", "rt"),
        within=(text(within[0]), text(within[1])),
        watermark=(text(late[0]), text(late[1])),
        match=match,
    )
    assert_same_rows(found, expected)
    return joined


counts = st.sampled_from([1, 2, 3, 50])


@given(
    case=cases(),
    within=bounds,
    late=delays,
    k=counts,
    keyed=st.booleans(),
    poor=st.booleans(),
    instances=st.integers(1, 4),
)
@settings(max_examples=100)
def test_the_nearest_equal_the_oracle(case, within, late, k, keyed, poor, instances) -> None:
    options = {"hash_keys": poor_hash} if poor else {}
    with tempfile.TemporaryDirectory() as directory:
        on = ("k",) if keyed else ()
        run(directory, case, within, late, k=k, on=on, policy=sk.Hash(instances), **options)


@given(
    case=cases(),
    within=bounds,
    late=delays,
    k=counts,
    small=st.booleans(),
    data=st.data(),
    kills=st.lists(st.tuples(st.sampled_from(POINTS), st.integers(0, 3)), max_size=3),
)
@settings(max_examples=100)
def test_routes_and_kills_change_nothing(case, within, late, k, small, data, kills) -> None:
    """Every left row comes once, whichever instance has stored it, has split its cell or died."""
    near, _, made = case
    ways = routes(hot_cells(near, keyed=False), most=5, partitions=(5, 16))
    Restless.ways = tuple(data.draw(st.lists(ways, min_size=1, max_size=3)))
    limits = Limits(run_bytes=1, chunk_bytes=1, chunk_rows=1) if small else Limits()
    faults = faults_of(kills, len(made))
    with tempfile.TemporaryDirectory() as directory:
        run(directory, case, within, late, k=k, join=Restless, limits=limits, faults=faults)


@given(
    within=bounds, late=st.tuples(st.integers(0, 9), st.integers(0, 9)), seed=st.integers(0, 2**32)
)
@example(within=(-16, -3), late=(2, 0), seed=1)
@example(within=(-12, 1), late=(0, 9), seed=2)
@settings(max_examples=8)
def test_rows_that_wait_survive_merges(within, late, seed) -> None:
    """A window is long enough for several batches in an eighth of it."""
    wide = tuple(None if w is None else 10 * w for w in within)
    case = (NEAR, DOUBLES, crowded_batches(30, 5, seed))
    with tempfile.TemporaryDirectory() as directory:
        run(directory, case, wide, late, k=2, policy=sk.Hash(1))


NEAR = sk.Near(radius=1.0, left=("x", "y"), right=("u", "v"))


@pytest.mark.parametrize("policy", POLICIES)
def test_every_policy_gives_the_same_rows(tmp_path, policy: str) -> None:
    case = (NEAR, DOUBLES, crowded_batches(6, 25))
    joined = run(tmp_path, case, (-6, 6), (4, 4), k=2, policy=POLICIES[policy])
    assert joined.rows().num_rows > 20


def test_old_rows_are_merged_and_forgotten(tmp_path) -> None:
    case = (NEAR, DOUBLES, crowded_batches(60, 10))
    joined = run(tmp_path, case, (-110, 10), (3, 3), k=3, policy=sk.Hash(1))
    states = [p["operators"][0]["state"] for p in joined.progress]
    assert max(s["merged"] for s in states) > 0, "compaction never ran"
    assert states[-1]["rows"]["left"] < 60 * 10 / 4, "rows that were given are not forgotten"
    assert states[-1]["rows"]["right"] < 60 * 10 * 9 / 10
    assert sum(table.num_rows > 0 for table in joined.sink.values()) > 40, "as they become due"


def test_of_equally_near_rows_the_later_are_chosen(tmp_path) -> None:
    left, right = schemas(DOUBLES)
    at = [EPOCH + timedelta(seconds=s) for s in (0, 3, 1, 2, 60)]
    batch = (
        pa.table([["x", "x"], [at[0], at[4]], [0.0, 90.0], [0.0, 90.0], [1, 2]], schema=left),
        pa.table(
            [
                ["x"] * 5,
                at,
                [1.0, 0.0, -1.0, 0.0, 90.0],
                [0.0, 1.0, 0.0, -1.0, 90.0],
                [10, 11, 12, 13, 14],
            ],
            schema=right,
        ),
    )
    joined = local(tmp_path, nearest(NEAR, 2), DOUBLES, (-5, 5), (0, 0))
    joined.run([batch])
    assert sorted(r["b"] for r in joined.rows().to_pylist()) == [11, 13]
    counts = joined.progress[0]["operators"][0]
    assert counts["rows"] == {"left": 2, "right": 5}


@pytest.mark.parametrize(
    ("within", "late", "says"),
    [
        (Bounds(-1, None), Delays({"left": 0, "right": 0}), "within: got 'no upper bound'; takes"),
        (
            Bounds(-1, 1),
            Delays({"left": 0, "right": None}),
            "watermark: got None; takes a duration",
        ),
    ],
)
def test_left_rows_must_become_due(tmp_path, within, late, says) -> None:
    with pytest.raises(sk.SkewlessError, match=says):
        LocalJoin(
            str(tmp_path), [], ("lt", "rt"), within, late, *schemas(DOUBLES), match=nearest(NEAR, 1)
        )


def test_the_output_watermark_waits_with_the_rows(tmp_path) -> None:
    """No later batch gives a row, of either side, that is not after it."""
    made = crowded_batches(20, 12, seed=5)
    joined = local(tmp_path, nearest(NEAR, 2), DOUBLES, (-4, 3), (1, 2), policy=sk.Hash(2))
    mark = None
    given = 0
    for number, batch in enumerate(made):
        joined.step(number, batch)
        for name in ("lt", "rt"):
            times = joined.sink[number].column(name).cast(pa.int64()).to_numpy()
            assert mark is None or (times > mark).all()
            given += len(times)
        mark = joined.operator.output_watermark_us(joined.engine._last.operators[0])
    assert given > 50
    assert np.isfinite(mark)
