"""What a user's function raised, told in a few lines: the error, their own frames, the place."""

import importlib.util
import os
import traceback
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from skewless.errors import SkewlessError

# All of an account is at most 25 lines: error, frames, and a few notes on the place.
_ERROR_LINES = 8
_FRAMES = 6
_LINE_LENGTH = 1_000
_CUT = "…"
_OWN = str(Path(__file__).parent) + os.sep


class FunctionError(SkewlessError):
    """A user's function raised. The message begins with its error and shows its own frames."""


def account(failure: BaseException, *notes: str) -> str:
    """The error, the frames of the user's own code, and notes on where it happened.

    >>> try:
    ...     {}["amount"]
    ... except KeyError as failure:
    ...     print(account(failure, "fn of sk.map failed").splitlines()[0])
    KeyError: 'amount'
    """
    lines = _shortened(_named(failure), _ERROR_LINES)
    cause = failure.__cause__
    if cause is not None:
        lines += _shortened([f"because of {_named(cause)[0]}"], 1)
    lines += _frames(failure)
    for note in notes:
        lines += _shortened([note], 1)
    return "\n".join(lines)


def _named(failure: BaseException) -> list[str]:
    """The type and the text, by lines."""
    text = str(failure)
    return f"{type(failure).__name__}: {text}".splitlines() if text else [type(failure).__name__]


def _frames(failure: BaseException) -> list[str]:
    """The user's code is what Skewless has called, and what that has called but for Spark."""
    called: list[traceback.FrameSummary] = []
    everything = traceback.extract_tb(failure.__traceback__)
    for frame in everything:
        called = [] if frame.filename.startswith(_OWN) else [*called, frame]
    frames = [f for f in called or everything if not f.filename.startswith(_folders())]
    shown = [
        [f'  File "{frame.filename}", line {frame.lineno}, in {frame.name}']
        + ([f"    {frame.line}"] if frame.line else [])
        for frame in frames
    ]
    if len(shown) > _FRAMES:
        # The first frames are the user's, the last ones where it broke.
        half = _FRAMES // 2
        left_out = len(shown) - 2 * half
        shown = [*shown[:half], [f"  {_CUT} {left_out} more"], *shown[-half:]]
    return _shortened([line for frame in shown for line in frame], 2 * _FRAMES + 1)


@cache
def _folders() -> tuple[str, ...]:
    """Where the code of Skewless and of Spark is."""
    found = [importlib.util.find_spec(name) for name in ("pyspark", "py4j")]
    origins = [spec.origin for spec in found if spec is not None and spec.origin is not None]
    return (_OWN, *(str(Path(origin).parent) + os.sep for origin in origins))


def _shortened(lines: Sequence[str], most: int) -> list[str]:
    """At most so many lines, none of them endless; what is left out is left out in the middle."""
    if len(lines) > most:
        half = most // 2
        last = most - half - 1
        lines = [*lines[:half], f"{_CUT} {len(lines) - half - last} more lines", *lines[-last:]]
    return [shortened(line) for line in lines]


def shortened(text: str) -> str:
    """The beginning and the end of a text that is too long to be shown."""
    if len(text) <= _LINE_LENGTH:
        return text
    half = _LINE_LENGTH // 2
    return f"{text[:half]}{_CUT}{text[-half:]}"


def counted(number: int, what: str) -> str:
    """
    >>> counted(1, "row"), counted(1_200, "row")
    ('1 row', '1,200 rows')
    """
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"
