"""Rows in flight: order, concurrency, retries and time limits, in threads and as coroutines."""

import asyncio
import threading
import time

import pytest

from skewless.engine import leftovers
from skewless.operators.map.event_loop import shared_loop
from skewless.operators.map.function import MapFunction
from skewless.operators.map.outcome import Row, RowTimeoutError
from skewless.operators.map.rows import call_rows


def rows(count: int):
    return [Row(n, {"n": n}) for n in range(count)]


def outcomes(function: MapFunction, count: int = 20):
    return list(call_rows(function, rows(count), time.perf_counter))


def twice(row):
    return {"n": 2 * row["n"]}


async def twice_later(row):
    # Later rows are done sooner.
    for _ in range(20 - row["n"]):
        await asyncio.sleep(0)
    return twice(row)


@pytest.mark.parametrize("fn", [twice, twice_later])
@pytest.mark.parametrize("concurrency", [1, 3, 50])
def test_every_row_has_its_outcome_in_order(fn, concurrency: int) -> None:
    found = outcomes(MapFunction(fn, per_row=True, concurrency=concurrency))
    assert [o.row.values["n"] for o in found] == list(range(20))
    assert [o.result["n"] for o in found] == list(range(0, 40, 2))
    assert all(o.failure is None and o.took_s >= 0 for o in found)


def test_without_order_outcomes_come_as_they_are_done() -> None:
    others = asyncio.Event()

    async def first_comes_last(row):
        if row["n"] == 0:
            await others.wait()
        elif row["n"] == 18:
            others.set()
        return row

    function = MapFunction(first_comes_last, per_row=True, concurrency=2, ordered=False)
    found = [o.row.values["n"] for o in outcomes(function)]
    assert sorted(found) == list(range(20))
    assert found[:17] == list(range(1, 18))


def test_threads_really_run_side_by_side() -> None:
    """Three calls wait for each other: with fewer in flight none would ever return."""
    meeting = threading.Barrier(3, timeout=30)

    def meet(row):
        meeting.wait()
        return twice(row)

    found = outcomes(MapFunction(meet, per_row=True, concurrency=3), 9)
    assert [o.result["n"] for o in found] == list(range(0, 18, 2))


@pytest.mark.parametrize("is_async", [False, True])
def test_no_more_rows_are_in_flight_than_asked_for(is_async: bool) -> None:
    lock, now, most = threading.Lock(), 0, 0

    def enter(step: int) -> None:
        nonlocal now, most
        with lock:
            now += step
            most = max(most, now)

    meeting = threading.Barrier(4, timeout=30)

    def plain(row):
        enter(1)
        meeting.wait()
        enter(-1)
        return row

    four = asyncio.Barrier(4)

    async def later(row):
        enter(1)
        await four.wait()  # with fewer in flight nobody would ever pass
        enter(-1)
        return row

    fn = later if is_async else plain
    outcomes(MapFunction(fn, per_row=True, concurrency=4, ordered=False), 40)
    assert most == 4


def test_a_slow_row_holds_back_only_so_much() -> None:
    """In order the first row's outcome comes first, while others go on: 64 for each in flight."""
    first = threading.Event()
    seen_by_first: list[int] = []
    started: list[int] = []

    def call(row):
        started.append(row["n"])
        if row["n"] == 0:
            first.wait(30)
            seen_by_first.append(len(started))
        elif row["n"] == 128:
            first.set()
        return row

    found = outcomes(MapFunction(call, per_row=True, concurrency=2), 300)
    assert [o.row.values["n"] for o in found] == list(range(300))
    assert seen_by_first == [129], "the 129th row was the last to start before the first was done"


@pytest.mark.parametrize("timeout_s", [None, 30.0])
@pytest.mark.parametrize("is_async", [False, True])
def test_every_try_gets_the_row_as_it_was(is_async: bool, timeout_s) -> None:
    tries: set[int] = set()

    def spoil(row):
        row["n"] += 100
        row["list"].append(row["n"])
        if row["n"] not in tries:
            tries.add(row["n"])
            raise OSError("once")
        return row

    async def spoil_later(row):
        return spoil(row)

    fn = spoil_later if is_async else spoil
    function = MapFunction(fn, per_row=True, retries=1, timeout_s=timeout_s)
    given = [Row(n, {"n": n, "list": [n]}) for n in range(3)]
    found = list(call_rows(function, given, time.perf_counter))
    assert [o.result for o in found] == [{"n": n + 100, "list": [n, n + 100]} for n in range(3)]
    assert [o.row.values["list"] for o in found] == [[0], [1], [2]]


