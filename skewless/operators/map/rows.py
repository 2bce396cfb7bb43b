"""Calls a user's function row by row, with as many rows in flight as asked for."""

import asyncio
import threading
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent import futures
from copy import deepcopy
from queue import SimpleQueue
from types import GeneratorType
from typing import Any, NamedTuple

from skewless.operators.map.event_loop import shared_loop
from skewless.operators.map.function import MapFunction

Clock = Callable[[], float]
# In order, a row that takes long holds back those behind it: so many times the concurrency.
_HELD_BACK = 64


class Row(NamedTuple):
    """A row on its way into the function."""

    hash: int
    values: dict[str, Any]

    def copied(self) -> dict[str, Any]:
        """For one try: what a call does to its row, no other try and no message is to see."""
        fresh = dict(self.values)
        for name, value in fresh.items():
            if isinstance(value, list | dict):  # whatever else Arrow gives cannot be changed
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


def call_rows(function: MapFunction, rows: Iterable[Row], clock: Clock) -> Outcomes:
    """The outcome of every row: in the order of the rows, or as they come where that is allowed."""
    if function.is_async:
        return _with_coroutines(function, iter(rows), clock)
    if function.concurrency == 1:
        return (_call(function, row, clock) for row in rows)
    return _with_threads(function, iter(rows), clock)


def _call(function: MapFunction, row: Row, clock: Clock) -> Outcome:
    began = clock()
    failure: BaseException | None = None
    for _ in range(1 + function.retries):
        try:
            if function.timeout_s is None:
                result = _result(function.fn, row.copied())
            else:
                result = _within(function.fn, row.copied(), function.timeout_s)
            return Outcome(row, result, None, clock() - began)
        except (Exception, SystemExit) as error:
            failure = error
    return Outcome(row, None, failure, clock() - began)


def _result(fn: Callable[..., Any], values: dict[str, Any]) -> Any:
    return _consumed(fn(values))


def _consumed(result: Any) -> Any:
    """A generator works while it is consumed, and that belongs to the call."""
    return list(result) if isinstance(result, GeneratorType) else result


def _within(fn: Callable[..., Any], values: dict[str, Any], timeout_s: float) -> Any:
    """Calls in a thread of its own, which is left behind when the time is up.

    A thread cannot be stopped from outside; as a daemon it at least does not keep the worker alive.
    """
    answer: futures.Future[Any] = futures.Future()

    def work() -> None:
        try:
            answer.set_result(_result(fn, values))
        except BaseException as error:
            answer.set_exception(error)

    threading.Thread(target=work, daemon=True).start()
    done, _ = futures.wait([answer], timeout_s)
    if not done:
        raise RowTimeoutError(f"the call took longer than {timeout_s:g} s")
    return answer.result()


async def _await(function: MapFunction, row: Row, clock: Clock) -> Outcome:
    began = clock()
    failure: BaseException | None = None
    task = asyncio.current_task()
    for _ in range(1 + function.retries):
        try:
            async with asyncio.timeout(function.timeout_s) as limit:
                result = _consumed(await function.fn(row.copied()))
            return Outcome(row, result, None, clock() - began)
        except asyncio.CancelledError as cancelled:
            if task is not None and task.cancelling():
                raise  # by us: nobody wants the outcome any more
            failure = cancelled
        except (SystemExit, KeyboardInterrupt) as death:
            failure = death  # or it would end the loop, and with it all calls that come after
        except Exception as error:
            failure = error
            if isinstance(error, TimeoutError) and limit.expired():
                failure = RowTimeoutError(f"the call took longer than {function.timeout_s:g} s")
    return Outcome(row, None, failure, clock() - began)


def _with_threads(function: MapFunction, rows: Iterator[Row], clock: Clock) -> Outcomes:
    pool = futures.ThreadPoolExecutor(function.concurrency)
    try:
        yield from _in_flight(function, rows, lambda row: pool.submit(_call, function, row, clock))
    finally:
        # What runs cannot be stopped; what has not begun never will.
        pool.shutdown(wait=False, cancel_futures=True)


def _with_coroutines(function: MapFunction, rows: Iterator[Row], clock: Clock) -> Outcomes:
    loop = shared_loop()
    running: set[asyncio.Task[Any]] = set()

    async def tracked(row: Row) -> Outcome:
        task = asyncio.current_task()
        assert task is not None, "runs in a task"
        running.add(task)
        try:
            return await _await(function, row, clock)
        finally:
            running.discard(task)

    async def cancel() -> None:
        left = list(running)
        for task in left:
            task.cancel()
        if left:
            await asyncio.wait(left)

    try:
        yield from _in_flight(
            function, rows, lambda row: asyncio.run_coroutine_threadsafe(tracked(row), loop)
        )
    finally:
        asyncio.run_coroutine_threadsafe(cancel(), loop).result()


def _in_flight(
    function: MapFunction, rows: Iterator[Row], start: Callable[[Row], futures.Future[Outcome]]
) -> Iterator[Outcome]:
    """Starts the next row as soon as one is done; hands outcomes over in order if asked to."""
    running: dict[futures.Future[Outcome], int] = {}
    done: SimpleQueue[futures.Future[Outcome]] = SimpleQueue()
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
                future = start(row)
                running[future] = started
                started += 1
                future.add_done_callback(done.put)
        if not running:
            return
        future = done.get()
        number = running.pop(future)
        if not function.ordered:
            yield future.result()
            continue
        ready[number] = future.result()
        while given in ready:
            yield ready.pop(given)
            given += 1
