"""Auto: what makes it act, what makes it wait, and the life of a split."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from skewless.lab.bench.planning import ModelCluster
from skewless.planning.auto import Auto
from skewless.planning.partitions.hotkeys import PATIENCE
from skewless.planning.plan import Plan, validate
from skewless.planning.snapshot import HotKey, Snapshot
from skewless.routing.partitions import PartitionTable, round_robin

from .cases import key_in, layout, planned, snapshot


def plans(policy: Auto, case: Snapshot, rounds: int) -> list[Plan]:
    """The plans of some rounds in which the load stays as it is."""
    state: dict[str, Any] = {}
    made = []
    for _ in range(rounds):
        plan, state = planned(policy, case, state)
        validate(plan, case)
        made.append(plan)
        case = replace(case, table=plan.table, splits=plan.splits)
    return made


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("even", [[1, 1], [1, 1]], [[1, 1], [1, 1]]),
        ("the straggler gives", [[2, 2, 2, 2], []], [[2, 2], [2, 2]]),
        ("as even as can be", [[3, 3, 3], []], [[3, 3], [3]]),
        ("a giant is left alone", [[9], [1, 1], [1]], [[9], [1, 1], [1]]),
    ],
)
def test_balancing(name: str, before: list[list[float]], after: list[list[float]]) -> None:
    case = snapshot(before)
    assert layout(plans(Auto(len(before), max_moves=10), case, 2)[-1], case.load) == after


def test_the_third_pass_moves_nothing() -> None:
    rng = np.random.default_rng(3)
    load = rng.pareto(2.0, 256)
    made = plans(Auto(8), Snapshot(round_robin(8, 256), load, load, load), 5)
    assert sum(len(plan.moves) for plan in made[:2]) > 0
    assert [len(plan.moves) for plan in made[2:]] == [0, 0, 0]


def test_a_small_excess_has_to_be_seen_twice_in_the_same_place() -> None:
    one = snapshot([[1.0] * 12, [1.0] * 10])
    other = snapshot([[1.0] * 10, [1.0] * 12])
    policy = Auto(2, threshold=0.05)
    first, state = planned(policy, one, {})
    assert first.does_nothing
    assert "waits a round" in first.reason
    elsewhere, _ = planned(policy, other, state)
    assert elsewhere.does_nothing
    again, _ = planned(policy, one, state)
    assert len(again.moves) == 1


def test_a_large_excess_is_acted_on_at_once() -> None:
    case = snapshot([[1.0] * 20, [1.0] * 4])
    plan, _ = planned(Auto(2), case, {})
    assert len(plan.moves) == 6  # a quarter of 24
    assert plan.imbalance_after < plan.imbalance_before


def test_no_round_moves_more_than_the_cap() -> None:
    made = plans(Auto(2, max_moves=3), snapshot([[1.0] * 20, []]), 6)
    assert [len(plan.moves) for plan in made] == [3, 3, 3, 0, 0, 0]  # 11 to 9 is within 10 %


def hot(load: float, rest: float = 1.0, partitions: int = 16, instances: int = 4) -> Snapshot:
    loads = np.full(partitions, rest)
    loads[0] += load
    keys = () if load <= 0 else (key_in(0, partitions, load, left=30, right=900),)
    return Snapshot(round_robin(instances, partitions), loads, loads, 1_000 * loads, keys)


def test_a_key_hotter_than_an_instance_is_split_and_the_rest_balanced_around_it() -> None:
    case = hot(40.0)
    plan, _ = planned(Auto(4), case, {})
    validate(plan, case)
    (split,) = plan.splits
    assert split.members == (0, 1, 2, 3)
    assert split.lines == 1, "the left side has fewer rows"
    assert plan.imbalance_after < 0.05 < plan.imbalance_before
    assert "hot keys split: 1" in plan.reason


def test_only_as_many_members_as_it_takes() -> None:
    (split,) = plans(Auto(16), hot(9.0, partitions=64, instances=16), 1)[0].splits
    assert 2 <= len(split.members) < 16


def wide(load: float, left: int, right: int, instances: int = 16) -> Snapshot:
    """A key that takes nearly all there is, on many instances."""
    loads = np.full(64, 1.0)
    loads[0] += load
    keys = (key_in(0, 64, load, left, right),)
    return Snapshot(round_robin(instances, 64), loads, loads, 1_000 * loads, keys)


@pytest.mark.parametrize(
    ("left", "right", "lines"),
    [
        (9_000, 9_000, 4),
        (9_000, 8_000, 4),
        (1_000, 9_000, 1),
        (9_000, 1_000, 16),
        (9_000, 3_000, 8),
    ],
)
def test_the_grid_of_a_split_has_as_few_replicas_as_can_be(left, right, lines) -> None:
    (split,) = plans(Auto(16), wide(900.0, left, right), 1)[0].splits
    assert (len(split.members), split.lines) == (16, lines)


def test_more_members_than_wanted_are_taken_for_a_squarer_grid() -> None:
    counts = {
        len(split.members)
        for load in range(10, 60)
        for split in plans(Auto(16), wide(float(load), 900, 900), 1)[0].splits
    }
    assert counts <= {2, 3, 4, 6, 8, 9, 10, 12, 15, 16}, "5, 7, 11, 13 and 14 are one more"
    assert len(counts) > 3


def test_a_grid_stays_until_another_needs_half_the_replicas() -> None:
    policy = Auto(16)
    first, state = planned(policy, wide(900.0, 9_000, 9_000), {})
    for left, right, lines in ((9_000, 3_000, 4), (9_000, 900, 16), (9_000, 4_000, 16)):
        case = replace(wide(900.0, left, right), splits=first.splits)
        first, state = planned(policy, case, state)
        assert [s.lines for s in first.splits] == [lines], (left, right)


def test_no_split_if_told_so() -> None:
    case = hot(40.0)
    assert all(plan.splits == () for plan in plans(Auto(4, split=False), case, 3))
    split = plans(Auto(4), case, 1)[0].splits
    folded, _ = planned(Auto(4, split=False), replace(case, splits=split), {})
    assert folded.splits == ()


def test_a_split_stays_while_the_key_is_warm_and_is_folded_when_it_has_cooled() -> None:
    policy = Auto(4)
    first, state = planned(policy, hot(40.0), {})
    split = first.splits
    for load in (30.0, 5.0, 3.0):  # above the lower limit, in the end below the upper one
        plan, state = planned(policy, replace(hot(load), splits=split), state)
        assert {s.hash for s in plan.splits} == {s.hash for s in split}, load
        split = plan.splits
    for _ in range(PATIENCE - 1):
        plan, state = planned(policy, replace(hot(0.5), splits=split), state)
        assert plan.splits
        split = plan.splits
    plan, state = planned(policy, replace(hot(0.5), splits=split), state)
    validate(plan, replace(hot(0.5), splits=split))
    assert plan.splits == ()
    assert "folded back" in plan.reason
    plan, _ = planned(policy, hot(0.5), state)
    assert plan.splits == ()


def test_a_key_that_warms_up_again_starts_its_patience_anew() -> None:
    policy = Auto(4)
    first, state = planned(policy, hot(40.0), {})
    case = replace(hot(0.0), splits=first.splits)  # unreported: no load
    _, state = planned(policy, case, state)
    _, state = planned(policy, replace(hot(40.0), splits=first.splits), state)
    plan, _ = planned(policy, case, state)
    assert plan.splits


def test_members_of_a_split_stay_when_the_load_changes_a_little() -> None:
    policy = Auto(16)
    first, state = planned(policy, hot(9.0, partitions=64, instances=16), {})
    case = replace(hot(8.0, partitions=64, instances=16), splits=first.splits)
    plan, _ = planned(policy, case, state)
    assert plan.splits[0].members == first.splits[0].members


def test_a_key_of_which_both_sides_are_all_rows_is_not_spread_without_end() -> None:
    # Rows cost all there is and matches nothing: replicas eat up what members take off.
    rows = np.full(256, 100.0)
    rows[0] += 4_000
    key = HotKey(key_in(0, 256, 1.0).hash, 0, 4_000.0, 2_000, 2_000)
    case = Snapshot(round_robin(64, 256), rows, rows, rows, (key,))
    (split,) = plans(Auto(64), case, 1)[0].splits
    assert (len(split.members), split.lines) == (6, 2)


def test_the_keys_of_a_partition_too_heavy_for_an_instance_are_split_earlier() -> None:
    loads = np.full(64, 1.0)
    loads[0] = 8.0
    table = round_robin(16, 64)  # a mean of about 4.4
    hashes = key_in(0, 64, 0.0).hash
    keys = tuple(HotKey(hashes + i, 0, 2.5, 5, 5) for i in range(3))
    plan, _ = planned(Auto(16), Snapshot(table, loads, loads, loads * 100, keys), {})
    assert len(plan.splits) >= 1
    one = tuple(HotKey(hashes + i, 0, 2.5, 5, 5) for i in range(1))
    loads[0] = 3.0
    plan, _ = planned(Auto(16), Snapshot(table, loads, loads, loads * 100, one), {})
    assert plan.splits == ()


@pytest.mark.parametrize("instances", [1, 2])
def test_few_instances(instances: int) -> None:
    plan, _ = planned(Auto(instances), hot(60.0, rest=2.5, instances=instances), {})
    assert len(plan.splits) == instances - 1


@pytest.mark.parametrize(("exponent", "match_cost"), [(1.0, 0.1), (1.0, 0.02), (0.8, 0.02)])
def test_zipf_is_even_after_five_batches_and_again_three_after_a_jump(
    exponent: float, match_cost: float
) -> None:
    cluster = ModelCluster(exponent, match_cost, noise=0.02, seed=11)
    overloads = [cluster.step(Auto(16))[1] for _ in range(6)]
    assert overloads[5] <= 0.15 < overloads[0]
    cluster.jump()
    assert [cluster.step(Auto(16))[1] for _ in range(4)][-1] <= 0.15


def test_a_table_of_one_partition_per_instance_has_nothing_to_move() -> None:
    case = Snapshot(PartitionTable(2, (0, 1)), *(np.array([9.0, 1.0]),) * 3)
    assert all(plan.does_nothing for plan in plans(Auto(2), case, 3))
