"""Reads durations as Spark users write them: "10 seconds", "1 hour 30 minutes", a timedelta."""

import re
from datetime import timedelta
from decimal import Decimal

from skewless.errors import bad_argument

Duration = str | timedelta
_SYMBOL_US = {
    "us": 1,
    "ms": 1_000,
    "s": 1_000_000,
    "m": 60_000_000,
    "h": 3_600_000_000,
    "d": 86_400_000_000,
}
# Words have a plural.
_WORD_US = {
    "microsecond": 1,
    "millisecond": 1_000,
    "second": 1_000_000,
    "sec": 1_000_000,
    "minute": 60_000_000,
    "min": 60_000_000,
    "hour": 3_600_000_000,
    "hr": 3_600_000_000,
    "day": 86_400_000_000,
    "week": 604_800_000_000,
}
_SHOWN = ("day", "hour", "minute", "second", "millisecond", "microsecond")
_TERM = re.compile(r"\s*([+-]?\s*\d+(?:\.\d+)?)\s*([a-zA-Z]+)\s*,?")
_TAKES = 'a duration such as "10 seconds", "1 hour 30 minutes" or a timedelta'
# A thousand years; longer is a slip of the pen, and sums of bounds and times must not overflow.
_LIMIT_US = 1000 * 366 * 86_400_000_000


def parse_duration_us(argument: str, value: object) -> int:
    """The duration in microseconds; `argument` is named in the error.

    >>> parse_duration_us("within", "-1 minute 30 seconds")
    -30000000
    >>> parse_duration_us("within", "1.5 seconds")
    1500000
    """
    if isinstance(value, timedelta):
        microseconds = value // timedelta(microseconds=1)
    elif isinstance(value, str):
        microseconds = _parse_text(argument, value)
    else:
        raise bad_argument(argument, value, _TAKES)
    if abs(microseconds) > _LIMIT_US:
        raise bad_argument(argument, value, "a duration of at most 1000 years")
    return microseconds


def shown_duration(microseconds: int) -> str:
    """A duration as people write it, and as `parse_duration_us` reads it.

    >>> shown_duration(5_400_000_000), shown_duration(-1_500_000), shown_duration(0)
    ('1 hour 30 minutes', '-1 second -500 milliseconds', '0 seconds')
    """
    sign = "-" if microseconds < 0 else ""
    rest = abs(microseconds)
    terms = []
    for unit in _SHOWN:
        count, rest = divmod(rest, _WORD_US[unit])
        if count:
            terms.append(f"{sign}{count} {unit}{'' if count == 1 else 's'}")
    return " ".join(terms) or "0 seconds"


def _parse_text(argument: str, text: str) -> int:
    rest = re.sub(r"^\s*interval\b", "", text, flags=re.IGNORECASE)
    total = Decimal(0)
    position = 0
    while rest[position:].strip():
        term = _TERM.match(rest, position)
        if term is None:
            raise bad_argument(argument, text, _TAKES)
        number, unit = "".join(term.group(1).split()), term.group(2).lower()
        word = unit.removesuffix("s")
        if word in {"month", "year"}:
            raise bad_argument(argument, text, f"{_TAKES}; months and years differ in length")
        scale = _SYMBOL_US.get(unit) or _WORD_US.get(word)
        if scale is None:
            raise bad_argument(argument, text, _TAKES)
        total += Decimal(number) * scale
        position = term.end()
    if position == 0:
        raise bad_argument(argument, text, _TAKES)
    if total != int(total):
        raise bad_argument(argument, text, "a whole number of microseconds")
    return int(total)
