"""The one exception that Skewless raises for what a user can put right."""

from __future__ import annotations


class SkewlessError(ValueError):
    """A wrong argument, a bad row, a checkpoint that does not fit: the message says what to do.

    >>> raise bad_argument("how", "outer", "'inner'")
    Traceback (most recent call last):
    skewless.errors.SkewlessError: how: got 'outer'; takes 'inner'
    """


class StateGrowsWarning(UserWarning):
    """An operator keeps something for ever."""


def bad_argument(name: str, got: object, takes: str) -> SkewlessError:
    """The error for a wrong argument: its name, what it got and what it takes."""
    return SkewlessError(f"{name}: got {got!r}; takes {takes}")
