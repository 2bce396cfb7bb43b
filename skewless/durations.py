"""Reads durations as Spark users write them: "10 seconds", "interval '10' second", a timedelta."""

import re
from datetime import timedelta
from decimal import Decimal

from skewless.errors import SkewlessError, bad_argument

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
_CALENDAR = ("month", "year")
_SHOWN = ("day", "hour", "minute", "second", "millisecond", "microsecond")
_TAKES = 'a duration such as "10 seconds", "1 hour 30 minutes" or a timedelta'
# A thousand years; longer is a slip of the pen, and sums of bounds and times must not overflow.
_LIMIT_US = 1000 * 366 * 86_400_000_000

_INTERVAL = re.compile(r"\s*interval\b", re.IGNORECASE)
_TERM = re.compile(r"\s*([+-]?\s*\d+(?:\.\d+)?)\s*([a-zA-Z]+)\s*,?")
# SQL's own form of a term: -'10' second.
_QUOTED_TERM = re.compile(r"\s*([+-]?)\s*'\s*([+-]?\s*\d+(?:\.\d+)?)\s*'\s*([a-zA-Z]+)\s*,?")
_QUOTED = re.compile(r"\s*'([^']*)'\s*")
# '1 2:3:4' day to second: the fields from the first unit to the last.
_RANGE = re.compile(
    r"\s*([+-]?)\s*'\s*([+-]?)([^']*?)\s*'\s*([a-zA-Z]+)\s+to\s+([a-zA-Z]+)\s*", re.I
)
_FIELDS = ("day", "hour", "minute", "second")
_SEPARATORS = (r"\s+", ":", ":")  # between a field and the next
_MOST = {"hour": 23, "minute": 59, "second": 59}  # of a field that is not the first


def parse_duration_us(argument: str, value: object) -> int:
    """The duration in microseconds; `argument` is named in the error.

    >>> parse_duration_us("within", "-1 minute 30 seconds")
    -30000000
    >>> parse_duration_us("within", "1.5 seconds")
    1500000
    >>> parse_duration_us("within", "interval '1 2:03:04' day to second")
    93784000000
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
    try:
        total = _total(_without_interval(text))
    except _CalendarError:
        takes = f"{_TAKES}; months and years differ in length: say it in days"
        raise bad_argument(argument, text, takes) from None
    if total is None:
        raise bad_argument(argument, text, _TAKES)
    if total != int(total):
        raise bad_argument(argument, text, "a whole number of microseconds")
    return int(total)


def _without_interval(text: str) -> str:
    found = _INTERVAL.match(text)
    return text if found is None else text[found.end() :]


def _total(text: str) -> Decimal | None:
    """The microseconds that a text means; None: it is no duration."""
    between = _RANGE.fullmatch(text)
    if between is not None:
        return _range(*between.groups())
    whole = _QUOTED.fullmatch(text)
    if whole is not None:
        return _terms(_without_interval(whole.group(1)))
    return _terms(text)


def _terms(text: str) -> Decimal | None:
    """A sum of numbers with units."""
    total = Decimal(0)
    position = 0
    while text[position:].strip():
        term = _TERM.match(text, position) or _QUOTED_TERM.match(text, position)
        if term is None:
            return None
        *sign, number, unit = term.groups()
        scale = _scale(unit)
        if scale is None:
            return None
        total += (-1 if sign == ["-"] else 1) * Decimal("".join(number.split())) * scale
        position = term.end()
    return total if position else None


def _scale(unit: str) -> int | None:
    """The microseconds of a unit."""
    word = unit.lower().removesuffix("s")
    if word in _CALENDAR:
        raise _CalendarError
    return _SYMBOL_US.get(unit.lower()) or _WORD_US.get(word)


def _range(sign: str, inner: str, text: str, first: str, last: str) -> Decimal | None:
    """SQL's form with fields: '1 2:3:4' day to second, each field but the first within bounds."""
    units = [unit.lower().removesuffix("s") for unit in (first, last)]
    if set(units) & set(_CALENDAR):
        raise _CalendarError
    if not set(units) <= set(_FIELDS):
        return None
    begin, end = (_FIELDS.index(unit) for unit in units)
    if begin >= end:
        return None
    pattern = r"(\d+)" + "".join(rf"{_SEPARATORS[i]}(\d+)" for i in range(begin, end))
    pattern += r"((?:\.\d+)?)" if end == len(_FIELDS) - 1 else "()"
    found = re.fullmatch(pattern, text)
    if found is None:
        return None
    *whole, fraction = found.groups()
    total = Decimal(0)
    for unit, field in zip(_FIELDS[begin : end + 1], whole, strict=True):
        if unit != _FIELDS[begin] and int(field) > _MOST[unit]:
            return None
        total += Decimal(field) * _WORD_US[unit]
    total += Decimal(f"0{fraction}") * _WORD_US["second"]
    return -total if (sign == "-") != (inner == "-") else total


class _CalendarError(SkewlessError):
    """The text has months or years."""
