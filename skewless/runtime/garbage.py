"""Frees what earlier batches still hold in Java."""

import gc
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field

BATCHES = 100
MOST_OF_TIME = 0.01


@dataclass
class GarbageCollection:
    """A full collection of Python's garbage every 100 batches, for at most 1 % of the time.

    Py4J's object and its methods refer to each other. So a DataFrame that Python no longer uses is
    freed in Java only when Python collects such cycles. One that was in use during a few young
    collections waits for a full one, and Python delays that until a quarter more objects have
    come: for many thousands of batches.
    """

    collect: Callable[[], object] = gc.collect
    clock_s: Callable[[], float] = time.perf_counter
    _batches: int = field(default=0, init=False)
    _not_before_s: float = field(default=-math.inf, init=False)

    def after_batch(self) -> None:
        self._batches += 1
        # Whoever turned Python's own collection off wants to choose the moment.
        if self._batches < BATCHES or not gc.isenabled():
            return
        started_s = self.clock_s()
        if started_s < self._not_before_s:
            return
        self.collect()
        ended_s = self.clock_s()
        self._batches = 0
        self._not_before_s = ended_s + (ended_s - started_s) / MOST_OF_TIME
