"""Rebalancing on Spark changes no result, whatever the policy and how often the route changes."""

from dataclasses import replace

import numpy as np
import pytest

import skewless as sk
from skewless.control.loop import ControlLoop
from skewless.routing.partitions import PartitionTable
from skewless.testing import POINTS, Fault, Replay, assert_same_rows, join_oracle
from tests.routing.cases import random_route

from .test_join import random_batches

ON = [("k", "key")]
JOIN = {"on": ON, "time": ("lt", "rt"), "within": "4 seconds", "watermark": "3 seconds"}
BATCHES = random_batches(seed=3, count=6, rows=60)


@pytest.fixture(scope="module")
def expected():
    table = join_oracle(
        BATCHES,
        on=ON,
        time=("lt", "rt"),
        within=("-4 seconds", "4 seconds"),
        watermark=("3 seconds", "3 seconds"),
    )
    assert table.num_rows > 100
    return table


POLICIES = [
    sk.Hash(3),
    sk.LsStream(instances=3, threshold=0.1),
    sk.FastJoin(instances=3),
    sk.ContRand(instances=4, group=2),
    sk.JoinMatrix(instances=6),
    sk.Auto(instances=3),
]


@pytest.mark.parametrize("policy", POLICIES, ids=lambda p: type(p).__name__)
def test_every_policy_gives_the_oracles_rows(spark, tmp_path, expected, policy) -> None:
    found = Replay(spark, tmp_path, BATCHES).run(
        lambda left, right: sk.join(left, right, balance=policy, **JOIN)
    )
    assert_same_rows(found, expected)


@pytest.mark.parametrize("kills", [(), tuple(POINTS)], ids=["undisturbed", "killed"])
def test_a_route_that_changes_every_batch(spark, tmp_path, expected, monkeypatch, kills) -> None:
    """Tables, split keys, groups and grids at random, with kills in between."""
    rng = np.random.default_rng(9)
    plain = ControlLoop.next_round
    hot: list[int] = []
    kinds: set[str] = set()

    def restless(loop, route, balance, reports, segments):
        turn = plain(loop, route, balance, reports, segments)
        for report in reports:
            for key in report.hot_keys:
                hot.append(key.hash)
        table = PartitionTable(4, tuple(rng.integers(0, 4, 256).tolist()))
        kind = str(rng.choice(["table", "mixed", "splits", "groups", "grid"]))
        kinds.add(kind)
        way = random_route(kind, table, list(dict.fromkeys(hot))[:3], rng)
        order = tuple(rng.permutation(4).tolist())
        return replace(turn, route=way, balance=replace(turn.balance, order=order))

    monkeypatch.setattr(ControlLoop, "next_round", restless)
    faults = [Fault(point, batch) for batch, point in enumerate(kills)]
    replay = Replay(spark, tmp_path, BATCHES)
    found = replay.run(
        lambda left, right: sk.join(left, right, balance=sk.Hash(4), **JOIN), faults=faults
    )
    assert replay.restarts == len(faults)
    assert_same_rows(found, expected)
    assert hot
    assert len(kinds) >= 2


def test_user_code_between_us_and_the_job(spark, tmp_path, expected, monkeypatch) -> None:
    """A grid of replicas whose result the user coalesces: the rows tell the instance."""
    replay = Replay(spark, tmp_path, BATCHES)
    found = replay.run(
        lambda left, right: sk.join(
            left, right, balance=sk.JoinMatrix(instances=4), **JOIN
        ).transform(lambda df: df.coalesce(1))
    )
    assert_same_rows(found, expected)


def test_a_hot_key_is_split_and_the_plan_is_told(spark, tmp_path, capsys) -> None:
    """One key carries most of both streams: Auto shares it, and says so."""
    rng = np.random.default_rng(1)
    batches = []
    for number, (left, right) in enumerate(random_batches(seed=5, count=5, rows=0)):
        del left, right
        batches.append(skewed(rng, number))
    replay = Replay(spark, tmp_path, batches)
    query = replay.start(
        lambda left, right: sk.join(left, right, balance=sk.Auto(instances=2), **JOIN)
    )
    query.awaitTermination()
    records = [p["skewless"]["operators"][0] for p in query.recentProgress]
    assert records[-1]["balance"]["splits"], "the hot key is not split"
    assert len(records[-1]["balance"]["splits"][0]["members"]) == 2
    rows = records[-1]["load"]["rows"]
    assert max(rows) < 0.65 * sum(rows), f"the hot key's rows are not shared: {rows}"
    assert sum(records[-1]["replicas"].values()) > 0
    expected_rows = join_oracle(
        batches,
        on=ON,
        time=("lt", "rt"),
        within=("-4 seconds", "4 seconds"),
        watermark=("3 seconds", "3 seconds"),
    )
    assert_same_rows(replay.rows(), expected_rows)
    query.explainBalance()
    told = capsys.readouterr().out
    assert "is split over instances" in told
    assert "batch 4: imbalance" in told


def skewed(rng: np.random.Generator, number: int):
    """A batch in which one key has 70 % of the rows."""
    from datetime import timedelta

    import pyarrow as pa

    from .test_join import EPOCH, LEFT, RIGHT

    sides = []
    for schema in (LEFT, RIGHT):
        keys = ["hot" if r < 0.7 else f"k{int(r * 1000)}" for r in rng.random(400)]
        moments = [EPOCH + timedelta(seconds=float(s) + 8 * number) for s in rng.random(400) * 8]
        values = [number * 1000 + i for i in range(400)]
        payload = values if schema is LEFT else [str(v) for v in values]
        sides.append(pa.table([keys, moments, payload], schema=schema))
    return sides[0], sides[1]
