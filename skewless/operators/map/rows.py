"""Calls a user's function row by row, with as many rows in flight as asked for."""

import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent import futures
from queue import Empty, SimpleQueue
from typing import Any

from skewless.engine.leftovers import leave_thread
from skewless.operators.map.coroutines import CoroutineCalls
from skewless.operators.map.function import MapFunction
from skewless.operators.map.outcome import (
    Clock,
    Outcome,
    Outcomes,
    Row,
    RowTimeoutError,
    consumed,
)

# With `ordered`, a slow row holds back at most this many times `concurrency` results.
_HELD_BACK = 64
Start = Callable[[Row], futures.Future[Outcome]]
Answered = SimpleQueue[futures.Future[Outcome]]


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
                result = consumed(function.fn(row.copied()))
            else:
                result = _within(function.fn, row.copied(), function.timeout_s)
            return Outcome(row, result, None, clock() - began)
        except (Exception, SystemExit) as error:
            failure = error
    return Outcome(row, None, failure, clock() - began)


def _within(fn: Callable[..., Any], values: dict[str, Any], timeout_s: float) -> Any:
    """Calls in a thread of its own, which is left behind when the time is up.

    A thread cannot be stopped from outside; as a daemon it at least does not keep the worker alive.
    """
    answer: futures.Future[Any] = futures.Future()

    def work() -> None:
        try:
            answer.set_result(consumed(fn(values)))
        except BaseException as error:
            answer.set_exception(error)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    done, _ = futures.wait([answer], timeout_s)
    if not done:
        leave_thread(thread)
        raise RowTimeoutError(timeout_s)
    return answer.result()


def _with_threads(function: MapFunction, rows: Iterator[Row], clock: Clock) -> Outcomes:
    pool = futures.ThreadPoolExecutor(function.concurrency)
    try:
        yield from _in_flight(
            function,
            rows,
            lambda row: pool.submit(_call, function, row, clock),
            lambda answered: answered.get(),
        )
    finally:
        # Running calls cannot be stopped; calls that have not started are cancelled.
        pool.shutdown(wait=False, cancel_futures=True)


def _with_coroutines(function: MapFunction, rows: Iterator[Row], clock: Clock) -> Outcomes:
    calls = CoroutineCalls(function, clock)

    def next_of(answered: Answered) -> futures.Future[Outcome]:
        wait_s = calls.patience_s
        while True:
            try:
                return answered.get(timeout=wait_s)
            except Empty:
                wait_s = calls.look_after()

    try:
        yield from _in_flight(function, rows, calls.start, next_of)
    finally:
        calls.close()


def _in_flight(
    function: MapFunction,
    rows: Iterator[Row],
    start: Start,
    next_of: Callable[[Answered], futures.Future[Outcome]],
) -> Iterator[Outcome]:
    """Starts the next row as soon as one is done; hands outcomes over in order if asked to."""
    running: dict[futures.Future[Outcome], int] = {}
    answered: Answered = SimpleQueue()
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
                future.add_done_callback(answered.put)
        if not running:
            return
        future = next_of(answered)
        number = running.pop(future)
        if not function.ordered:
            yield future.result()
            continue
        ready[number] = future.result()
        while given in ready:
            yield ready.pop(given)
            given += 1
