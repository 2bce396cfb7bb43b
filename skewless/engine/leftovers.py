"""Calls that were given up and still run: a process that has any should not be used again.

Python cannot stop a thread from outside. What a process leaves behind goes on until it ends by
itself, or the process does.
"""

import asyncio
import threading

_lock = threading.Lock()
_threads: list[threading.Thread] = []
# Held, so that Python does not complain of tasks that nobody waits for.
_loops: list[asyncio.AbstractEventLoop] = []


def leave_thread(thread: threading.Thread) -> None:
    with _lock:
        _threads[:] = [other for other in _threads if other.is_alive()]
        _threads.append(thread)


def leave_loop(loop: asyncio.AbstractEventLoop) -> None:
    _loops.append(loop)


def left_behind() -> bool:
    """Whether a later task would share the process with calls that were given up.

    A loop that was given up counts for ever: clients that were opened on it cannot be used on
    another one.
    """
    return bool(_loops) or any(thread.is_alive() for thread in _threads)
