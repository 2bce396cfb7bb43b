"""A row on its way into a user's function, and what became of it."""

from collections.abc import Callable, Generator
from copy import deepcopy
from types import GeneratorType
from typing import Any, NamedTuple

Clock = Callable[[], float]


class Row(NamedTuple):
    """A row on its way into the function."""

    hash: int
    values: dict[str, Any]

    def copied(self) -> dict[str, Any]:
        """A copy for one try, so that changes by a call do not show in retries and messages."""
        fresh = dict(self.values)
        for name, value in fresh.items():
            if isinstance(value, list | dict):  # all other values that Arrow gives are immutable
                fresh[name] = deepcopy(value)
        return fresh


class Outcome(NamedTuple):
    """What became of a row: the function's result, or its failure; and what the call took."""

    row: Row
    result: Any
    failure: BaseException | None
    took_s: float


# A generator: who wants no more of them closes it, and calls in flight end.
Outcomes = Generator[Outcome, None, None]


class RowTimeoutError(Exception):
    """A call took longer than the option timeout allows."""

    def __init__(self, timeout_s: float, why: str = "") -> None:
        super().__init__(f"timeout: the call took longer than {timeout_s:g} s{why}")


def consumed(result: Any) -> Any:
    """A generator works while it is consumed, so consuming it is part of the call."""
    return list(result) if isinstance(result, GeneratorType) else result
