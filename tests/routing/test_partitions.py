"""The routing contract: every hash to exactly one instance, rising with the hash."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skewless.errors import SkewlessError
from skewless.routing.partitions import (
    MAX_PARTITIONS,
    PartitionTable,
    as_flags,
    packed,
    partition_of,
    round_robin,
    unpacked,
)

TOP = 2**64 - 1
HASHES = st.lists(st.sampled_from([0, 1, 2**33 - 1, 2**63, TOP]) | st.integers(0, TOP), min_size=1)
PARTITIONS = st.integers(1, 1_000) | st.sampled_from([2**12, 65_535, MAX_PARTITIONS])


@given(hashes=HASHES, partitions=PARTITIONS)
def test_a_partition_is_the_hash_scaled_down(hashes: list[int], partitions: int) -> None:
    got = partition_of(np.array(hashes, np.uint64), partitions).tolist()
    # The definition in whole numbers without any overflow.
    assert got == [(h >> 33) * partitions >> 31 for h in hashes]
    assert all(0 <= p < partitions for p in got)


@given(hashes=HASHES, partitions=PARTITIONS)
def test_rows_sorted_by_hash_are_sorted_by_partition(hashes: list[int], partitions: int) -> None:
    got = partition_of(np.array(sorted(hashes), np.uint64), partitions)
    assert (np.diff(got) >= 0).all()


@pytest.mark.parametrize("partitions", [1, 2, 3, 7, 256, 1_000, MAX_PARTITIONS])
def test_the_ends_of_the_hash_range_reach_the_first_and_the_last_partition(partitions: int) -> None:
    ends = partition_of(np.array([0, TOP], np.uint64), partitions).tolist()
    assert ends == [0, partitions - 1]


@pytest.mark.parametrize("partitions", [3, 7, 100, 256, 257])
def test_partitions_are_of_equal_size(partitions: int) -> None:
    hashes = np.random.default_rng(3).integers(0, 2**64, 100_000, dtype=np.uint64)
    counts = np.bincount(partition_of(hashes, partitions), minlength=partitions)
    expected = 100_000 / partitions
    assert abs(counts - expected).max() < 6 * np.sqrt(expected)


@st.composite
def tables(draw: st.DrawFn) -> PartitionTable:
    instances = draw(st.integers(1, 20))
    assignment = draw(st.lists(st.integers(0, instances - 1), min_size=1, max_size=80))
    return PartitionTable(instances, tuple(assignment))


@given(table=tables(), hashes=HASHES)
def test_every_hash_goes_to_the_one_instance_that_owns_its_partition(
    table: PartitionTable, hashes: list[int]
) -> None:
    array = np.array(hashes, np.uint64)
    routed = table.route(array).tolist()
    assert len(routed) == len(hashes)
    for partition, instance in zip(partition_of(array, table.partitions), routed, strict=True):
        owners = [i for i in range(table.instances) if partition in table.partitions_of(i)]
        assert owners == [instance]


@given(table=tables())
def test_the_instances_share_the_partitions_out(table: PartitionTable) -> None:
    owned = [p for i in range(table.instances) for p in table.partitions_of(i)]
    assert sorted(owned) == list(range(table.partitions))


@pytest.mark.parametrize(
    ("instances", "assignment", "named"),
    [
        (0, (0,), "instances: got 0"),
        (-1, (0,), "instances: got -1"),
        (2, (), "partitions: got 0"),
        (2, (0, 2), "assignment: got 2; takes instances from 0 to 1"),
        (2, (0, -1), "assignment: got -1"),
        (1, (0,) * (MAX_PARTITIONS + 1), "partitions: got 65537; takes between 1 and 65,536"),
    ],
)
def test_a_table_that_breaks_the_contract_is_refused(
    instances: int, assignment: tuple[int, ...], named: str
) -> None:
    with pytest.raises(SkewlessError) as refusal:
        PartitionTable(instances, assignment)
    assert named in str(refusal.value)


@pytest.mark.parametrize(("instances", "partitions"), [(1, 1), (3, 8), (4, 4), (5, 3)])
def test_round_robin_differs_by_at_most_one_partition(instances: int, partitions: int) -> None:
    table = round_robin(instances, partitions)
    sizes = [len(table.partitions_of(i)) for i in range(instances)]
    assert sum(sizes) == partitions
    assert max(sizes) - min(sizes) <= 1


@given(st.frozensets(st.integers(0, 300)))
def test_what_is_packed_comes_back_in_order(present: frozenset[int]) -> None:
    assert unpacked(packed(present)).tolist() == sorted(present)
    assert packed(sorted(present, reverse=True)) == packed(present)
    assert set(np.flatnonzero(as_flags(present, 301)).tolist()) == present


def test_a_packed_partition_takes_two_bytes() -> None:
    assert len(packed(np.array([0, 4, MAX_PARTITIONS - 1]))) == 6
