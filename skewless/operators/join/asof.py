"""The row that is closest in time, for `match=` of `sk.join`."""

from dataclasses import dataclass

from skewless.errors import bad_argument
from skewless.operators.join.bounds import Bounds

DIRECTIONS = ("backward", "forward", "nearest")


@dataclass(frozen=True)
class AsOf:
    """Of all right rows that match a left row, the one that is closest to it in time.

    "backward" looks at right rows up to the left row's time, "forward" at those from it on,
    "nearest" at both; of two that are equally close, the earlier one is given. A left row is given
    once, when the watermark has passed all that it may match.

        sk.join(trades, quotes, on="symbol", match=sk.AsOf("backward"), time=("at", "quoted_at"),
                within=("-1 minute", "0 seconds"))
    """

    direction: str = "backward"

    def __post_init__(self) -> None:
        if self.direction not in DIRECTIONS:
            listed = ", ".join(map(repr, DIRECTIONS))
            raise bad_argument("direction", self.direction, f"one of {listed}")

    def within(self, bounds: Bounds) -> Bounds:
        """The part of the bounds in which the closest row may be: a left row waits no longer."""
        lower, upper = bounds.lower_us, bounds.upper_us
        if self.direction == "backward":
            upper = 0 if upper is None else min(upper, 0)
        elif self.direction == "forward":
            lower = 0 if lower is None else max(lower, 0)
        if lower is not None and upper is not None and lower > upper:
            side = "before" if self.direction == "backward" else "after"
            raise bad_argument(
                "within", "bounds without any time to look at", f"some time {side} the left row"
            )
        return Bounds(lower, upper)
