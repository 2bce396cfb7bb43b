"""The event loop on which a worker process runs the coroutines of its maps."""

import asyncio
import threading
from functools import cache


@cache
def shared_loop() -> asyncio.AbstractEventLoop:
    """One loop for all batches of a process, so that a client may outlive the batch that opened it.

    It runs in a thread of its own: where rows are waited for, or results are handed over slowly,
    calls in flight go on, and their time limits mean what they say.
    """
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="skewless-event-loop", daemon=True).start()
    return loop
