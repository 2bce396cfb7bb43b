"""Calls of a coroutine function on the shared event loop, and a watch over them from outside.

A coroutine may block the loop, or go on when it is cancelled. A limit that is kept on the loop
alone would not hold for either.
"""

import asyncio
import threading
import time
from concurrent import futures
from dataclasses import dataclass, field
from typing import Any

from skewless.operators.map.event_loop import blocking_call, current_call, give_up, shared_loop
from skewless.operators.map.function import MapFunction
from skewless.operators.map.outcome import Clock, Outcome, Row, RowTimeoutError, consumed

# How long a call may take to end when it is cancelled, and a loop to answer; less where the limit
# of a call is less.
_GRACE_S = 2.0
# A limit that is reached so much later than it was set for was held up by other calls.
_HELD_UP_S = 0.02
_BLOCKS = ", and blocked the event loop; await something, or use a plain function"


@dataclass(eq=False)
class _Call:
    """The call of a row, over all its tries."""

    row: Row
    answer: futures.Future[Outcome]
    began: float
    tries: int  # how many are left
    turn: int = 0  # what an earlier turn says, on a loop that was given up, does not count
    try_began: float | None = None
    tasks: set[asyncio.Future[Any]] = field(default_factory=set)


class CoroutineCalls:
    """The calls in flight of one batch."""

    def __init__(self, function: MapFunction, clock: Clock) -> None:
        self._function = function
        self._clock = clock
        self._loop = shared_loop()
        self._limit_s = function.timeout_s
        self._grace_s = min(_GRACE_S, _GRACE_S if self._limit_s is None else self._limit_s)
        self._lock = threading.Lock()  # between the loop's thread and ours
        self._calls: set[_Call] = set()
        self._silent_since: float | None = None
        self._immortal = False  # some call did not end when it was cancelled

    @property
    def patience_s(self) -> float | None:
        """After so long without any outcome, the loop has to be looked after."""
        return self._limit_s

    def start(self, row: Row) -> futures.Future[Outcome]:
        answer: futures.Future[Outcome] = futures.Future()
        call = _Call(row, answer, self._clock(), 1 + self._function.retries)
        with self._lock:
            self._calls.add(call)
        self._submit(call)
        return answer

    def look_after(self) -> float:
        """Gives a loop up that a call has blocked for too long; how long to wait for the next look.

        The call that blocks it has failed. Others are made again on a new loop: whether they were
        about to end cannot be known.
        """
        assert self._limit_s is not None, "without a limit a call may block for ever"
        task, _ = blocking_call(self._loop)
        if self._answers():
            self._silent_since = None
            return self._limit_s
        now = time.monotonic()
        same, call = blocking_call(self._loop)
        if same is not task:
            return self._grace_s  # busy, not blocked
        if call is not None:
            began = call.try_began if call in self._calls else None
            left = 0.0 if began is None else began + self._limit_s - now
            if left > 0:
                return float(left)
            self._move([call])  # or one that was given up blocks it: then nobody fails
            return self._limit_s
        # A callback blocks it, or the machine is very busy: who is at fault cannot be told.
        self._silent_since = now if self._silent_since is None else self._silent_since
        if now - self._silent_since < self._limit_s + self._grace_s:
            return self._grace_s
        with self._lock:
            timed = [(c, c.try_began) for c in self._calls]
        self._move([c for c, began in timed if began and began + self._limit_s <= now])
        return self._limit_s

    def close(self) -> None:
        """Ends what is in flight, as far as it can be ended."""
        with self._lock:
            left = list(self._calls)
            self._calls.clear()
            for call in left:
                call.turn += 1
        if left:
            ended = asyncio.run_coroutine_threadsafe(self._cancelled(left), self._loop)
            try:
                ended.result(2 * self._grace_s)
            except futures.TimeoutError:
                self._immortal = True
        if self._immortal:
            give_up(self._loop)

    def _submit(self, call: _Call) -> None:
        call.try_began = None
        work = self._tried(call, call.turn)
        asyncio.run_coroutine_threadsafe(work, self._loop)

    def _move(self, failed: list[_Call]) -> None:
        """To a new loop with all calls but those that have failed and have no try left."""
        give_up(self._loop)
        self._loop = shared_loop()
        self._silent_since = None
        assert self._limit_s is not None, "without a limit nothing is overdue"
        with self._lock:
            moved = list(self._calls)
            for call in moved:
                call.turn += 1
                call.tasks = set()
        for call in moved:
            if call in failed:
                call.tries -= 1
                if not call.tries:
                    self._end(call, call.turn, None, RowTimeoutError(self._limit_s, _BLOCKS))
                    continue
            self._submit(call)

    def _answers(self) -> bool:
        heard = threading.Event()
        self._loop.call_soon_threadsafe(heard.set)
        return heard.wait(self._grace_s)

    def _end(self, call: _Call, turn: int, result: Any, failure: BaseException | None) -> None:
        with self._lock:
            if call.turn != turn:
                return
            call.turn += 1
            self._calls.discard(call)
        call.answer.set_result(Outcome(call.row, result, failure, self._clock() - call.began))

    # What follows runs on the loop.

    async def _tried(self, call: _Call, turn: int) -> None:
        me = asyncio.current_task()
        assert me is not None, "runs in a task"
        call.tasks.add(me)
        if self._limit_s is not None:
            current_call.set(call)
        try:
            while call.turn == turn:
                call.try_began = time.monotonic()
                if self._limit_s is None:
                    result, failure = await self._once(call)
                else:
                    result, failure = await self._limited(call, self._limit_s)
                with self._lock:
                    if call.turn != turn:
                        return
                    call.tries -= 1
                if failure is None or not call.tries:
                    self._end(call, turn, result, failure)
        except asyncio.CancelledError as cancelled:  # by us, or by somebody else
            self._end(call, turn, None, cancelled)

    async def _once(self, call: _Call) -> tuple[Any, BaseException | None]:
        turn = call.turn
        try:
            return consumed(await self._function.fn(call.row.copied())), None
        except asyncio.CancelledError as cancelled:
            if call.turn != turn:
                raise  # by us: nobody wants the outcome any more
            return None, cancelled
        except (SystemExit, KeyboardInterrupt) as death:
            return None, death  # or it would end the loop, and with it all calls that come after
        except Exception as error:
            return None, error

    async def _limited(self, call: _Call, limit_s: float) -> tuple[Any, BaseException | None]:
        """One try in a task of its own, which is left behind if it does not end in time."""
        loop = asyncio.get_running_loop()
        work = loop.create_task(self._once(call))
        call.tasks.add(work)
        left, granted = limit_s, 0.0
        while left > 0:
            due = loop.time() + left
            await asyncio.wait([work], timeout=left)
            if work.done():
                call.tasks.discard(work)
                return await work
            # Not this call's time: others held up the loop. At most as much again is granted.
            late = min(loop.time() - due, limit_s - granted)
            granted += late
            left = late if late > _HELD_UP_S else 0.0
        work.cancel()
        await asyncio.wait([work], timeout=self._grace_s)
        call.tasks.discard(work)
        self._immortal |= not work.done()
        return None, RowTimeoutError(limit_s)

    async def _cancelled(self, calls: list[_Call]) -> None:
        tasks = {task for call in calls for task in call.tasks if not task.done()}
        for task in tasks:
            task.cancel()
        if tasks:
            _, pending = await asyncio.wait(tasks, timeout=self._grace_s)
            self._immortal |= bool(pending)
