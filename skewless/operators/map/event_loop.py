"""The event loop on which a worker process runs the coroutines of its maps."""

import asyncio
import threading
from collections.abc import Coroutine
from contextvars import ContextVar
from typing import Any
from weakref import WeakKeyDictionary

from skewless.engine.leftovers import leave_loop

# The call of a row on whose behalf a task runs; tasks that it starts inherit it.
current_call: ContextVar[Any] = ContextVar("current_call", default=None)
_calls: WeakKeyDictionary[asyncio.Future[Any], Any] = WeakKeyDictionary()
_shared: list[asyncio.AbstractEventLoop] = []
_lock = threading.Lock()
# What calls that are cancelled may still do on a loop that was given up.
_FAREWELL_S = 1.0


def shared_loop() -> asyncio.AbstractEventLoop:
    """One loop for all batches of a process, so that a client may outlive the batch that opened it.

    It runs in a thread of its own: where rows are waited for, or results are handed over slowly,
    calls in flight go on, and their time limits mean what they say.
    """
    with _lock:
        if not _shared:
            loop = asyncio.new_event_loop()
            make: Any = _new_task  # typed more narrowly than it is called
            loop.set_task_factory(make)
            name = "skewless-event-loop"
            threading.Thread(target=loop.run_forever, name=name, daemon=True).start()
            _shared.append(loop)
        return _shared[0]


def give_up(loop: asyncio.AbstractEventLoop) -> None:
    """Leaves a loop behind that a call blocks, or on which one does not end; it stops if it can."""
    with _lock:
        if loop not in _shared:
            return
        _shared.remove(loop)
    leave_loop(loop)
    loop.call_soon_threadsafe(_stop, loop)


def blocking_call(loop: asyncio.AbstractEventLoop) -> tuple[Any, Any]:
    """The task that a loop runs at this moment, and the call that it belongs to."""
    task = asyncio.current_task(loop)
    return task, None if task is None else _calls.get(task)


def _new_task(
    loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, Any], **options: Any
) -> asyncio.Future[Any]:
    task = asyncio.Task(work, loop=loop, **options)
    call = current_call.get()
    if call is not None:
        _calls[task] = call
    return task


def _stop(loop: asyncio.AbstractEventLoop) -> None:
    loop.set_exception_handler(lambda *_: None)  # that some do not end is known
    for task in asyncio.all_tasks(loop):
        task.cancel()
    loop.call_later(_FAREWELL_S, loop.stop)
