"""Counts by corners equal brute force, for any window."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skewless.errors import SkewlessError
from skewless.load.corners import CornerCounts

SIDE = 8
CELLS = st.integers(0, SIDE - 1)
ENDS = st.tuples(CELLS, CELLS).map(sorted)
RECTANGLES = st.lists(st.tuples(ENDS, ENDS), max_size=20)


def ends(rectangles: list) -> list[np.ndarray]:
    """top, left, bottom, right"""
    listed = [(rows[0], columns[0], rows[1], columns[1]) for rows, columns in rectangles]
    return list(np.array(listed, np.int64).reshape(-1, 4).T)


def counted(rectangles: list) -> CornerCounts:
    return CornerCounts.of(SIDE, *ends(rectangles))


@given(RECTANGLES, st.lists(st.tuples(ENDS, ENDS), min_size=1, max_size=8))
def test_windows_are_met_as_by_brute_force(rectangles: list, windows: list) -> None:
    top, left, bottom, right = ends(rectangles)
    expected = [
        ((top <= b) & (bottom >= t) & (left <= r) & (right >= lo)).sum()
        for (t, b), (lo, r) in windows
    ]
    assert counted(rectangles).meeting(*ends(windows)).tolist() == expected
    assert counted(rectangles).total == len(rectangles)


@given(RECTANGLES, st.integers(1, SIDE - 1), ENDS)
def test_lines_are_crossed_as_by_brute_force(rectangles: list, at: int, across: list) -> None:
    top, left, bottom, right = ends(rectangles)
    first, last = across
    counts = counted(rectangles)
    rows = (top < at) & (bottom >= at) & (left <= last) & (right >= first)
    assert counts.crossing_rows(at, first, last) == rows.sum()
    columns = (left < at) & (right >= at) & (top <= last) & (bottom >= first)
    assert counts.crossing_columns(at, first, last) == columns.sum()


@given(RECTANGLES, RECTANGLES)
def test_what_comes_is_added_and_what_goes_subtracted(some: list, others: list) -> None:
    both = counted(some) + counted(others)
    assert both == counted(some + others)
    assert both - counted(others) == counted(some)
    assert CornerCounts.empty(SIDE) + both == both


@given(RECTANGLES)
def test_they_survive_json(rectangles: list) -> None:
    counts = counted(rectangles)
    for stored in (counts, CornerCounts.empty(SIDE) - counts):
        assert CornerCounts.from_json(json.loads(json.dumps(stored.to_json()))) == stored


def test_an_empty_map_takes_little_room_in_a_commit() -> None:
    assert len(json.dumps(CornerCounts.empty(256).to_json())) < 2_000


def test_large_counts_survive_json() -> None:
    many = np.full((4, 2, 2), 2**40)
    assert CornerCounts.from_json(CornerCounts(2, many).to_json()) == CornerCounts(2, many)


@pytest.mark.parametrize(
    ("rectangle", "says"),
    [((0, 0, SIDE, 0), "rows: got (0, 8)"), ((0, 3, 0, 2), "columns"), ((-1, 0, 0, 0), "rows")],
)
def test_a_rectangle_beyond_the_map_is_refused(rectangle: tuple, says: str) -> None:
    with pytest.raises(SkewlessError) as refusal:
        CornerCounts.of(SIDE, *([end] for end in rectangle))
    assert says in str(refusal.value)
