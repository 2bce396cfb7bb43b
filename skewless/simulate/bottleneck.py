"""Finds the highest rate that a cluster sustains: the last rung of a ladder that holds."""

from collections.abc import Callable
from dataclasses import dataclass

from skewless.errors import bad_argument
from skewless.simulate.run import Run

_AIMED = 6


@dataclass(frozen=True)
class Bottleneck:
    """The last rate at which no instance was saturated, and its run; 0 and None if none."""

    rate: float
    run: Run | None
    tried: int


def find_bottleneck(
    at_rate: Callable[[float], Run], *, step: float, highest: float, guess: float | None = None
) -> Bottleneck:
    """Climb a ladder of rates, `step` apart, up to the last rung at which nothing is saturated.

    The paper raises the rate rung by rung. Here how busy the busiest instance was says where to try
    next, and the answer is a rung that holds just below one that fails. Where load grows with the
    rate it is the ladder's answer, in a handful of runs; a planner that searches at random may do
    better at a higher rate, and then a lower rung may fail too. `guess` is a rate to start from.
    """
    if not 0 < step <= highest:
        raise bad_argument("step", step, "a rate above 0 and up to highest")
    low, high = 0, int(highest / step) + 1  # low holds (nothing comes in), high is taken to fail
    at = min(max(round((guess or step) / step), 1), high - 1)
    best: Run | None = None
    tried = 0
    while high - low > 1:
        run = at_rate(at * step)
        tried += 1
        if run.saturated:
            high = at
        else:
            low, best = at, run
        # The work of a rate is between linear (handling) and quadratic (comparing with what the
        # same rate has stored); after some runs halving is the surer way.
        aim = (low + high) // 2
        if tried <= _AIMED and run.utilisation > 0:
            aim = round(at / run.utilisation**0.75)
        at = min(max(aim, low + 1), high - 1)
    return Bottleneck(low * step, best, tried)
