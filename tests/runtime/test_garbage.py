"""What a batch leaves in reference cycles, as Py4J's objects do, is freed after a while."""

import gc
import weakref
from typing import Any

import pytest

from skewless.runtime.garbage import BATCHES, GarbageCollection
from skewless.runtime.step import Step


class Clock:
    """Seconds that pass when told to."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


class Collections:
    """Counts collections, each of which takes some seconds."""

    def __init__(self, clock: Clock, takes_s: float = 0.0) -> None:
        self.clock = clock
        self.takes_s = takes_s
        self.ended_s: list[float] = []

    def __call__(self) -> None:
        self.clock.now_s += self.takes_s
        self.ended_s.append(self.clock.now_s)


class Frame:
    """A DataFrame: an object of Py4J is part of a cycle as soon as a method of it was called."""

    def __init__(self) -> None:
        self.method = self


def run(garbage: GarbageCollection, clock: Clock, batches: int, batch_s: float = 1.0) -> None:
    for _ in range(batches):
        clock.now_s += batch_s
        garbage.after_batch()


def test_every_so_many_batches() -> None:
    clock = Clock()
    collections = Collections(clock)
    run(GarbageCollection(collections, clock), clock, 3 * BATCHES + 50)
    assert collections.ended_s == [BATCHES, 2 * BATCHES, 3 * BATCHES]


def test_a_slow_collection_takes_at_most_its_share_of_the_time() -> None:
    clock = Clock()
    collections = Collections(clock, takes_s=3.0)
    run(GarbageCollection(collections, clock), clock, 5_000)
    first, *others = collections.ended_s
    assert first == BATCHES + 3
    assert len(others) > 5
    assert 0.008 < 3 * len(others) / (others[-1] - first) <= 0.01


def test_never_where_the_user_collects(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    collections = Collections(clock)
    monkeypatch.setattr(gc, "isenabled", lambda: False)
    run(GarbageCollection(collections, clock), clock, 5 * BATCHES)
    assert collections.ended_s == []


def test_the_frames_of_many_batches_do_not_pile_up() -> None:
    """Each is in use during a young collection, after which only a full one finds it."""
    clock = Clock()
    live: weakref.WeakSet[Frame] = weakref.WeakSet()

    class Batches(Step):
        def _run(self, batch: Any, batch_id: int) -> None:
            clock.now_s += 100
            frame = Frame()
            live.add(frame)
            gc.collect(1)

    nothing: Any = None
    step = Batches(nothing, nothing, nothing, garbage=GarbageCollection(clock_s=clock))
    most = 0
    for batch in range(3 * BATCHES):
        step(nothing, batch)
        most = max(most, len(live))
    assert BATCHES // 2 < most <= BATCHES
    assert len(live) == 0