@pytest.mark.parametrize("is_async", [False, True])
def test_an_exit_is_a_failure_of_its_row_and_others_go_on(is_async: bool) -> None:
    def leave(row):
        if row["n"] == 3:
            raise SystemExit("enough")
        return row

    async def leave_later(row):
        return leave(row)

    fn = leave_later if is_async else leave
    for _ in range(2):
        found = outcomes(MapFunction(fn, per_row=True, concurrency=4))
        assert [o.row.values["n"] for o in found if o.failure is not None] == [3]
        assert isinstance(found[3].failure, SystemExit)


def test_a_coroutine_may_give_a_generator() -> None:
    async def many(row):
        return ({"n": n} for n in range(row["n"]))

    found = outcomes(MapFunction(many, per_row=True, concurrency=2), 4)
    assert [len(o.result) for o in found] == [0, 1, 2, 3]


@pytest.mark.parametrize("concurrency", [1, 3])
@pytest.mark.parametrize("is_async", [False, True])
def test_a_failing_call_is_repeated(is_async: bool, concurrency: int) -> None:
    tries: dict[int, int] = {}

    def sometimes(row):
        tries[row["n"]] = tries.get(row["n"], 0) + 1
        if row["n"] % 2 and tries[row["n"]] < 3:
            raise OSError("not yet")
        return row

    async def sometimes_later(row):
        return sometimes(row)

    fn = sometimes_later if is_async else sometimes
    function = MapFunction(fn, per_row=True, retries=2, concurrency=concurrency)
    assert all(o.failure is None for o in outcomes(function))
    tries.clear()
    once = MapFunction(fn, per_row=True, retries=1, concurrency=concurrency)
    failed = [o.row.values["n"] for o in outcomes(once) if isinstance(o.failure, OSError)]
    assert failed == list(range(1, 20, 2))


@pytest.mark.parametrize("concurrency", [1, 2])
@pytest.mark.parametrize("is_async", [False, True])
def test_a_call_that_takes_too_long_fails(is_async: bool, concurrency: int) -> None:
    release = threading.Event()

    def plain(row):
        if row["n"] == 2:
            release.wait(30)
        return row

    async def later(row):
        if row["n"] == 2:
            await asyncio.sleep(30)
        return row

    function = MapFunction(
        later if is_async else plain, per_row=True, timeout_s=0.05, concurrency=concurrency
    )
    found = outcomes(function, 5)
    release.set()
    assert [o.failure is not None for o in found] == [False, False, True, False, False]
    assert isinstance(found[2].failure, RowTimeoutError)
    assert "0.05 s" in str(found[2].failure)


def test_a_timeout_of_the_functions_own_is_its_failure() -> None:
    async def impatient(row):
        raise TimeoutError("the database did not answer")

    (found,) = outcomes(MapFunction(impatient, per_row=True, timeout_s=30.0), 1)
    assert type(found.failure) is TimeoutError


def test_calls_in_flight_end_with_their_consumer() -> None:
    begun, cancelled = [], []
    others = threading.Event()

    async def for_ever(row):
        begun.append(row["n"])
        if len(begun) == 3:
            others.set()
        try:
            while row["n"] > 0 or not others.is_set():
                await asyncio.sleep(0)
        except asyncio.CancelledError:
            cancelled.append(row["n"])
            raise

    some = call_rows(
        MapFunction(for_ever, per_row=True, concurrency=3), rows(10), time.perf_counter
    )
    assert next(iter(some)).row.values["n"] == 0
    some.close()
    assert sorted(cancelled) == sorted(n for n in begun if n > 0)
    assert len(cancelled) >= 2


def test_calls_go_on_while_nobody_asks_for_outcomes() -> None:
    """Otherwise a consumer that takes its time would make calls exceed their limits."""
    answered = threading.Event()

    async def soon(row):
        if row["n"] == 1:
            await asyncio.sleep(0.001)
            answered.set()
        return row

    function = MapFunction(soon, per_row=True, concurrency=2, timeout_s=30.0)
    found = iter(call_rows(function, rows(2), time.perf_counter))
    assert next(found).row.values["n"] == 0
    assert answered.wait(30)
    assert next(found).failure is None


def test_clients_may_outlive_a_batch() -> None:
    loops = set()

    async def note(row):
        loops.add(asyncio.get_running_loop())
        return row

    for _ in range(2):
        outcomes(MapFunction(note, per_row=True, concurrency=2), 3)
    assert len(loops) == 1


def test_a_cancellation_of_the_functions_own_is_its_failure() -> None:
    async def cancelled(row):
        raise asyncio.CancelledError("by a library")

    (found,) = outcomes(MapFunction(cancelled, per_row=True, retries=1), 1)
    assert isinstance(found.failure, asyncio.CancelledError)


