"""Pieces of SQL text that routes of every kind are made of."""

from collections.abc import Sequence


def constants(numbers: Sequence[int], kind: str = "INT") -> str:
    """A constant array: one text literal that the optimiser folds, whatever its length."""
    return f"CAST(split('{','.join(map(str, numbers))}', ',') AS ARRAY<{kind}>)"


def scaled(spread: str, size: str | int) -> str:
    """`skewless.routing.route.scaled`."""
    return f"shiftrightunsigned(shiftrightunsigned({spread}, 32) * {size}, 32)"
