"""Joins with a condition on the pair, without Spark, against DuckDB: routes and kills included."""

import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import skewless as sk
from skewless.engine.chunks import Limits
from skewless.engine.engine import Engine
from skewless.kernels.predicate import (
    And,
    Arithmetic,
    Column,
    Compare,
    Constant,
    Not,
    Or,
    Predicate,
)
from skewless.operators.join.bounds import Bounds
from skewless.shedding.policy import Shed
from skewless.state.storage import Storage
from skewless.state.watermark import Delays
from skewless.testing import POINTS, assert_same_rows, join_oracle
from tests.operators.join import test_asof_local as asof
from tests.operators.join import test_near_local as near
from tests.operators.join import test_nearest_local as nearest
from tests.operators.join import test_probing as probing
from tests.operators.join.test_join_local import (
    HOT,
    Restless,
    batches,
    bounds,
    delays,
    faults_of,
    local,
    poor_hash,
    text,
)
from tests.routing.cases import routes


def left(name: str) -> Column:
    return Column("left", name)


def right(name: str) -> Column:
    return Column("right", name)


def number(value: int | None) -> Constant:
    return Constant(pa.scalar(value, pa.int64()))


EARLIER = (Compare("<", left("lt"), right("rt")), "l.lt < r.rt")
THIRD = Compare("=", Arithmetic("%", left("a"), number(3)), number(1))
MIXED = (
    Or(THIRD, And(Compare("<=", Constant(pa.scalar("r10")), right("b")), Not(EARLIER[0]))),
    "l.a % 3 = 1 OR ('r10' <= r.b AND NOT l.lt < r.rt)",
)
TEXT = (Compare("<", left("k"), right("b")), "l.k < r.b")
UNKNOWN = (Or(Compare("=", left("a"), number(None)), EARLIER[0]), "l.a = NULL OR l.lt < r.rt")
CONDITIONS = st.sampled_from([EARLIER, MIXED, TEXT, UNKNOWN])
KILLS = st.lists(st.tuples(st.sampled_from(POINTS), st.integers(0, 4)), max_size=2)
WAYS = st.lists(routes(HOT, most=5, partitions=(5, 16)), min_size=1, max_size=4)


def micro(seconds: int | None) -> int | None:
    return None if seconds is None else seconds * 1_000_000


def expected_of(made, within, late, sql, **options) -> pa.Table:
    return join_oracle(
        made,
        on=[("k", "k"), ("g", "g")],
        time=("lt", "rt"),
        within=(text(within[0]), text(within[1])),
        watermark=(text(late[0]), text(late[1])),
        where=sql,
        **options,
    )


@given(
    made=batches(),
    within=bounds,
    late=delays,
    condition=CONDITIONS,
    ways=WAYS,
    small=st.booleans(),
    poor=st.booleans(),
    kills=KILLS,
)
@settings(max_examples=60)
def test_a_route_that_changes_every_batch_changes_nothing(
    made, within, late, condition, ways, small, poor, kills
) -> None:
    node, sql = condition
    faults = faults_of(kills, len(made))
    Restless.ways = tuple(ways)
    with tempfile.TemporaryDirectory() as directory:
        joined = local(
            directory,
            join=Restless,
            where=Predicate(node),
            bounds=Bounds(micro(within[0]), micro(within[1])),
            delays=Delays({"left": micro(late[0]), "right": micro(late[1])}),
            limits=Limits(run_bytes=1, chunk_bytes=1, chunk_rows=1) if small else Limits(),
            **({"hash_keys": poor_hash} if poor else {}),
        )
        found = joined.run(made, faults)
    expected = expected_of(made, within, late, sql)
    assert_same_rows(found, expected)
    told = [p["operators"][0] for p in joined.progress]
    if not faults:
        assert sum(t["matches"] for t in told) == expected.num_rows
    assert sum(t["comparisons"] for t in told) >= expected.num_rows


