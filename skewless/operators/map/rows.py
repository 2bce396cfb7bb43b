"""Calls a user's function row by row, with as many rows in flight as asked for."""

import asyncio
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent import futures
from contextlib import closing
from typing import Any, NamedTuple

from skewless.operators.map.function import MapFunction

Clock = Callable[[], float]
# In order, a row that takes long holds back those behind it: so many times the concurrency.
_HELD_BACK = 64


class Row(NamedTuple):
    """A row on its way into the function."""

    hash: int
    values: dict[str, Any]


class Outcome(NamedTuple):
    """What became of a row: the function's result, or its failure; and what the call took."""

    row: Row
    result: Any
    failure: Exception | None
    took_s: float


class RowTimeoutError(Exception):
    """A call took longer than the option timeout allows."""


def call_rows(function: MapFunction, rows: Iterable[Row], clock: Clock) -> Iterator[Outcome]:
    """The outcome of every row: in the order of the rows, or as they come where that is allowed."""
    if function.is_async:
        return _with_coroutines(function, iter(rows), clock)
    if function.concurrency == 1:
        return (_call(function, row, clock) for row in rows)
    return _with_threads(function, iter(rows), clock)


def _call(function: MapFunction, row: Row, clock: Clock) -> Outcome:
    began = clock()
    failure: Exception | None = None
    for _ in range(1 + function.retries):
        try:
            if function.timeout_s is None:
                result = function.fn(row.values)
            else:
                result = _within(function.fn, row.values, function.timeout_s)
            return Outcome(row, result, None, clock() - began)
        except Exception as error:
            failure = error
    return Outcome(row, None, failure, clock() - began)


def _within(fn: Callable[..., Any], values: dict[str, Any], timeout_s: float) -> Any:
    """Calls in a thread of its own, which is left behind when the time is up.

    A thread cannot be stopped from outside; as a daemon it at least does not keep the worker alive.
    """
    answer: futures.Future[Any] = futures.Future()

    def work() -> None:
        try:
            answer.set_result(fn(values))
        except BaseException as error:
            answer.set_exception(error)

    threading.Thread(target=work, daemon=True).start()
    done, _ = futures.wait([answer], timeout_s)
    if not done:
        raise RowTimeoutError(f"the call took longer than {timeout_s:g} s")
    return answer.result()


async def _await(function: MapFunction, row: Row, clock: Clock) -> Outcome:
    began = clock()
    failure: Exception | None = None
    for _ in range(1 + function.retries):
        try:
            async with asyncio.timeout(function.timeout_s) as limit:
                result = await function.fn(row.values)
            return Outcome(row, result, None, clock() - began)
        except Exception as error:
            failure = error
            if isinstance(error, TimeoutError) and limit.expired():
                failure = RowTimeoutError(f"the call took longer than {function.timeout_s:g} s")
    return Outcome(row, None, failure, clock() - began)


def _with_threads(function: MapFunction, rows: Iterator[Row], clock: Clock) -> Iterator[Outcome]:
    pool = futures.ThreadPoolExecutor(function.concurrency)

    def finished(running: Iterable[Any]) -> Iterable[Any]:
        return futures.wait(running, return_when=futures.FIRST_COMPLETED).done

    try:
        yield from _in_flight(
            function, rows, lambda row: pool.submit(_call, function, row, clock), finished
        )
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _with_coroutines(function: MapFunction, rows: Iterator[Row], clock: Clock) -> Iterator[Outcome]:
    with closing(asyncio.new_event_loop()) as loop:

        def finished(running: Iterable[Any]) -> Iterable[Any]:
            waiting = asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
            return loop.run_until_complete(waiting)[0]

        try:
            yield from _in_flight(
                function, rows, lambda row: loop.create_task(_await(function, row, clock)), finished
            )
        finally:
            left = asyncio.all_tasks(loop)
            for task in left:
                task.cancel()
            if left:
                loop.run_until_complete(asyncio.wait(left))
            loop.run_until_complete(loop.shutdown_asyncgens())


def _in_flight(
    function: MapFunction,
    rows: Iterator[Row],
    start: Callable[[Row], Any],
    finished: Callable[[Iterable[Any]], Iterable[Any]],
) -> Iterator[Outcome]:
    """Starts the next row as soon as one is done; hands outcomes over in order if asked to."""
    running: dict[Any, int] = {}
    ready: dict[int, Outcome] = {}
    started = given = 0
    more = True
    while True:
        while (
            more
            and len(running) < function.concurrency
            and len(ready) < _HELD_BACK * function.concurrency
        ):
            row = next(rows, None)
            if row is None:
                more = False
            else:
                running[start(row)] = started
                started += 1
        if not running:
            return
        for future in finished(running):
            number = running.pop(future)
            if function.ordered:
                ready[number] = future.result()
            else:
                yield future.result()
        while given in ready:
            yield ready.pop(given)
            given += 1
