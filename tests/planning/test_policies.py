"""What all policies have in common: arguments, tables, descriptions and memories fit for JSON."""

import json
from typing import Any

import numpy as np
import pytest

from skewless.errors import SkewlessError
from skewless.load.heavy import EVERY_KEY_THAT_COUNTS
from skewless.planning.auto import Auto
from skewless.planning.contrand import ContRand
from skewless.planning.decision import Limits
from skewless.planning.fastjoin import FastJoin
from skewless.planning.hash import Hash
from skewless.planning.joinmatrix import JoinMatrix
from skewless.planning.keys.policy import KeyTablePolicy
from skewless.planning.leastwork import LeastWork
from skewless.planning.lsstream import LsStream
from skewless.planning.minmig import MinMig
from skewless.planning.mintable import MinTable
from skewless.planning.mixed import Mixed
from skewless.planning.pkg import PKG
from skewless.planning.plan import validate
from skewless.planning.policy import Policy, RoutingPolicy
from skewless.planning.posg import Posg
from skewless.planning.readj import Readj
from skewless.planning.roundrobin import RoundRobin
from skewless.planning.shuffle.snapshot import InstanceWork, WorkSnapshot
from skewless.planning.snapshot import Snapshot
from tests.planning.cases import planned

POLICIES: list[RoutingPolicy] = [
    Hash(instances=4),
    LsStream(instances=4),
    FastJoin(instances=4),
    ContRand(instances=4, group=2),
    JoinMatrix(instances=4),
    Auto(instances=4),
]
NAMES = [type(policy).__name__ for policy in POLICIES]


def measured(policy: RoutingPolicy, seed: int) -> Snapshot:
    table = policy.table(cores=2)
    rng = np.random.default_rng(seed)
    rows = rng.pareto(1.0, table.partitions) * 100
    return Snapshot(table, rows, 5 * rows, rows)


@pytest.mark.parametrize("policy", POLICIES, ids=NAMES)
def test_a_policy_is_described_and_remembers_in_json(policy: RoutingPolicy) -> None:
    described = policy.describe()
    assert described["policy"] == type(policy).__name__
    assert json.loads(json.dumps(described)) == described
    state: dict[str, Any] = {}
    for seed in range(3):
        snapshot = measured(policy, seed)
        plan, state = planned(policy, snapshot, state)
        assert json.loads(json.dumps(state)) == state
        validate(plan, snapshot)
        assert plan.reason


@pytest.mark.parametrize("policy", POLICIES, ids=NAMES)
def test_the_same_snapshot_and_memory_give_the_same_plan(policy: RoutingPolicy) -> None:
    snapshot = measured(policy, 1)
    assert policy.plan(snapshot, {}) == policy.plan(snapshot, {})


@pytest.mark.parametrize("policy", POLICIES, ids=NAMES)
def test_idle_instances_are_left_alone(policy: RoutingPolicy) -> None:
    table = policy.table(cores=2)
    nothing = np.zeros(table.partitions)
    plan, _ = planned(policy, Snapshot(table, nothing, nothing, nothing), {})
    assert plan.does_nothing
    assert plan.table == table


@pytest.mark.parametrize("policy", [Hash(4), ContRand(4), JoinMatrix(4)])
def test_some_never_move(policy: RoutingPolicy) -> None:
    snapshot = measured(policy, 3)
    plan, state = planned(policy, snapshot, {})
    assert plan.table == snapshot.table
    assert plan.imbalance_before == plan.imbalance_after > 0
    assert state == {}


def test_a_policy_is_described_by_its_options_in_order() -> None:
    assert list(Auto(instances=(1, 3), threshold=0.2).describe().items()) == [
        ("policy", "Auto"),
        ("instances", [1, 3]),
        ("threshold", 0.2),
        ("max_moves", None),
        ("split", True),
        ("every", 1),
        ("busy_ms", 1_000.0),
    ]
    assert list(FastJoin(4, 300, every=2).describe().items()) == [
        ("policy", "FastJoin"),
        ("instances", 4),
        ("partitions", 300),
        ("trigger", 2.2),
        ("every", 2),
    ]


def test_only_the_baselines_start_with_replicas() -> None:
    assert [p for p, policy in zip(NAMES, POLICIES, strict=True) if policy.start(2).replicates] == [
        "ContRand",
        "JoinMatrix",
    ]


