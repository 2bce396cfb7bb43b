"""Plain hashing and the default policy: even tables, and messages that say what is taken."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skewless.errors import SkewlessError
from skewless.planning.auto import Auto
from skewless.planning.hash import Hash
from skewless.planning.policy import Policy
from skewless.routing.partitions import MAX_PARTITIONS, PartitionTable


def sizes(table: PartitionTable) -> list[int]:
    counts = [0] * table.instances
    for instance in table.assignment:
        counts[instance] += 1
    return counts


@given(instances=st.integers(1, 2_000), cores=st.integers(1, 64))
def test_every_instance_owns_equally_many_partitions(instances: int, cores: int) -> None:
    table = Hash(instances).table(cores)
    assert table.instances == instances
    assert len(set(sizes(table))) == 1
    assert table.partitions >= 256


@pytest.mark.parametrize("instances", [32_769, 65_535, MAX_PARTITIONS])
def test_as_many_instances_as_partitions_can_be(instances: int) -> None:
    table = Hash(instances).table(cores=4)
    assert table.instances == instances
    assert set(table.assignment) == set(range(instances))


@pytest.mark.parametrize("instances", [0, -1, MAX_PARTITIONS + 1, 2.0, "4", (1, 2), True])
def test_a_wrong_number_of_instances_is_refused(instances: Any) -> None:
    with pytest.raises(SkewlessError) as refusal:
        Hash(instances)
    assert str(refusal.value) == (
        f"instances: got {instances!r}; takes a whole number from 1 to 65,536"
    )


@pytest.mark.parametrize(("cores", "instances"), [(0, 1), (1, 1), (2, 2), (48, 48)])
def test_auto_uses_one_instance_per_core(cores: int, instances: int) -> None:
    assert Auto().table(cores).instances == instances


def test_policies_are_told_apart_by_their_descriptions() -> None:
    policies: list[Policy] = [Hash(1), Hash(2), Auto()]
    descriptions = [policy.describe() for policy in policies]
    assert descriptions == [
        {"policy": "Hash", "instances": 1},
        {"policy": "Hash", "instances": 2},
        {
            "policy": "Auto",
            "instances": None,
            "threshold": 0.1,
            "max_moves": None,
            "split": True,
            "every": 1,
            "busy_ms": 1000.0,
        },
    ]
