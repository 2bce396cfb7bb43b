"""The windows that a keyed operator groups by: tumbling, sliding or sessions."""

from dataclasses import dataclass
from typing import Any

from skewless.durations import Duration, parse_duration_us, shown_duration
from skewless.errors import bad_argument
from skewless.kernels.ordering import IndexArray, TimeArray
from skewless.kernels.windows import windows_of


@dataclass(frozen=True)
class Windows:
    """[start, end) of one size, aligned to the epoch; a new one begins every `slide_us`."""

    size_us: int
    slide_us: int
    column = "window"

    def __post_init__(self) -> None:
        if self.size_us <= 0:
            raise bad_argument("window", shown_duration(self.size_us), "a duration above 0")
        if self.slide_us <= 0:
            raise bad_argument("slide", shown_duration(self.slide_us), "a duration above 0")
        if self.slide_us > self.size_us:
            raise bad_argument(
                "slide",
                shown_duration(self.slide_us),
                f"at most the window's {shown_duration(self.size_us)}",
            )

    @property
    def length_us(self) -> int:
        """How long a group is open, in event time."""
        return self.size_us

    @property
    def spread_us(self) -> int:
        """From the end of the first window that may hold an event to that of the last.

        >>> Windows(size_us=3, slide_us=2).spread_us
        2
        """
        return (self.most - 1) * self.slide_us

    @property
    def most(self) -> int:
        """In how many windows an event may be.

        >>> Windows(size_us=3, slide_us=2).most
        2
        """
        return -(-self.size_us // self.slide_us)

    def describe(self) -> dict[str, Any]:
        return {"sizeUs": self.size_us, "slideUs": self.slide_us}


@dataclass(frozen=True)
class SessionWindow:
    """A window that ends when a key has been silent for `gap`.

    >>> SessionWindow("5 minutes").gap_us
    300000000
    """

    gap: Duration
    column = "session_window"

    def __post_init__(self) -> None:
        if self.gap_us <= 0:
            raise bad_argument("gap", self.gap, "a duration above 0")

    @property
    def gap_us(self) -> int:
        return parse_duration_us("gap", self.gap)

    @property
    def length_us(self) -> int:
        """The shortest time that a session is open."""
        return self.gap_us

    def describe(self) -> dict[str, Any]:
        return {"gapUs": self.gap_us}


Window = Windows | SessionWindow | None


def open_windows(
    times: TimeArray, window: Windows, closed_us: int | None
) -> tuple[IndexArray, TimeArray]:
    """Every event in every window that holds it and is open: its place, and the window's end."""
    at, ends = windows_of(times, window.size_us, window.slide_us)
    if closed_us is None:
        return at, ends
    is_open = ends > closed_us
    return (at, ends) if is_open.all() else (at[is_open], ends[is_open])


def window_of(window: Duration | SessionWindow | None, slide: Duration | None = None) -> Window:
    """The arguments `window` and `slide` of `sk.keyed`, checked.

    >>> window_of("10 minutes", "5 minutes")
    Windows(size_us=600000000, slide_us=300000000)
    """
    if window is None or isinstance(window, SessionWindow):
        if slide is not None:
            raise bad_argument("slide", slide, "None, because window is no duration")
        return window
    size = parse_duration_us("window", window)
    return Windows(size, size if slide is None else parse_duration_us("slide", slide))
