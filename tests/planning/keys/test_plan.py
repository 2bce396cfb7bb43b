"""The check of a key plan: each thing that can be wrong has its own error."""

from dataclasses import replace

import numpy as np
import pytest

from skewless.planning.keys.plan import (
    KeyPlan,
    TableLimitError,
    if_it_pays,
    plan_of,
    stay,
    validate_keys,
)
from skewless.planning.keys.snapshot import GONE
from skewless.planning.plan import MovesError, NoGainError, PlacementError, PlanError, SplitError
from tests.planning.keys.cases import snapshot, worked_example

PLACED = np.array([1, 0, 0, 0, 0, 0])


def plan() -> KeyPlan:
    return plan_of(snapshot([7, 4, 2, 1, 5, 1], home=[0] * 6), PLACED, "test")


def test_a_plan_says_what_moves_and_what_it_costs() -> None:
    made = plan()
    assert made.hashes.tolist() == made.moved.tolist() == [1]
    assert made.instances.tolist() == [1]
    assert made.migration == 7
    assert (made.skewness_before, made.skewness_after) == (1.0, pytest.approx(0.3))
    assert not made.does_nothing
    validate_keys(made, snapshot([7, 4, 2, 1, 5, 1], home=[0] * 6), table_limit=1)


def test_doing_nothing_keeps_the_table_and_is_sound_over_the_limit() -> None:
    example = worked_example()
    made = stay(example, "nothing to do")
    assert made.does_nothing
    assert dict(zip(made.hashes.tolist(), made.instances.tolist(), strict=True)) == {3: 1, 5: 0}
    validate_keys(made, example, table_limit=0)


def test_keys_whose_instance_is_gone_go_home() -> None:
    lost = snapshot([3, 4], home=[1, 0], current=[GONE, 0], state=[30, 40])
    made = stay(lost, "nothing to do")
    assert made.table_size == 0
    assert made.moved.tolist() == [1]
    assert made.migration == 30
    validate_keys(made, lost)


@pytest.mark.parametrize(
    ("changed", "error", "says"),
    [
        ({"hashes": np.array([9], np.uint64)}, PlacementError, "key 0x0000000000000009"),
        ({"instances": np.array([2])}, PlacementError, "instances: got 2; takes 0 to 1"),
        ({"instances": np.array([0])}, PlacementError, "at home"),
        ({"instances": np.array([1, 1])}, PlacementError, "one of each per key"),
        ({"seconds": np.array([0])}, SplitError, "combinable plans only"),
        ({"seconds": np.array([1]), "combinable": True}, SplitError, "the key's first instance"),
        ({"moved": np.array([2], np.uint64)}, MovesError, "moved: got 1 keys"),
        ({"migration": 8.0}, MovesError, "migration: got 8; takes 7"),
    ],
)
def test_what_must_not_be_enacted(
    changed: dict[str, object], error: type[PlanError], says: str
) -> None:
    with pytest.raises(error) as refusal:
        validate_keys(replace(plan(), **changed), snapshot([7, 4, 2, 1, 5, 1], home=[0] * 6))  # type: ignore[arg-type]
    assert says in str(refusal.value)


def test_a_key_is_named_once() -> None:
    twice = replace(
        plan(),
        hashes=np.array([1, 1], np.uint64),
        instances=np.array([1, 1]),
        seconds=np.array([-1, -1]),
    )
    with pytest.raises(PlacementError, match="a key twice"):
        validate_keys(twice, snapshot([7, 4, 2, 1, 5, 1], home=[0] * 6))


def test_the_table_has_a_limit() -> None:
    with pytest.raises(TableLimitError, match="got a table of 1 entries; takes at most 0"):
        validate_keys(plan(), snapshot([7, 4, 2, 1, 5, 1], home=[0] * 6), table_limit=0)


def test_what_moves_must_even_out_the_load() -> None:
    even = snapshot([5, 5], home=[0, 1])
    swapped = plan_of(even, np.array([1, 0]), "for nothing")
    with pytest.raises(NoGainError, match="2 keys move"):
        validate_keys(swapped, even)
    assert if_it_pays(even, np.array([1, 0]), "for nothing").does_nothing


def test_a_table_over_its_limit_may_shrink_at_the_cost_of_balance() -> None:
    away = snapshot([5, 5], home=[0, 0], current=[0, 1])
    made = if_it_pays(away, np.array([0, 0]), "back", table_limit=0)
    assert made.table_size == 0
    assert made.skewness_after > made.skewness_before
    validate_keys(made, away, table_limit=0)
    with pytest.raises(NoGainError):
        validate_keys(made, away, table_limit=1)
