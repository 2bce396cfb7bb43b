"""Algorithms 2 and 3: statistics add up and fade, the best come first, the budget is used up."""

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skewless.errors import SkewlessError
from skewless.shedding.ranking import Productivity, ranked, shares

counts = st.tuples(st.integers(0, 10_000), st.integers(0, 10_000)).map(
    lambda pair: (pair[0], min(pair))
)


@st.composite
def statistics(draw: st.DrawFn, windows: int | None = None) -> Productivity:
    size = windows or draw(st.integers(1, 30))
    pairs = draw(st.lists(counts, min_size=size, max_size=size))
    return Productivity(
        np.array([float(c) for c, _ in pairs]), np.array([float(m) for _, m in pairs])
    )


@st.composite
def windows_in_order(
    draw: st.DrawFn,
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64], float]:
    sizes = draw(st.lists(st.integers(0, 1_000), min_size=1, max_size=30))
    order = draw(st.permutations(range(len(sizes))))
    return np.array(order), np.array(sizes, np.float64), draw(st.floats(0.0, 1.0))


def same(one: Productivity, other: Productivity) -> bool:
    return np.array_equal(one.comparisons, other.comparisons) and np.array_equal(
        one.matches, other.matches
    )


@given(st.data(), st.integers(1, 8))
def test_merging_knows_no_order(data: st.DataObject, windows: int) -> None:
    a, b, c = (data.draw(statistics(windows=windows)) for _ in range(3))
    assert same(a.merge(b), b.merge(a))
    assert same(a.merge(b).merge(c), a.merge(b.merge(c)))
    assert same(a.merge(Productivity.none(windows)), a)


@given(statistics(), st.floats(0.01, 1.0))
def test_fading_keeps_the_estimates_and_the_weight_falls(seen: Productivity, factor: float) -> None:
    faded = seen.fade(factor)
    assert faded.expected == pytest.approx(seen.expected)
    assert faded.comparisons.sum() == pytest.approx(factor * seen.comparisons.sum())
    assert same(seen.fade(0.0), Productivity.none(len(seen.comparisons)))


def test_what_fades_for_ever_is_forgotten_not_refused() -> None:
    seen = Productivity(np.array([1.0]), np.array([3.0]))
    for _ in range(1_200):
        seen = seen.fade(0.5)
    assert same(seen, Productivity.none(1))


def test_new_statistics_outweigh_faded_ones() -> None:
    before = Productivity(np.array([100.0, 100.0]), np.array([50.0, 0.0]))
    now = Productivity(np.array([100.0, 100.0]), np.array([0.0, 50.0]))
    assert ranked(before.merge(now)).tolist() == [0, 1]
    assert ranked(before.fade(0.5).merge(now)).tolist() == [1, 0]


@given(statistics())
def test_the_best_come_first_and_of_equals_the_newest(seen: Productivity) -> None:
    order = ranked(seen).tolist()
    assert sorted(order) == list(range(len(order)))
    assert order == sorted(order, key=lambda j: (-seen.expected[j], j))


def test_before_anything_is_known_the_newest_come_first() -> None:
    assert ranked(Productivity.none(4)).tolist() == [0, 1, 2, 3]


def test_a_basic_window_that_was_never_seen_counts_as_one_without_matches() -> None:
    seen = Productivity(np.array([10.0, 0.0, 10.0]), np.array([0.0, 0.0, 1.0]))
    assert ranked(seen).tolist() == [2, 0, 1]
    assert seen.expected.tolist() == [0.0, 0.0, 0.1]
    assert Productivity.none(3).mean == 0.0


@given(windows_in_order())
def test_the_shares_use_the_budget_and_no_more(
    case: tuple[npt.NDArray[np.int64], npt.NDArray[np.float64], float],
) -> None:
    order, sizes, fraction = case
    probed = shares(order, sizes, fraction)
    assert ((probed >= 0) & (probed <= 1)).all()
    assert (probed * sizes).sum() == pytest.approx(fraction * sizes.sum(), rel=1e-9, abs=1e-9)


@given(windows_in_order())
def test_at_most_one_basic_window_is_probed_in_part(
    case: tuple[npt.NDArray[np.int64], npt.NDArray[np.float64], float],
) -> None:
    order, sizes, fraction = case
    in_order = shares(order, sizes, fraction)[order]
    assert (np.diff(in_order) <= 0).all()
    assert ((in_order > 0) & (in_order < 1)).sum() <= 1


@given(statistics(), st.floats(0.0, 1.0), st.data())
def test_no_other_choice_expects_more_matches(
    seen: Productivity, fraction: float, data: st.DataObject
) -> None:
    sizes = np.full(len(seen.comparisons), 100.0)
    best = (shares(ranked(seen), sizes, fraction) * sizes * seen.expected).sum()
    other = np.array(data.draw(st.permutations(range(len(sizes)))))
    assert (shares(other, sizes, fraction) * sizes * seen.expected).sum() <= best + 1e-6


def test_all_of_the_windows_is_all_of_each() -> None:
    assert shares(np.array([2, 0, 1]), np.array([3.0, 0.0, 0.1]), 1.0).tolist() == [1.0] * 3


@pytest.mark.parametrize(
    ("comparisons", "matches", "name"),
    [
        ([], [], "comparisons"),
        ([1.0, -1.0], [0.0, 0.0], "comparisons"),
        ([1.0, float("nan")], [0.0, 0.0], "comparisons"),
        ([1.0, 1.0], [0.0], "matches"),
        ([1.0, 0.0], [0.0, 1.0], "matches"),
    ],
)
def test_impossible_statistics_are_refused(
    comparisons: list[float], matches: list[float], name: str
) -> None:
    with pytest.raises(SkewlessError, match=f"^{name}: "):
        Productivity(np.array(comparisons), np.array(matches))


def test_statistics_of_other_windows_are_not_merged() -> None:
    with pytest.raises(SkewlessError, match=r"^other: "):
        Productivity.none(3).merge(Productivity.none(4))
    with pytest.raises(SkewlessError, match=r"^windows: "):
        Productivity.none(0)
    with pytest.raises(SkewlessError, match=r"^factor: "):
        Productivity.none(3).fade(1.5)


@pytest.mark.parametrize(
    ("order", "sizes", "fraction", "name"),
    [
        ([0, 1], [1.0, 1.0], 1.5, "fraction"),
        ([0, 1], [1.0, -1.0], 0.5, "sizes"),
        ([], [], 0.5, "sizes"),
        ([0, 0], [1.0, 1.0], 0.5, "order"),
        ([0], [1.0, 1.0], 0.5, "order"),
    ],
)
def test_wrong_arguments_are_named(
    order: list[int], sizes: list[float], fraction: float, name: str
) -> None:
    with pytest.raises(SkewlessError, match=f"^{name}: "):
        shares(np.array(order, np.int64), np.array(sizes), fraction)