@pytest.fixture
def nothing_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that has given up no call so far."""
    monkeypatch.setattr(leftovers, "_threads", [])
    monkeypatch.setattr(leftovers, "_loops", [])


@pytest.fixture
def release():
    """What calls are stuck at; let go after the test."""
    event = threading.Event()
    yield event
    event.set()


def check_only(found, late: set[int]) -> None:
    assert [o.row.values["n"] for o in found] == list(range(len(found)))
    assert {o.row.values["n"] for o in found if o.failure is not None} == late
    assert all(isinstance(found[n].failure, RowTimeoutError) for n in late)
    assert all(o.result == o.row.values for o in found if o.failure is None)


@pytest.mark.usefixtures("nothing_left")
@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("concurrency", [1, 5])
def test_a_coroutine_that_blocks_the_loop_fails_alone(release, concurrency, nested) -> None:
    before = shared_loop()

    async def block() -> None:
        release.wait(60)

    async def later(row):
        if row["n"] in (2, 7):
            await (asyncio.gather(block(), asyncio.sleep(0)) if nested else block())
        for _ in range(3):
            await asyncio.sleep(0)
        return row

    function = MapFunction(later, per_row=True, timeout_s=0.1, concurrency=concurrency)
    found = outcomes(function, 12)
    check_only(found, {2, 7})
    assert "blocked the event loop" in str(found[2].failure)
    assert shared_loop() is not before
    assert leftovers.left_behind(), "the worker is not to be used again"


@pytest.mark.usefixtures("nothing_left")
def test_a_coroutine_that_swallows_its_cancellation_fails_alone(release) -> None:
    before = shared_loop()

    async def stubborn(row):
        while row["n"] == 2 and not release.is_set():
            try:
                await asyncio.sleep(3_600)
            except asyncio.CancelledError:
                continue
        await asyncio.sleep(0)
        return row

    function = MapFunction(stubborn, per_row=True, timeout_s=0.1, concurrency=3, retries=1)
    check_only(outcomes(function, 8), {2})
    assert shared_loop() is not before
    assert leftovers.left_behind()


def test_calls_in_flight_that_do_not_end_do_not_hold_up_their_consumer(
    release, monkeypatch
) -> None:
    """Neither where they block the loop nor where they cannot be cancelled; with no limit set."""
    monkeypatch.setattr("skewless.operators.map.coroutines._GRACE_S", 0.05)

    begun = threading.Event()

    async def blocking(row):
        if row["n"]:
            begun.set()
            release.wait(60)
        return row

    async def stubborn(row):
        if row["n"]:
            begun.set()
        while row["n"] and not release.is_set():
            try:
                await asyncio.sleep(3_600)
            except asyncio.CancelledError:
                continue
        return row

    for fn in (blocking, stubborn):
        before = shared_loop()
        function = MapFunction(fn, per_row=True, concurrency=3)
        some = call_rows(function, rows(9), time.perf_counter)
        assert next(some).failure is None
        assert begun.wait(60)
        begun.clear()
        some.close()
        assert shared_loop() is not before


def test_a_call_that_was_blocked_is_tried_again(release) -> None:
    tries: list[int] = []

    async def once(row):
        tries.append(row["n"])
        if row["n"] == 1 and tries.count(1) == 1:
            release.wait(60)
        return row

    function = MapFunction(once, per_row=True, timeout_s=0.1, concurrency=2, retries=1)
    check_only(outcomes(function, 4), set())
    assert tries.count(1) == 2


@pytest.mark.usefixtures("nothing_left")
def test_threads_that_were_given_up_are_known_until_they_end() -> None:
    stuck = threading.Event()
    threads = []

    def plain(row):
        if row["n"] == 1:
            threads.append(threading.current_thread())
            stuck.wait(60)
        return row

    check_only(outcomes(MapFunction(plain, per_row=True, timeout_s=0.05), 3), {1})
    assert leftovers.left_behind()
    stuck.set()
    threads[0].join()
    assert not leftovers.left_behind()


@pytest.mark.parametrize("timeout_s", [None, 30.0])
def test_a_coroutine_that_cancels_itself_is_a_failure_of_its_row(timeout_s) -> None:
    async def gives_up(row):
        if row["n"] == 1:
            asyncio.current_task().cancel()
        await asyncio.sleep(0)
        return row

    found = outcomes(MapFunction(gives_up, per_row=True, timeout_s=timeout_s), 3)
    assert [isinstance(o.failure, asyncio.CancelledError) for o in found] == [False, True, False]
