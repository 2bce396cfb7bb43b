"""Which windows an event belongs to: [start, end), aligned to the epoch, tumbling or sliding."""

import math

import numpy as np

from skewless.kernels.ordering import IndexArray, TimeArray


def windows_of(times: TimeArray, size_us: int, slide_us: int) -> tuple[IndexArray, TimeArray]:
    """(row, end) of every window that holds a row; a row is in ⌈size/slide⌉ of them, or one less.

    >>> rows, ends = windows_of(np.array([-1, 4]), size_us=10, slide_us=5)
    >>> list(zip(rows.tolist(), ends.tolist()))
    [(0, 5), (0, 0), (1, 10), (1, 5)]
    """
    last = last_ends(times, size_us, slide_us)
    rows = np.arange(len(times), dtype=np.int64)
    if size_us == slide_us:
        return rows, last
    count = math.ceil(size_us / slide_us)
    ends = last[:, None] - slide_us * np.arange(count, dtype=np.int64)[None, :]
    repeated = np.repeat(rows, count)
    flat = ends.ravel()
    if size_us % slide_us == 0:
        return repeated, flat
    holds = flat > times[repeated]
    return repeated[holds], flat[holds]


def last_ends(times: TimeArray, size_us: int, slide_us: int) -> TimeArray:
    """The end of the last window that holds each row.

    Floor division: an event before 1970 belongs to the window that began before it, too.
    """
    starts: TimeArray = times - np.mod(times, slide_us)
    return starts + size_us


def pane_us(size_us: int, slide_us: int) -> int:
    """The longest slices such that every window is made of whole ones.

    Events of a pane are in the same windows: a row is added up once, not once per window.

    >>> pane_us(15, 10)
    5
    """
    return math.gcd(size_us, slide_us)
