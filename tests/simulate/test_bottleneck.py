"""The search for the bottleneck gives the answer that climbing the ladder gives."""

import pytest

from skewless.errors import SkewlessError
from skewless.simulate import Look, Run, find_bottleneck

LOOK = Look(1.0, 0.0, 0.0, 0, "", 0.0)


def run(rate: float, capacity: float, power: float) -> Run:
    busy = (rate / capacity) ** power
    return Run(rate, rate, busy, busy, 0.0, 0.0, 0.0, 1.0, 0, 0, (LOOK,))


@pytest.mark.parametrize("guess", [None, 500.0, 18_000.0, 90_000.0])
@pytest.mark.parametrize("power", [1.0, 2.0])
@pytest.mark.parametrize("capacity", [400.0, 700.0, 11_300.0, 29_999.0, 150_000.0])
def test_same_answer_as_step_by_step(capacity: float, power: float, guess: float | None) -> None:
    found = find_bottleneck(
        lambda rate: run(rate, capacity, power), step=500.0, highest=100_000.0, guess=guess
    )
    rungs = [500.0 * i for i in range(1, 201) if 500.0 * i < capacity]
    assert found.rate == max(rungs, default=0.0)
    assert (found.run is None) == (found.rate == 0)
    assert found.tried <= 16


def test_a_step_of_zero_is_refused() -> None:
    with pytest.raises(SkewlessError, match="step"):
        find_bottleneck(lambda rate: run(rate, 1.0, 1.0), step=0.0, highest=1.0)
