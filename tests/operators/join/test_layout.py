"""Slots: columns of both sides share what they can, and nothing collides."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from skewless.operators.join.layout import Layout
from skewless.operators.slots import assign_slots

TYPES = st.lists(st.sampled_from(["bigint", "string", "double", "array<int>"]), max_size=12)


@given(left=TYPES, right=TYPES)
def test_slots(left: list[str], right: list[str]) -> None:
    left_slots, right_slots = assign_slots(left, right)
    assert (len(left_slots), len(right_slots)) == (len(left), len(right))
    # No side uses a slot twice.
    assert len(set(left_slots)) == len(left_slots)
    assert len(set(right_slots)) == len(right_slots)
    # Every column has a slot of its own type, whichever side uses it.
    kind_of: dict[int, str] = {}
    for slot, kind in [*zip(left_slots, left, strict=True), *zip(right_slots, right, strict=True)]:
        assert kind_of.setdefault(slot, kind) == kind
    # As few slots as the wider side needs of each type, numbered without gaps.
    wider = Counter(left) | Counter(right)
    assert sorted(kind_of) == list(range(wider.total()))
    assert Counter(kind_of.values()) == wider


def test_a_side_stores_its_time_its_keys_and_its_own_slots() -> None:
    layout = Layout(2, ("p0", "p1"), ("p0", "p2"), (), hash_is_key=False)
    assert layout.stored_columns("left") == ("t", "k0", "k1", "p0", "p1")
    assert layout.stored_columns("right") == ("t", "k0", "k1", "p0", "p2")
