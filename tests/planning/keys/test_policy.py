"""The policies: when they plan, what they remember, and that they come to rest."""

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from skewless.errors import SkewlessError
from skewless.planning.keys.plan import placement, validate_keys
from skewless.planning.keys.policy import KeyTablePolicy
from skewless.planning.keys.snapshot import KeySnapshot
from skewless.planning.minmig import MinMig
from skewless.planning.mintable import MinTable
from skewless.planning.mixed import Mixed
from skewless.planning.pkg import PKG
from skewless.planning.readj import Readj
from tests.planning.keys.cases import snapshot, zipf

POLICIES: list[KeyTablePolicy] = [
    Mixed(instances=8),
    Mixed(instances=8, compact=8),
    MinTable(instances=8),
    MinMig(instances=8),
    Readj(instances=8),
    PKG(instances=8),
]
NAMES = ["Mixed", "Mixed compact", "MinTable", "MinMig", "Readj", "PKG"]
MOVING = [p for p in POLICIES if not p.needs_combinable]


@pytest.mark.parametrize("policy", POLICIES, ids=NAMES)
def test_a_policy_is_described_and_remembers_in_json(policy: KeyTablePolicy) -> None:
    described = policy.describe()
    assert described["policy"] == type(policy).__name__
    assert described["instances"] == 8
    assert json.loads(json.dumps(described)) == described
    state: dict[str, Any] = {}
    for seed in range(3):
        of = zipf(2_000, 8, seed=seed)
        plan, state = policy.plan_keys(of, state)
        assert json.loads(json.dumps(state)) == state
        validate_keys(plan, of, described.get("table_limit"))
        assert plan.reason


@pytest.mark.parametrize("policy", POLICIES, ids=NAMES)
def test_the_same_snapshot_gives_the_same_plan(policy: KeyTablePolicy) -> None:
    of = zipf(2_000, 8)
    one, two = policy.plan_keys(of, {})[0], policy.plan_keys(of, {})[0]
    assert one.hashes.tolist() == two.hashes.tolist()
    assert one.instances.tolist() == two.instances.tolist()
    assert one.skewness_after < one.skewness_before


@pytest.mark.parametrize("policy", POLICIES, ids=NAMES)
def test_homes_are_those_of_plain_hashing(policy: KeyTablePolicy) -> None:
    assert policy.table(cores=2).instances == 8
    assert policy.table(cores=2).partitions == 256
    assert MinMig().table(cores=3).partitions == 258
    assert policy.every == 1


@pytest.mark.parametrize("policy", POLICIES, ids=NAMES)
def test_idle_instances_are_left_alone(policy: KeyTablePolicy) -> None:
    plan, _ = policy.plan_keys(snapshot([0.0, 0.0], home=[0, 1]), {})
    assert plan.does_nothing
    assert plan.table_size == 0


def test_a_small_excess_has_to_be_seen_twice() -> None:
    of = snapshot([1.0] * 56 + [1.0] * 44, home=[0] * 56 + [1] * 44)
    policy = Mixed(instances=2)
    first, state = policy.plan_keys(of, {})
    assert first.does_nothing
    assert "waits a round" in first.reason
    second, _ = policy.plan_keys(of, state)
    assert not second.does_nothing
    assert second.skewness_after <= 0.04


def test_a_large_excess_is_acted_on_at_once() -> None:
    of = snapshot([1.0] * 80 + [1.0] * 20, home=[0] * 80 + [1] * 20)
    assert not Mixed(instances=2).plan_keys(of, {})[0].does_nothing


def test_a_key_that_no_instance_can_hold_calls_for_one_plan_only() -> None:
    of = snapshot([50.0] + [1.0] * 30, home=[0] * 11 + [1] * 10 + [2] * 10, rest=[0, 0, 0])
    policy = Mixed(instances=3)
    plan, state = policy.plan_keys(of, {})
    assert not plan.does_nothing
    settled = replace(of, current=placement(plan, of))
    plan, state = policy.plan_keys(settled, state)
    assert plan.does_nothing
    assert "within 8%" in plan.reason


def test_a_table_limit_that_was_lowered_is_met() -> None:
    of = zipf(2_000, 8)
    plan, _ = Mixed(instances=8).plan_keys(of, {})
    assert plan.table_size > 4
    settled = replace(of, current=placement(plan, of))
    smaller, _ = Mixed(instances=8, table_limit=4).plan_keys(settled, {})
    assert smaller.table_size <= 4
    validate_keys(smaller, settled, 4)


@pytest.mark.parametrize("policy", MOVING, ids=[n for n in NAMES if n != "PKG"])
@pytest.mark.parametrize("seed", [3, 4])
def test_no_ping_pong_under_a_stationary_noisy_load(policy: KeyTablePolicy, seed: int) -> None:
    """The same keys with the same rates; counts vary by chance, and every instance's clock errs by
    2 %, a quarter of the threshold."""
    rng = np.random.default_rng(seed)
    rates = zipf(5_000, 8)
    state: dict[str, Any] = {}
    current, moves = rates.home, []
    for _ in range(40):
        error = np.exp(rng.normal(0, 0.02, 8))[current]
        cost = rng.poisson(20 * rates.cost) / 20 * error
        seen = KeySnapshot(
            rates.hashes, cost, rates.state, rates.home, current, np.zeros(rates.instances)
        )
        plan, state = policy.plan_keys(seen, state)
        moves.append(plan.migration / rates.state.sum())
        current = placement(plan, seen)
    assert moves[0] > 0.01
    assert max(moves[3:]) == 0
    true = replace(rates, current=current)
    assert true.skewness < (0.08 if type(policy) is not Readj else 0.2)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Mixed(instances=0), "instances: got 0"),
        (lambda: Mixed(threshold=0), "threshold: got 0; takes a number above 0"),
        (lambda: Mixed(table_limit=-1), "table_limit: got -1"),
        (lambda: Mixed(beta=0), "beta: got 0"),
        (lambda: Mixed(compact=3), "compact: got 3; takes a power of two"),
        (lambda: Mixed(brute_force=1), "brute_force: got 1; takes True or False"),
        (lambda: Mixed(every=0), "every: got 0"),
        (lambda: MinTable(compact=True), "compact: got True"),
        (lambda: MinMig(beta=float("nan")), "beta: got nan"),
        (lambda: Readj(table_limit="many"), "table_limit: got 'many'"),
        (lambda: PKG(threshold=-1), "threshold: got -1"),
    ],
)
def test_a_wrong_argument_is_refused(make: Any, says: str) -> None:
    with pytest.raises(SkewlessError) as refusal:
        make()
    assert says in str(refusal.value)


def test_only_partial_key_grouping_needs_what_can_be_combined() -> None:
    assert [p.needs_combinable for p in POLICIES] == [False] * 5 + [True]
