"""The one exception that Skewless raises for what a user can put right, and its warnings."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any


class SkewlessError(ValueError):
    """A wrong argument, a bad row, a checkpoint that does not fit: the message says what to do.

    >>> raise bad_argument("how", "outer", "'inner'")
    Traceback (most recent call last):
    skewless.errors.SkewlessError: how: got 'outer'; takes 'inner'
    """


class StateGrowsWarning(UserWarning):
    """An operator keeps something for ever."""


class LateRowsWarning(UserWarning):
    """Rows that come late are dropped, and nobody has said how late they may be."""


class PerBatchWarning(UserWarning):
    """Code on the result of a stream sees one batch at a time, and may mean all of them."""


def bad_argument(name: str, got: object, takes: str) -> SkewlessError:
    """The error for a wrong argument: its name, what it got and what it takes."""
    return SkewlessError(f"{name}: got {got!r}; takes {takes}")


def check_parameters(name: str, function: Callable[..., Any], count: int, takes: str) -> None:
    """Refuses a function that cannot be called with so many arguments.

    >>> check_parameters("process", len, 2, "a function of two")
    Traceback (most recent call last):
    skewless.errors.SkewlessError: process: got <built-in function len>; takes a function of two \
(too many positional arguments)
    """
    try:
        inspect.signature(function).bind(*[None] * count)
    except ValueError:
        return  # of some built-in functions nothing is known
    except TypeError as failure:
        raise bad_argument(name, function, f"{takes} ({failure})") from None
