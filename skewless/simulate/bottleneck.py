"""Finds the highest rate that a cluster sustains: the rung of a ladder below the first that fails."""

from collections.abc import Callable
from dataclasses import dataclass

from skewless.errors import bad_argument
from skewless.simulate.run import Run


@dataclass(frozen=True)
class Bottleneck:
    """The last rate at which no instance was saturated, and its run; 0 and None if there is none."""

    rate: float
    run: Run | None
    tried: int


def find_bottleneck(
    at_rate: Callable[[float], Run], *, step: float, highest: float, guess: float | None = None
) -> Bottleneck:
    """Climb a ladder of rates, `step` apart, up to the last rung at which nothing is saturated.

    The paper raises the rate rung by rung. Load only grows with the rate, so the rungs between one
    that holds and one that fails are halved instead: the same answer in a handful of runs. `guess`
    is a rate to start from.
    """
    if not 0 < step <= highest:
        raise bad_argument("step", step, "a rate above 0 and up to highest")
    top = int(highest / step)
    runs: dict[int, Run] = {}

    def holds(rung: int) -> bool:
        if rung not in runs:
            runs[rung] = at_rate(rung * step)
        return not runs[rung].saturated

    low, high = 0, top + 1  # low holds (nothing comes in), high fails
    at = min(max(round((guess or step) / step), 1), top)
    stride = max(1, at // 8)
    # Widen from the guess until it is enclosed, then halve.
    while high - low > 1:
        if holds(at):
            low = at
            at = min(low + stride, (low + high) // 2 if high <= top else top)
        else:
            high = at
            at = max(high - stride, (low + high) // 2 if low > 0 else 1)
        stride *= 2
        if not low < at < high:
            at = (low + high) // 2
    return Bottleneck(low * step, runs.get(low), len(runs))
