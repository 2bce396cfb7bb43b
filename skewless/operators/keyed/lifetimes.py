"""How long stored rows live: what a watermark has made due, and what may be forgotten."""

from dataclasses import dataclass

from skewless.kernels.ordering import TimeArray
from skewless.kernels.windows import last_ends
from skewless.operators.keyed.layout import INPUT, STATE
from skewless.operators.keyed.process import Function, Process, SelfJoin
from skewless.operators.keyed.windows import SessionWindow, Window, Windows


@dataclass(frozen=True)
class Lifetimes:
    """What of the state a process may still need."""

    process: Process
    window: Window
    delay_us: int | None

    def keep_from_us(self, emitted_us: int | None) -> dict[str, int | None]:
        """Per kind of segment: rows due before this are dead; None: none is.

        A group is dead when it has been given out, up to and with the watermark. A row of a
        self-join is stored under its event time and leaves when `time < W − within`.
        """
        if emitted_us is None:
            return {INPUT: None, STATE: None}
        if isinstance(self.process, SelfJoin):
            return {INPUT: emitted_us - self.process.within_us, STATE: None}
        return {INPUT: emitted_us + 1, STATE: emitted_us + 1}

    def closing_us(self, times: TimeArray) -> TimeArray | None:
        """Rows are late once the watermark has reached this; None: no row is ever late.

        A row that is added to a window is late when the last window that holds it has closed
        (of a session: when a session of this row alone has). Other rows are late by their own time.
        """
        if isinstance(self.window, Windows):
            return last_ends(times, self.window.size_us, self.window.slide_us)
        if isinstance(self.window, SessionWindow):
            return times + self.window.gap_us
        return times if isinstance(self.process, SelfJoin | Function) else None

    def kept_us(self) -> int | None:
        """About how long a row stays, in event time; None: for ever."""
        if self.delay_us is None:
            return None
        if isinstance(self.process, SelfJoin):
            return self.process.within_us + self.delay_us
        return None if self.window is None else self.window.length_us + self.delay_us

    def reach_us(self) -> int:
        """How far before the watermark a row may lie that is given out after it."""
        if isinstance(self.process, SelfJoin):
            return self.process.within_us
        return self.window.size_us if isinstance(self.window, Windows) else 0

    def earliest_due_us(self, stored_us: int) -> int:
        """The first moment at which a row that is stored under a moment may be due.

        A raw row of a sliding window is stored once, under the end of its last window.
        """
        if isinstance(self.process, Function) and isinstance(self.window, Windows):
            return stored_us - self.window.spread_us
        return stored_us
