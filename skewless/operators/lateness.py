"""How late rows may be: as the call says, or as the inputs' own `withWatermark` does."""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from skewless.durations import parse_duration_us, shown_duration
from skewless.errors import LateRowsWarning, SkewlessError, bad_argument
from skewless.runtime.inputs import Input


class FromInput(Enum):
    """The default of `watermark`; None is taken, it means that rows are never late."""

    FROM_INPUT = "the input's own withWatermark"

    def __repr__(self) -> str:
        return self.name


FROM_INPUT: Final = FromInput.FROM_INPUT


@dataclass(frozen=True)
class OwnWatermark:
    """What an input says of the lateness of its rows, before the call says anything."""

    argument: str  # of the call: which input it is
    time: str
    delay_us: int | None  # by withWatermark on the time column, or 0 where an operator feeds it
    elsewhere: str | None = None  # another column that has a watermark
    is_chained: bool = False  # an operator upstream says how far event time has come
    streams: int = 1  # that have a watermark of their own and were put together before


def own_watermark(given: Input, time: str, *, is_chained: bool) -> OwnWatermark:
    """What a DataFrame says by its metadata, or an operator upstream by being one."""
    if is_chained:
        return OwnWatermark(given.argument, time, 0, is_chained=True)
    return OwnWatermark(
        given.argument,
        time,
        given.watermark_us(time),
        given.watermarked(),
        streams=given.watermarks,
    )


def delays_of(given: Any, inputs: Mapping[str, OwnWatermark]) -> dict[str, int | None]:
    """The allowed lateness per side in microseconds; None: its rows are never late.

    `given` is the argument `watermark`, one value for each input or FROM_INPUT. Where only some
    inputs have a watermark, the rows of the others are never late, as in Spark.
    """
    if given is not FROM_INPUT:
        pairs = zip(inputs.items(), given, strict=True)
        return {side: _agreed(value, own) for (side, own), value in pairs}
    for own in inputs.values():
        if own.streams > 1:
            raise SkewlessError(
                f"{own.argument}: {own.streams} streams with a watermark each were put together. "
                "Spark's watermark follows the slowest of them, and an operator of Skewless sees "
                f"one input; call withWatermark({own.time!r}, ...) once, after the union, or say "
                "watermark="
            )
        if own.delay_us is None and own.elsewhere is not None:
            raise SkewlessError(
                f"time: the {own.argument} input has its watermark on {own.elsewhere!r}, not on "
                f"{own.time!r}; call withWatermark({own.time!r}, ...), or say watermark="
            )
    return {side: own.delay_us for side, own in inputs.items()}


def warn_of_late_rows(which_rows: str, stacklevel: int) -> None:
    """Says that the default drops rows which a delay would have kept."""
    warnings.warn(
        "watermark: not given, and there is no withWatermark on the event time either: every "
        f"{which_rows} at or before the newest event time of an earlier batch is late and is "
        'dropped. Say how late rows may be, for example watermark="10 seconds" (or "0 seconds", if '
        "this is what you want)",
        LateRowsWarning,
        stacklevel=stacklevel + 1,
    )


def _agreed(value: Any, own: OwnWatermark) -> int | None:
    """What the call says, unless the input says something else."""
    delay = None if value is None else parse_duration_us("watermark", value)
    if delay is not None and delay < 0:
        raise bad_argument("watermark", value, "a duration of at least 0")
    if own.delay_us is None or own.is_chained or own.streams > 1 or own.delay_us == delay:
        return delay
    raise SkewlessError(
        f"watermark: got {value!r}, but the {own.argument} input has "
        f"withWatermark({own.time!r}, {shown_duration(own.delay_us)!r}); leave one of them out"
    )