@given(
    made=batches(),
    direction=asof.DIRECTIONS,
    within=asof.BOUNDS,
    late=asof.DELAYS,
    condition=CONDITIONS,
    ways=WAYS,
    kills=KILLS,
)
@settings(max_examples=50)
def test_the_closest_row_is_chosen_of_those_that_fulfil_it(
    made, direction, within, late, condition, ways, kills
) -> None:
    node, sql = condition
    made = asof.one_per_moment(made)
    match = sk.AsOf(direction)
    Restless.ways = tuple(ways)
    with tempfile.TemporaryDirectory() as directory:
        joined = local(
            directory,
            join=Restless,
            where=Predicate(node),
            match=match,
            bounds=Bounds(micro(within[0]), micro(within[1])),
            delays=Delays({"left": micro(late[0]), "right": micro(late[1])}),
        )
        found = joined.run(made, faults_of(kills, len(made)))
    assert_same_rows(found, expected_of(made, within, late, sql, match=match))


@given(case=near.cases(), within=nearest.bounds, late=nearest.delays, k=nearest.counts)
@settings(max_examples=30)
def test_points_that_are_near_and_fulfil_it(case, within, late, k) -> None:
    """All of them, and the nearest of them."""
    given_match, kinds, made = case
    where = Predicate(Compare("<=", left("a"), right("b")))
    for match in (given_match, nearest.nearest(given_match, k)):
        with tempfile.TemporaryDirectory() as directory:
            joined = near.local(directory, match, kinds, within, late, on=("k",), where=where)
            found = joined.run(made)
        expected = join_oracle(
            made,
            on=[("k", "k")],
            time=("lt", "rt"),
            within=(text(within[0]), text(within[1])),
            watermark=(text(late[0]), text(late[1])),
            match=match,
            where="l.a <= r.b",
        )
        assert_same_rows(found, expected)


BELOW = Predicate(Compare("<", left("a"), right("b")))


def test_a_join_that_sheds_gives_true_pairs_once(tmp_path: Path) -> None:
    made = probing.stream(1)
    full = probing.joined(tmp_path / "full", made, where=BELOW)
    expected = join_oracle(
        made,
        on=[("k", "k")],
        time=("t", "u"),
        within=("-4 seconds", "6 seconds"),
        watermark=("5 seconds", "5 seconds"),
        where="l.a < r.b",
    )
    assert_same_rows(full.rows(), expected)
    shed = probing.joined(tmp_path / "shed", made, where=BELOW, comparisons=3_000)
    found, true = probing.bag(shed.rows()), probing.bag(expected)
    assert not found - true
    assert 0 < sum(found.values()) < 0.8 * sum(true.values())


def test_what_is_missed_is_estimated_and_right_on_the_average(tmp_path: Path) -> None:
    """Not every comparison is a match any more, so the number of those not made says too much."""
    made = probing.stream(3, batches=2, rows=250)
    probing.joined(tmp_path / "full", made, where=BELOW)
    matches = [sum(a.matches for a in accounts) for accounts in probing.ACCOUNTS]
    query = probing.joined(
        tmp_path / "shed", made[:1], where=BELOW, shed=Shed("1 second", sample=0.5)
    )
    errors, variances = [], []
    for seed in range(60):
        probing.ACCOUNTS.clear()
        operator = replace(query.operator, comparisons=2_000.0, seed=seed, in_order=True)
        query.operator, query.engine = operator, Engine(Storage(query.directory), (operator,), 2)
        query.engine.open()
        query.step(1, made[1])
        (accounts,) = probing.ACCOUNTS
        found = sum(a.matches for a in accounts)
        assert found < 0.8 * matches[1]
        errors.append(sum(a.missed.results for a in accounts) - (matches[1] - found))
        variances.append(sum(a.missed.variance for a in accounts))
        Path(query.directory, "commits", "000000000001.json").unlink()
    assert abs(np.mean(errors)) < 2.5 * np.std(errors) / np.sqrt(len(errors))
    assert np.sqrt(np.mean(variances)) == pytest.approx(np.std(errors), rel=0.4)
