"""Rotating sets: sizes, popularity by Zipf's law, the turn of the cycle, and the lag."""

import numpy as np
import numpy.typing as npt
import pytest

from skewless.errors import SkewlessError
from skewless.lab.workloads.rotating import ItemSets, Rotating, even_arrivals

CYCLE_S = 40.0


def drawn(
    workload: Rotating, at_s: float, *, count: int = 20_000, seed: int = 1, lag_s: float = 0.0
) -> ItemSets:
    return workload.draw(np.full(count, at_s), np.random.default_rng(seed), lag_s=lag_s)


def often(sets: ItemSets, items: int = 100) -> npt.NDArray[np.float64]:
    """How often each item is in a set, from item 1 on."""
    return np.bincount(sets.items, minlength=items + 1)[1:] / len(sets)


def test_sets_have_distinct_items_in_order_and_normal_sizes() -> None:
    sets = drawn(Rotating(1.2, CYCLE_S), 0.0)
    sizes = np.diff(sets.first)
    assert sizes.min() >= 1
    assert sizes.mean() == pytest.approx(5.0, abs=0.05)
    assert sizes.std() == pytest.approx(np.sqrt(1 + 1 / 12), abs=0.05)  # rounded to whole numbers
    steps = np.diff(sets.items)
    inside = np.ones(len(steps), bool)
    inside[sets.first[1:-1] - 1] = False
    assert (steps[inside] > 0).all()
    assert sets.items.min() == 1
    assert sets.items.max() == 100


def test_single_values_follow_zipf() -> None:
    workload = Rotating.values(1.0, CYCLE_S)
    sets = drawn(workload, 0.0)
    assert (np.diff(sets.first) == 1).all()
    expected = 1 / np.arange(1, 5_001) / (1 / np.arange(1, 5_001)).sum()
    assert often(sets, 5_000)[:5] == pytest.approx(expected[:5], rel=0.1)


def test_without_skew_all_items_are_alike() -> None:
    assert often(drawn(Rotating(0.0, CYCLE_S), 7.0)) == pytest.approx(0.05, rel=0.2)


@pytest.mark.parametrize(
    ("at_s", "lag_s", "item"), [(0, 0, 1), (10, 0, 26), (25, 25, 1), (0, 25, 38)]
)
def test_the_most_popular_item_turns_and_lags(at_s: float, lag_s: float, item: int) -> None:
    workload = Rotating(1.0, CYCLE_S)
    assert workload.most_popular(np.array([at_s - lag_s])).tolist() == [item]
    found = often(drawn(workload, at_s, lag_s=lag_s))
    ranks = (item - 1 + np.arange(100)) % 100
    assert found.argmax() == item - 1
    assert found[ranks[:10]].sum() > found[ranks[10:20]].sum() > found[ranks[50:60]].sum()


def test_the_last_moment_of_a_cycle_is_the_last_item() -> None:
    workload = Rotating(1.0, 0.1)
    times = np.array([np.nextafter(0.1, 0.0), 0.1 * 3, -1e-18])
    assert ((workload.most_popular(times) >= 1) & (workload.most_popular(times) <= 100)).all()


def test_equal_seeds_give_equal_sets() -> None:
    one, same, other = (drawn(Rotating(0.8, CYCLE_S), 3.0, seed=s) for s in (1, 1, 2))
    assert (one.items == same.items).all()
    assert len(one.items) != len(other.items) or (one.items != other.items).any()


def test_sets_may_hold_all_items() -> None:
    sets = Rotating(2.0, CYCLE_S, items=3, mean_size=3.0, deviation=0.0).draw(
        np.zeros(50), np.random.default_rng(1)
    )
    assert sets.items.reshape(50, 3).tolist() == [[1, 2, 3]] * 50


def test_arrivals_keep_their_rates() -> None:
    times = even_arrivals([(100.0, 60.0), (500.0, 15.0)])
    assert len(times) == 100 * 60 + 500 * 15
    assert np.histogram(times, [0, 60, 75])[0].tolist() == [6_000, 7_500]
    assert (np.diff(times) > 0).all()
    with pytest.raises(SkewlessError, match="phases"):
        even_arrivals([(0.0, 1.0)])


@pytest.mark.parametrize(
    ("name", "value"),
    [("exponent", -1.0), ("cycle_s", 0.0), ("items", 0), ("mean_size", 0.5), ("deviation", -1.0)],
)
def test_wrong_arguments_are_named(name: str, value: float) -> None:
    with pytest.raises(SkewlessError, match=name):
        Rotating(**{"exponent": 1.0, "cycle_s": 1.0, name: value})  # type: ignore[arg-type]
