"""The user's function and how it is called."""

import asyncio
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from skewless.errors import bad_argument
from skewless.planning.checks import check_number, check_whole


@dataclass(frozen=True)
class MapFunction:
    """`fn(batch)` gives a record batch, a table or an iterable of batches.

    With `per_row`, `fn(row)` takes a dictionary and gives one, a list of them or None. Then
    `concurrency` rows are in flight: in threads, or on one event loop if `fn` is a coroutine
    function. A call that fails is repeated up to `retries` times, and one that takes longer than
    `timeout_s` fails.
    """

    fn: Callable[..., Any]
    per_row: bool = False
    concurrency: int = 1
    ordered: bool = True
    retries: int = 0
    timeout_s: float | None = None

    def __post_init__(self) -> None:
        if not callable(self.fn):
            raise bad_argument("fn", self.fn, "a function")
        for name in ("per_row", "ordered"):
            if not isinstance(getattr(self, name), bool):
                raise bad_argument(name, getattr(self, name), "True or False")
        check_whole("concurrency", self.concurrency, 1, 10_000)
        check_whole("retries", self.retries, 0, 1_000)
        if self.timeout_s is not None:
            check_number("timeout", self.timeout_s, 0.0)
        if self.per_row:
            return
        if self.is_async:
            raise bad_argument("fn", self.fn, "a plain function; a coroutine needs per_row=True")
        for name, value, plain in (
            ("concurrency", self.concurrency, 1),
            ("ordered", self.ordered, True),
            ("retries", self.retries, 0),
            ("timeout", self.timeout_s, None),
        ):
            if value != plain:
                raise bad_argument(name, value, f"{plain}, unless per_row=True")

    @property
    def is_async(self) -> bool:
        return is_coroutine_function(self.fn)


def is_coroutine_function(fn: Any) -> bool:
    called = getattr(fn, "__call__", None)  # noqa: B004 - an object may be called as one
    return asyncio.iscoroutinefunction(fn) or inspect.iscoroutinefunction(called)
