"""More and fewer instances: what can stay does, and every partition keeps a place."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skewless.errors import SkewlessError
from skewless.routing.partitions import PartitionTable, round_robin
from skewless.routing.resize import resized_splits, resized_table
from skewless.routing.splits import Split


@given(old=st.integers(1, 20), new=st.integers(1, 20), partitions=st.integers(20, 80))
def test_what_can_stay_does_and_everyone_has_a_share(old: int, new: int, partitions: int) -> None:
    before = round_robin(old, partitions)
    after = resized_table(before, new)
    assert after.instances == new
    assert after.partitions == partitions
    for was, now in zip(before.assignment, after.assignment, strict=True):
        if now != was:
            assert was >= new or now >= old, "moved only off those that go, or to those that come"
    counts = [after.assignment.count(i) for i in range(new)]
    assert min(counts) >= partitions // new
    assert max(counts) <= -(-partitions // min(old, new))


def test_what_is_left_behind_is_dealt_to_those_with_the_fewest() -> None:
    assert resized_table(PartitionTable(3, (0, 0, 0, 1, 2, 2)), 2).assignment == (0, 0, 0, 1, 1, 1)


def test_a_split_loses_members_and_ends_with_fewer_than_two() -> None:
    wide, narrow = Split(1, 0, (0, 1, 3), lines=1), Split(2, 0, (1, 3), lines=2)
    assert resized_splits((wide, narrow), 3) == (Split(1, 0, (0, 1), lines=1),)


@pytest.mark.parametrize(
    ("before", "lines", "after", "likest"),
    [(16, 4, 9, 3), (16, 4, 12, 3), (12, 3, 7, 1), (6, 6, 5, 5), (6, 1, 5, 1), (16, 8, 8, 4)],
)
def test_a_smaller_grid_is_as_much_like_the_larger_as_it_can_be(
    before: int, lines: int, after: int, likest: int
) -> None:
    (split,) = resized_splits((Split(1, 0, tuple(range(before)), lines),), after)
    assert (len(split.members), split.lines) == (after, likest)


@pytest.mark.parametrize("instances", [0, 5])
def test_a_number_that_no_table_can_have_is_refused(instances: int) -> None:
    with pytest.raises(SkewlessError, match="a number from 1 to 4"):
        resized_table(round_robin(2, 4), instances)
