"""The time condition of a join, and what it lets an instance forget."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from skewless.durations import shown_duration
from skewless.errors import SkewlessError
from skewless.kernels.intervals import UNBOUNDED
from skewless.state.watermark import Delays

LEFT, RIGHT = "left", "right"
SIDES = (LEFT, RIGHT)
# The sides of the state that hold rows which can match nothing: they have no key, or no item.
LONE = {LEFT: "left without a key", RIGHT: "right without a key"}


@dataclass(frozen=True)
class Bounds:
    """`lower ≤ right.time − left.time ≤ upper`, inclusive; None leaves an end open."""

    lower_us: int | None
    upper_us: int | None

    def __post_init__(self) -> None:
        if self.lower_us is None or self.upper_us is None:
            return
        if self.lower_us > self.upper_us:
            lower, upper = shown_duration(self.lower_us), shown_duration(self.upper_us)
            raise SkewlessError(
                f"within: the lower bound ({lower}) is above the upper bound ({upper}); takes "
                "(lower, upper) of right.time - left.time"
            )

    def around(self, side: str) -> tuple[int, int]:
        """The bounds of (other.time − row.time) for a row of this side."""
        lower = -UNBOUNDED if self.lower_us is None else self.lower_us
        upper = UNBOUNDED if self.upper_us is None else self.upper_us
        return (lower, upper) if side == LEFT else (-upper, -lower)

    def keep_from_us(
        self, watermark_us: int | None, delays: Delays, *, awaited: Collection[str] = ()
    ) -> dict[str, int | None]:
        """Per side: rows older than this can match nothing any more; None: all may match.

        A left row waits for right rows, so it may go only when the right side cannot be late
        without limit: it leaves when `time < W − upper`, a right row when `time < W + lower`.
        `awaited` are the sides whose matches are asked for again when a row of theirs leaves. Until
        then the rows of the other side that it may match have to stay.
        """
        keep: dict[str, int | None] = {LEFT: None, RIGHT: None}
        if watermark_us is None:
            return keep
        if self.upper_us is not None and delays.by_side[RIGHT] is not None:
            waiting_us = max(0, -(self.lower_us or 0)) if RIGHT in awaited else 0
            keep[LEFT] = watermark_us - self.upper_us - waiting_us
        if self.lower_us is not None and delays.by_side[LEFT] is not None:
            waiting_us = max(0, self.upper_us or 0) if LEFT in awaited else 0
            keep[RIGHT] = watermark_us + self.lower_us - waiting_us
        return keep

    def stored_from_us(
        self, watermark_us: int | None, delays: Delays, awaited: Collection[str]
    ) -> dict[str, int | None]:
        """The same per side of the state, also of rows that can match nothing: nobody asks for
        these."""
        keep = self.keep_from_us(watermark_us, delays, awaited=awaited)
        plain = self.keep_from_us(watermark_us, delays)
        return {**keep, **{LONE[side]: plain[side] for side in SIDES}}

    def window_us(self, delays: Delays) -> int | None:
        """About how long a row stays, in event time; None where rows may stay for ever."""
        if self.lower_us is None or self.upper_us is None:
            return None
        if any(d is None for d in delays.by_side.values()):
            return None
        slack = max(d or 0 for d in delays.by_side.values())
        return max(abs(self.lower_us), abs(self.upper_us), self.upper_us - self.lower_us) + slack


def late_until_us(side: str, watermark_us: int | None, delays: Delays) -> int | None:
    """Rows of this side at or before the returned time are late; None: no row is."""
    return None if delays.by_side[side] is None else watermark_us


def merged_max(
    seen: Mapping[str, int | None], more: Mapping[str, int | None]
) -> dict[str, int | None]:
    """The later of two times per side, where there is any."""
    merged: dict[str, int | None] = {}
    for side in SIDES:
        times = [t for t in (seen[side], more[side]) if t is not None]
        merged[side] = max(times, default=None)
    return merged
