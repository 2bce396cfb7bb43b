"""LeastWork's ledger: what an instance still has to do, and what is learned from it."""

import numpy as np
import pytest

from skewless.lab.reproduce.online.work_ledger import (
    estimate,
    fade,
    ledger_acknowledge,
    ledger_assign,
    new_ledger,
    work_left,
)

CELLS = np.array([[0], [1], [0]])  # items 0 and 2 share a cell


def ledger(instances: int = 2, heaviest: int = 0):
    return new_ledger(instances, 1, 2, 3, heaviest)


def teach(book, item: int, time: float, times: int = 1) -> None:
    for _ in range(times):
        where, booked = ledger_assign(book, item, CELLS[item], 0.0, 0)
        ledger_acknowledge(book, where, item, CELLS[item], time, booked, 0.0, 0.0, 0.0)


def test_before_anything_is_known_all_are_alike() -> None:
    book = ledger()
    assert estimate(book, 0, CELLS[0]) == 1.0
    assert [ledger_assign(book, 0, CELLS[0], 0.0, 0)[0] for _ in range(4)] == [0, 1, 0, 1]


def test_a_tuple_goes_where_it_is_done_first() -> None:
    book = ledger()
    teach(book, 0, 10.0)
    teach(book, 1, 2.0)
    assert ledger_assign(book, 0, CELLS[0], 0.0, 0) == (0, 10.0)
    assert [ledger_assign(book, 1, CELLS[1], 0.0, 0)[0] for _ in range(4)] == [1, 1, 1, 1]
    assert work_left(book, 1, 0.0) == 8.0


def giants_ledger(instances: int = 3):
    """Item 0 takes 130 times as long as item 1, and item 1 is nearly all there is."""
    book = ledger(instances)
    teach(book, 1, 1.0, times=199)
    teach(book, 0, 130.0)
    for i in range(instances):
        ledger_assign(book, 1, CELLS[1], 0.0, i)
    return book


def test_giants_wait_behind_each_other() -> None:
    book = giants_ledger()
    where = [ledger_assign(book, 0, CELLS[0], 0.0, turn)[0] for turn in (1, 2, 0, 2)]
    assert where == [1, 1, 1, 1]
    assert ledger_assign(book, 1, CELLS[1], 0.0, 1)[0] != 1, "others do not wait behind them"


def test_a_giant_waits_no_longer_than_ten_times_what_it_takes() -> None:
    book = giants_ledger(2)
    where = [ledger_assign(book, 0, CELLS[0], 0.0, 0)[0] for _ in range(12)]
    assert where == [0] * 9 + [1] * 3
    assert work_left(book, 0, 0.0) <= 10 * 130.0


def test_a_giant_does_not_pass_by_an_idle_instance() -> None:
    book = ledger(2)
    teach(book, 1, 1.0, times=199)
    teach(book, 0, 130.0)
    assert ledger_assign(book, 0, CELLS[0], 0.0, 0)[0] == 0
    assert ledger_assign(book, 0, CELLS[0], 0.0, 0)[0] == 1


def test_what_costs_a_few_times_the_mean_is_no_giant() -> None:
    book = ledger(2)
    teach(book, 1, 1.0, times=20)
    teach(book, 0, 10.0)
    assert [ledger_assign(book, 0, CELLS[0], 0.0, 0)[0] for _ in range(4)] == [0, 1, 0, 1]


def test_time_passes_and_an_idle_instance_owes_nothing() -> None:
    book = ledger(1)
    teach(book, 0, 10.0)
    ledger_assign(book, 0, CELLS[0], 0.0, 0)
    assert work_left(book, 0, 4.0) == 6.0
    ledger_acknowledge(book, 0, 0, CELLS[0], 10.0, 10.0, 10.0, 0.0, 0.0)
    assert work_left(book, 0, 11.0) == 0.0
    assert ledger_assign(book, 0, CELLS[0], 50.0, 0) == (0, 10.0)
    assert work_left(book, 0, 51.0) == 9.0, "idle time is not made up for"


def test_a_tuple_that_outlasts_its_estimate_is_not_thought_to_be_done() -> None:
    book = ledger(1)
    teach(book, 0, 10.0)
    ledger_assign(book, 0, CELLS[0], 0.0, 0)
    left = [work_left(book, 0, now) for now in (9.0, 11.0, 20.0, 40.0)]
    assert left == pytest.approx([1.0, 2.0, 10.0, 30.0])


def test_an_acknowledgement_may_be_on_its_way() -> None:
    book = ledger(1)
    where, booked = ledger_assign(book, 0, CELLS[0], 0.0, 0)
    ledger_acknowledge(book, where, 0, CELLS[0], 10.0, booked, 10.0, 3.0, 0.0)
    ledger_assign(book, 0, CELLS[0], 20.0, 0)
    left = [work_left(book, 0, now) for now in (29.0, 30.0, 33.0, 34.0, 40.0)]
    assert left == pytest.approx([1.0, 0.0, 0.0, 2.0, 7.0])


def test_an_acknowledgement_corrects_what_follows() -> None:
    book = ledger(1)
    teach(book, 0, 10.0)
    ledger_assign(book, 0, CELLS[0], 0.0, 0)
    ledger_assign(book, 0, CELLS[0], 0.0, 0)
    ledger_acknowledge(book, 0, 0, CELLS[0], 30.0, 10.0, 30.0, 0.0, 10.0)
    assert work_left(book, 0, 31.0) == 9.0, "the second began when the first was done"


@pytest.mark.parametrize(("window", "decay"), [(1, 0.5), (8, 0.01)])
def test_what_was_seen_long_ago_keeps_its_estimate(window: int, decay: float) -> None:
    book = ledger(heaviest=2)
    teach(book, 0, 10.0)
    teach(book, 1, 2.0)
    for _ in range(5_000):
        fade(book, window, decay)
    assert estimate(book, 0, CELLS[0]) == pytest.approx(10.0)
    assert estimate(book, 1, CELLS[1]) == pytest.approx(2.0)
    teach(book, 0, 30.0)
    assert estimate(book, 0, CELLS[0]) == pytest.approx(30.0, rel=0.01)


def test_the_heaviest_are_told_apart_from_what_shares_their_cell() -> None:
    book = ledger(heaviest=1)
    teach(book, 2, 1.0, 10)
    teach(book, 0, 100.0, 10)
    assert estimate(book, 0, CELLS[0]) == pytest.approx(100.0)
    assert estimate(book, 2, CELLS[2]) == pytest.approx((1000 + 10) / 20)


def test_speeds_are_learned() -> None:
    book = ledger()
    for _ in range(2_000):
        for where, time in ((0, 20.0), (1, 10.0)):
            cost = estimate(book, 0, CELLS[0])
            booked = cost * book.slowness[where]
            book.outstanding[where] += 1
            book.pending[where] += booked
            ledger_acknowledge(book, where, 0, CELLS[0], time, booked, 0.0, 0.0, 0.0)
    assert book.slowness[0] / book.slowness[1] == pytest.approx(2.0, rel=0.05)
    assert estimate(book, 0, CELLS[0]) == pytest.approx(15.0, rel=0.05)


def test_the_past_fades() -> None:
    book = ledger()
    teach(book, 0, 10.0, 100)
    fade(book, 1, 0.5)
    teach(book, 0, 20.0, 100)
    assert estimate(book, 0, CELLS[0]) == pytest.approx((50 * 10 + 100 * 20) / 150, rel=0.02)
