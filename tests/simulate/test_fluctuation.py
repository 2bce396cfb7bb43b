"""The fluctuating stream: the same frequencies in other places, by as much as was asked for."""

import numpy as np
import pytest

from skewless.errors import SkewlessError
from skewless.simulate.fluctuation import Fluctuation


def flow(rate: float = 1.0, window: int = 1, seed: int = 1, keys: int = 10_000) -> Fluctuation:
    return Fluctuation(keys, zipf=0.85, rate=rate, window=window, rng=np.random.default_rng(seed))


@pytest.mark.parametrize("rate", [0.1, 0.5, 1.0, 2.0])
def test_one_instance_grows_by_the_rate_and_nothing_is_lost(rate: float) -> None:
    stream = flow(rate)
    placed = np.random.default_rng(2).integers(0, 10, 10_000)
    for _ in range(5):
        before = stream.cost.copy()
        stream.step(placed, 10)
        change = np.bincount(placed, stream.cost - before) / (before.sum() / 10)
        # The last swap may go past it, by at most the hottest key.
        assert rate <= change.max() <= rate + before.max() / (before.sum() / 10)
        assert np.sort(stream.cost).tolist() == np.sort(before).tolist()


def test_without_fluctuation_every_interval_is_the_same() -> None:
    stream = flow(0.0)
    before = stream.cost.copy()
    stream.step(np.arange(10_000) % 10, 10)
    assert stream.cost.tolist() == before.tolist()


def test_state_is_what_came_in_the_last_intervals() -> None:
    stream = flow(window=2)
    placed = np.arange(10_000) % 10
    first = stream.cost.copy()
    assert stream.state.tolist() == first.tolist()
    stream.step(placed, 10)
    second = stream.cost.copy()
    assert stream.state.tolist() == (first + second).tolist()
    stream.step(placed, 10)
    assert stream.state.tolist() == (second + stream.cost).tolist()


def test_one_instance_has_nobody_to_swap_with() -> None:
    stream = flow()
    stream.step(np.zeros(10_000, np.int64), 1)
    stream.step(np.zeros(10_000, np.int64), 5)
    assert stream.cost.min() >= 1


def test_the_same_seed_gives_the_same_stream() -> None:
    one, two, other = flow(seed=1), flow(seed=1), flow(seed=2)
    placed = np.arange(10_000) % 10
    for stream in (one, two, other):
        stream.step(placed, 10)
    assert one.cost.tolist() == two.cost.tolist()
    assert one.cost.tolist() != other.cost.tolist()


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"keys": 0}, "keys: got 0"),
        ({"zipf": -1.0}, "zipf: got -1.0"),
        ({"rate": float("nan")}, "rate: got nan"),
        ({"window": 0}, "window: got 0"),
    ],
)
def test_a_wrong_argument_is_refused(changed: dict[str, float], says: str) -> None:
    options = {"keys": 5, "zipf": 0.85, "rate": 1.0, "window": 1} | changed
    with pytest.raises(SkewlessError) as refusal:
        Fluctuation(rng=np.random.default_rng(1), **options)  # type: ignore[arg-type]
    assert says in str(refusal.value)
