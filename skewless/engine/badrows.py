"""Rows that cannot be worked with: which they are, and what a message shows of one."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from skewless.engine.moments import shown_time
from skewless.errors import SkewlessError
from skewless.kernels.intervals import MAX_TIME
from skewless.kernels.ordering import TimeArray
from skewless.state.segment import times_us

Mask = npt.NDArray[np.bool_]

# Of a value that is longer, the beginning tells enough.
_SHOWN = 200


BAD_TIME = "its event time is null, or too far from 1970"
BAD_WEIGHT = "its set has a weight that is NaN or infinite"
BAD_POINT = "its coordinates are NaN, infinite, or too large for the radius"
BAD_POSITION = "its longitude is not from -180 to 180, or its latitude not from -90 to 90"


class BadRowError(SkewlessError):
    """A row that cannot be worked with, while the option badRows says "fail"."""


def times_and_bad(column: pa.Array) -> tuple[TimeArray, Mask | None]:
    """Event times in microseconds, and which of them cannot be used; None where all can."""
    nulls = None
    if column.null_count:
        nulls = column.is_null().to_numpy(zero_copy_only=False)
        column = column.fill_null(pa.scalar(0, column.type))
    times = times_us(column)
    if not len(times) or (int(times.min()) > -MAX_TIME and int(times.max()) < MAX_TIME):
        return times, nulls
    far = (times <= -MAX_TIME) | (times >= MAX_TIME)
    return times, far if nulls is None else far | nulls


def bad_time(what: str, rows: pa.RecordBatch, bad: Mask) -> BadRowError:
    """The error of rows with a bad event time."""
    return bad_row(what, BAD_TIME, rows, bad)


def bad_row(what: str, why: str, rows: pa.RecordBatch, bad: Mask) -> BadRowError:
    """The error that shows the first of the bad rows; `rows` by the names that a user knows."""
    at = int(np.flatnonzero(bad)[0])
    row = {name: shown_value(rows.column(name)[at]) for name in rows.schema.names}
    return BadRowError(
        f"bad row: {what} has a row whose {why.removeprefix('its ')}: {row} "
        f"(such rows in this task: {int(bad.sum())}). Fix the input, or start with "
        '.option("badRows", "drop")'
    )


def shown_value(value: pa.Scalar) -> Any:
    """A value of a row as messages show it: not at full length, and never as an error."""
    try:
        plain = value.as_py()
    except (OverflowError, ValueError):  # Python has no such time
        if pa.types.is_timestamp(value.type):
            return shown_time(value.value)
        plain = " ".join(pa.array([value]).to_string().split())
    if isinstance(plain, str | bytes) and len(plain) > _SHOWN:
        rest = len(plain) - _SHOWN
        return f"{plain[:_SHOWN]!r}… and {rest:,} more"
    if isinstance(plain, list | dict) and len(text := repr(plain)) > _SHOWN:
        return f"{text[:_SHOWN]}… and {len(text) - _SHOWN:,} more"
    return plain
