"""Event-time watermarks: how far time has come, and what may therefore be forgotten."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Delays:
    """The allowed lateness per side in microseconds; None: this side is never late."""

    by_side: Mapping[str, int | None]
    # Sides that an operator upstream feeds: how far they have come is told, not read off the rows.
    given: frozenset[str] = frozenset()

    def watermark(
        self, max_time_us: Mapping[str, int | None], previous_us: int | None
    ) -> int | None:
        """The smallest (largest event time seen − delay) over the sides that have a delay.

        Unset until each of them has data; never falls.

        >>> Delays({"left": 5, "right": 0}).watermark({"left": 100, "right": 98}, None)
        95
        """
        marks: list[int] = []
        for side, delay in self.by_side.items():
            if delay is None:
                continue
            seen = max_time_us[side]
            if seen is None:
                return previous_us
            marks.append(seen - delay)
        if not marks:
            return previous_us
        return min(marks) if previous_us is None else max(previous_us, min(marks))
