"""More and fewer instances: what can stay does, and every partition keeps a place."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skewless.errors import SkewlessError
from skewless.planning.resize import resized, resized_splits
from skewless.routing.partitions import PartitionTable, round_robin
from skewless.routing.splits import Split


@given(old=st.integers(1, 20), new=st.integers(1, 20), partitions=st.integers(20, 80))
def test_what_can_stay_does_and_everyone_has_a_share(old: int, new: int, partitions: int) -> None:
    before = round_robin(old, partitions)
    after = resized(before, new)
    assert after.instances == new
    assert after.partitions == partitions
    for was, now in zip(before.assignment, after.assignment, strict=True):
        if now != was:
            assert was >= new or now >= old, "moved only off those that go, or to those that come"
    counts = [after.assignment.count(i) for i in range(new)]
    assert min(counts) >= partitions // new
    assert max(counts) <= -(-partitions // min(old, new))


def test_what_is_left_behind_is_dealt_to_those_with_the_fewest() -> None:
    assert resized(PartitionTable(3, (0, 0, 0, 1, 2, 2)), 2).assignment == (0, 0, 0, 1, 1, 1)


def test_a_split_loses_members_and_ends_with_fewer_than_two() -> None:
    wide, narrow = Split(1, 0, (0, 1, 3), "left"), Split(2, 0, (1, 3), "right")
    assert resized_splits((wide, narrow), 3) == (Split(1, 0, (0, 1), "left"),)


@pytest.mark.parametrize("instances", [0, 5])
def test_a_number_that_no_table_can_have_is_refused(instances: int) -> None:
    with pytest.raises(SkewlessError, match="a number from 1 to 4"):
        resized(round_robin(2, 4), instances)
