"""Every planner: its plans are valid, the table limit holds, and each is what it is said to be."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skewless.planning.keys.ideal import ideal_loads
from skewless.planning.keys.llfd import llfd
from skewless.planning.keys.minmig import min_mig
from skewless.planning.keys.mintable import min_table
from skewless.planning.keys.mixed import mixed
from skewless.planning.keys.pkg import partial_key_grouping, second_choice
from skewless.planning.keys.plan import KeyPlan, placement, validate_keys
from skewless.planning.keys.readj import readj
from skewless.planning.keys.snapshot import GONE, KeySnapshot
from tests.planning.keys.cases import placed, snapshot, snapshots, worked_example, zipf

LIMIT = 5
Planner = Callable[[KeySnapshot, float], KeyPlan]
# With the table limit that each of them keeps.
PLANNERS: dict[str, tuple[Planner, int | None]] = {
    "llfd": (llfd, None),
    "min_table": (lambda s, t: min_table(s, t, table_limit=LIMIT), LIMIT),
    "min_table compact": (lambda s, t: min_table(s, t, table_limit=LIMIT, compact=4), LIMIT),
    "min_mig": (min_mig, None),
    "min_mig compact": (lambda s, t: min_mig(s, t, compact=1), None),
    "mixed": (lambda s, t: mixed(s, t, table_limit=LIMIT), LIMIT),
    "mixed compact": (lambda s, t: mixed(s, t, table_limit=LIMIT, compact=8), LIMIT),
    "mixed_bf": (lambda s, t: mixed(s, t, table_limit=LIMIT, brute_force=True), LIMIT),
    "readj": (lambda s, t: readj(s, t, table_limit=LIMIT), LIMIT),
    "pkg": (partial_key_grouping, None),
}


def after(of: KeySnapshot, plan: KeyPlan, **changed: np.ndarray) -> KeySnapshot:
    """The next snapshot: the same load, with the plan enacted."""
    return replace(of, current=placement(plan, of), **changed)


@pytest.mark.parametrize("name", PLANNERS)
@given(of=snapshots(), theta_max=st.sampled_from([0.0, 0.02, 0.3]))
def test_every_plan_is_valid(name: str, of: KeySnapshot, theta_max: float) -> None:
    planner, limit = PLANNERS[name]
    plan = planner(of, theta_max)
    validate_keys(plan, of, limit)
    if not plan.does_nothing and limit is not None and of.table_size <= limit:
        assert plan.table_size <= limit
    assert np.isin(of.hashes[of.current == GONE], plan.moved).all() or plan.combinable


@pytest.mark.parametrize("name", [n for n in PLANNERS if n != "pkg"])
@given(of=snapshots())
def test_a_load_that_stays_is_at_rest_after_a_few_rounds(name: str, of: KeySnapshot) -> None:
    planner, _ = PLANNERS[name]
    for _ in range(20):
        plan = planner(of, 0.05)
        if plan.does_nothing:
            return
        of = after(of, plan)
    pytest.fail("still moving after 20 rounds of the same load")


def test_the_papers_example_of_min_table() -> None:
    example = worked_example()
    plan = min_table(example, 0.0)
    assert placed(plan, example) == [[1, 3, 4], [2, 5, 6]]
    assert plan.hashes.tolist() == [2, 4]
    assert plan.instances.tolist() == [1, 0]
    assert plan.skewness_after == 0


def test_min_mig_prefers_what_stores_little() -> None:
    # Equal costs; the state of key 1 is ten times that of the others.
    of = snapshot([4, 4, 4, 4], home=[0, 0, 0, 0], state=[40, 4, 4, 4])
    plan = min_mig(of, 0.0)
    assert 1 not in plan.moved.tolist()
    assert plan.migration == 8
    assert plan.skewness_after == 0


def test_min_mig_never_moves_more_than_min_table() -> None:
    of = zipf(5_000, 10, away=0.3, window=5)
    assert min_mig(of, 0.08).migration < min_table(of, 0.08).migration / 2
    assert min_table(of, 0.08).table_size < min_mig(of, 0.08).table_size / 2


@pytest.mark.parametrize("seed", range(5))
def test_mixed_is_min_mig_while_the_table_fits(seed: int) -> None:
    of = zipf(3_000, 8, seed=seed, away=0.1, window=5)
    free = min_mig(of, 0.08)
    same = mixed(of, 0.08, table_limit=of.keys)
    assert same.hashes.tolist() == free.hashes.tolist()
    assert same.instances.tolist() == free.instances.tolist()


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("limit", [60, 150, 300])
def test_mixed_holds_the_table_between_its_two_parents(seed: int, limit: int) -> None:
    of = zipf(3_000, 8, seed=seed, away=0.1, window=5)
    plan = mixed(of, 0.08, table_limit=limit)
    validate_keys(plan, of, limit)
    assert plan.table_size <= limit
    assert of.loads_of(placement(plan, of)).max() <= 1.08 * of.mean * (1 + 1e-9)
    assert plan.migration <= min_table(of, 0.08).migration


@pytest.mark.parametrize("seed", range(5))
def test_brute_force_moves_no_more_than_mixed(seed: int) -> None:
    of = zipf(1_000, 5, seed=seed, away=0.15, window=5)
    quick = mixed(of, 0.08, table_limit=60)
    best = mixed(of, 0.08, table_limit=60, brute_force=True)
    assert best.skewness_after <= 0.08 + 1e-9
    assert best.table_size <= 60
    assert best.migration <= quick.migration


@pytest.mark.parametrize("name", ["llfd", "min_table", "min_mig", "mixed"])
def test_an_added_instance_is_filled_in_one_round(name: str) -> None:
    unlimited: dict[str, Planner] = {
        "llfd": llfd,
        "min_table": min_table,
        "min_mig": min_mig,
        "mixed": lambda s, t: mixed(s, t, table_limit=s.keys),
    }
    # With 40 others none of them is above 1.08 times the mean because of it.
    of = zipf(50_000, 40, exponent=0.3)
    even = after(of, llfd(of, 0.02))
    more = replace(even, rest=np.zeros(41))
    plan = unlimited[name](more, 0.08)
    validate_keys(plan, more)
    loads = more.loads_of(placement(plan, more))
    assert loads[40] >= (1 - 0.08) * more.mean
    assert plan.skewness_after <= 0.08 + 1e-9


@pytest.mark.parametrize("name", [n for n in PLANNERS if n != "pkg"])
def test_a_removed_instance_is_emptied(name: str) -> None:
    planner, _ = PLANNERS[name]
    of = zipf(5_000, 4, exponent=0.5, window=5)
    # The last instance is gone: the hash sends its keys elsewhere, their state is nowhere.
    lost = of.home == 3
    rng = np.random.default_rng(1)
    fewer = replace(
        of,
        home=np.where(lost, rng.integers(0, 3, of.keys), of.home),
        current=np.where(lost, GONE, of.current),
        rest=np.zeros(3),
    )
    plan = planner(fewer, 0.08)
    validate_keys(plan, fewer)
    assert np.isin(of.hashes[lost], plan.moved).all()
    assert plan.migration >= of.state[lost].sum()
    assert plan.skewness_after <= max(0.08, fewer.skewness) + 1e-9


def test_readj_swaps_where_no_single_move_helps() -> None:
    of = snapshot([6, 5, 3, 4], home=[0, 0, 1, 1])
    plan = readj(of, 0.0)
    assert plan.moved.size == 2
    assert plan.skewness_after == 0


def test_readj_sends_keys_home_where_they_fit() -> None:
    of = snapshot([1, 9, 9, 6, 4], home=[0, 0, 1, 2, 2], current=[2, 0, 1, 2, 2], rest=[0] * 3)
    plan = readj(of, 0.0)
    assert 1 in plan.moved.tolist()
    assert 1 not in plan.hashes.tolist()


def test_two_choices_share_a_key_that_no_instance_can_hold() -> None:
    of = snapshot([10, 1, 1], home=[0, 0, 1])
    plan = partial_key_grouping(of, 0.0)
    validate_keys(plan, of)
    assert plan.hashes.tolist()[0] == 1
    assert {int(plan.instances[0]), int(plan.seconds[0])} == {0, 1}
    assert plan.skewness_after < plan.skewness_before
    assert plan.migration == 0
    assert plan.does_nothing


def test_a_second_choice_is_never_the_first() -> None:
    hashes = np.random.default_rng(1).integers(0, 2**64, 10_000, dtype=np.uint64)
    home = np.random.default_rng(2).integers(0, 7, 10_000)
    second = second_choice(hashes, home, 7)
    assert (second != home).all()
    assert np.bincount((second - home) % 7, minlength=7)[1:].min() > 1_400
    assert second_choice(hashes[:3], np.zeros(3, np.int64), 1).tolist() == [-1, -1, -1]


def test_two_choices_bring_down_the_straggler() -> None:
    of = zipf(20_000, 10)
    plan = partial_key_grouping(of, 0.02)
    validate_keys(plan, of)
    assert plan.skewness_after < of.skewness / 3


def test_the_ideal_is_the_mean() -> None:
    assert ideal_loads(worked_example()).tolist() == [10, 10]