ROUTING = [
    Hash,
    LsStream,
    FastJoin,
    ContRand,
    JoinMatrix,
    Auto,
    Mixed,
    MinTable,
    MinMig,
    Readj,
    PKG,
]


@pytest.mark.parametrize("kind", ROUTING)
def test_without_instances_there_is_one_per_core(kind: Any) -> None:
    for cores, instances in ((0, 1), (1, 1), (3, 3), (300, 300)):
        assert kind().table(cores).instances == instances
        assert kind().start(cores).instances == instances
    assert kind().describe()["instances"] is None
    assert isinstance(kind(), Policy)


@pytest.mark.parametrize("kind", ROUTING)
def test_the_loop_can_ask_every_policy_the_same_questions(kind: Any) -> None:
    policy = kind()
    assert isinstance(policy, RoutingPolicy)
    assert policy.every == 1
    assert policy.busy_ms > 0
    assert policy.instances is None
    assert policy.needs_combinable is (kind is PKG)
    assert (policy.detail == EVERY_KEY_THAT_COUNTS) is issubclass(kind, KeyTablePolicy)
    assert policy.limits(256) == Limits(
        max_moves=64 if kind is Auto else None,
        table_limit=3_000 if kind in (Mixed, MinTable, Readj) else None,
    )
    table = policy.table(cores=2)
    even = np.ones(table.partitions)
    decision = policy.plan(Snapshot(table, even, even, even), {})
    assert decision.route in (None, policy.start(cores=2)), "an even load moves nothing"
    assert decision.plan is not None
    decision.plan.check(Snapshot(table, even, even, even), policy.limits(table.partitions))
    assert set(decision.plan.told()) == {
        "moves",
        "movedKeys",
        "movedRows",
        "imbalanceBefore",
        "imbalanceAfter",
    }


MAPS = [LeastWork, Posg, RoundRobin]


@pytest.mark.parametrize("kind", MAPS)
def test_maps_follow_the_same_protocol(kind: Any) -> None:
    policy = kind()
    idle = WorkSnapshot(tuple(InstanceWork(i, 0, 0.0, 0.0, policy.blank()) for i in range(2)))
    decision = policy.plan(idle, {})
    assert decision == policy.plan(idle, {})
    assert decision.route == policy.start(cores=2), "nothing was learned"
    assert decision.plan is None
    assert decision.reason


@pytest.mark.parametrize("kind", MAPS)
def test_maps_have_one_instance_per_core_too(kind: Any) -> None:
    assert [kind().start(cores).instances for cores in (0, 1, 3, 300)] == [1, 1, 3, 300]
    assert isinstance(kind(), Policy)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: LsStream(0), "instances: got 0"),
        (lambda: LsStream(300), "partitions: got 256; takes a whole number from 300 to 65,536"),
        (lambda: LsStream(2, threshold=0), "threshold: got 0; takes a number above 0"),
        (lambda: LsStream(2, gamma=1.5), "gamma: got 1.5; takes a number above 0 and up to 1"),
        (lambda: LsStream(2, cooling=1.0), "cooling: got 1.0"),
        (lambda: LsStream(2, seed=-1), "seed: got -1"),
        (lambda: FastJoin(2, trigger=1), "trigger: got 1; takes a number above 1"),
        (lambda: ContRand(2, group=3), "group: got 3; takes a whole number from 1 to 2"),
        (lambda: JoinMatrix(True), "instances: got True"),
        (lambda: Auto(instances=0), "instances: got 0"),
        (lambda: Auto(threshold=float("nan")), "threshold: got nan"),
        (lambda: Auto(threshold=float("inf")), "threshold: got inf"),
        (lambda: Auto(max_moves=0), "max_moves: got 0"),
        (lambda: Auto(split="yes"), "split: got 'yes'; takes True or False"),
    ],
)
def test_a_wrong_argument_is_refused(make: Any, says: str) -> None:
    with pytest.raises(SkewlessError) as refusal:
        make()
    assert says in str(refusal.value)


@pytest.mark.parametrize(
    ("cores", "partitions"), [(1, 256), (3, 258), (16, 256), (32, 512), (1_000, 16_000)]
)
def test_auto_has_enough_partitions_to_move(cores: int, partitions: int) -> None:
    assert Auto().table(cores).partitions == partitions
