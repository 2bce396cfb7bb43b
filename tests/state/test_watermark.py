"""Watermarks: the minimum over the sides, never falling, unset until every side has data."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skewless.state.watermark import Delays

Delay = int | None


@pytest.mark.parametrize(
    ("delays", "seen", "previous", "watermark"),
    [
        # the minimum over the sides
        ((0, 0), (100, 98), None, 98),
        ((5, 0), (100, 98), None, 95),
        ((5, 0), (100, 94), None, 94),
        # unset until every side has data
        ((0, 0), (None, None), None, None),
        ((0, 0), (100, None), None, None),
        ((0, 0), (None, 100), None, None),
        # never falls
        ((0, 0), (100, 50), 60, 60),
        ((0, 0), (100, 70), 60, 70),
        ((50, 50), (100, 100), 60, 60),
        ((0, 0), (100, None), 60, 60),
        # a side without a delay is never late and holds nothing back
        ((None, 3), (None, 100), None, 97),
        ((3, None), (100, 5), None, 97),
        ((3, None), (None, 100), None, None),
        ((None, None), (100, 100), None, None),
        ((None, None), (100, 100), 60, 60),
        # before 1970
        ((5, 5), (-100, -200), None, -205),
    ],
)
def test_watermark(
    delays: tuple[Delay, Delay],
    seen: tuple[Delay, Delay],
    previous: Delay,
    watermark: Delay,
) -> None:
    sides = ("left", "right")
    rule = Delays(dict(zip(sides, delays, strict=True)))
    assert rule.watermark(dict(zip(sides, seen, strict=True)), previous) == watermark


TIMES = st.none() | st.integers(-100, 100)


@given(
    delays=st.tuples(*[st.none() | st.integers(0, 20)] * 2),
    batches=st.lists(st.tuples(TIMES, TIMES), max_size=12),
)
def test_from_batch_to_batch(
    delays: tuple[Delay, Delay], batches: list[tuple[Delay, Delay]]
) -> None:
    rule = Delays({"left": delays[0], "right": delays[1]})
    seen: dict[str, int | None] = {"left": None, "right": None}
    previous: int | None = None
    for batch in batches:
        for side, time in zip(seen, batch, strict=True):
            seen[side] = max((t for t in (seen[side], time) if t is not None), default=None)
        now = rule.watermark(seen, previous)
        late_sides = [s for s, d in rule.by_side.items() if d is not None]
        if not late_sides or any(seen[s] is None for s in late_sides):
            assert now is None
        else:
            assert now == min((seen[s] or 0) - (rule.by_side[s] or 0) for s in late_sides)
        if previous is not None:
            assert now is not None
            assert now >= previous
        previous = now
