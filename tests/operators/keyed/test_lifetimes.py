"""How long rows of a keyed operator are kept, and when they are late."""

import numpy as np
import pyarrow as pa

from skewless.operators.keyed.layout import INPUT, STATE
from skewless.operators.keyed.lifetimes import Lifetimes
from skewless.operators.keyed.process import Count, Function, SelfJoin
from skewless.operators.keyed.windows import SessionWindow, Windows

SECOND = 1_000_000
SLIDING = Windows(10 * SECOND, 5 * SECOND)
TIMES = np.array([0, 7 * SECOND])
FUNCTION = Function(lambda batch, state: (batch, state), pa.schema([]), None)


def test_what_was_given_out_is_dead_up_to_and_with_the_watermark() -> None:
    counted = Lifetimes(Count(), SLIDING, 0)
    assert counted.keep_from_us(None) == {INPUT: None, STATE: None}
    assert counted.keep_from_us(20) == {INPUT: 21, STATE: 21}
    paired = Lifetimes(SelfJoin("1 second"), None, 0)
    assert paired.keep_from_us(20 * SECOND) == {INPUT: 19 * SECOND, STATE: None}


def test_a_row_is_late_when_its_last_window_has_closed() -> None:
    closing = Lifetimes(Count(), SLIDING, 0).closing_us(TIMES)
    assert closing is not None
    assert closing.tolist() == [10 * SECOND, 15 * SECOND]
    session = Lifetimes(Count(), SessionWindow("3 seconds"), 0).closing_us(TIMES)
    assert session is not None
    assert session.tolist() == [3 * SECOND, 10 * SECOND]
    assert Lifetimes(Count(), None, 0).closing_us(TIMES) is None, "an aggregate that never closes"
    assert Lifetimes(FUNCTION, None, 0).closing_us(TIMES) is TIMES


def test_how_long_a_row_stays() -> None:
    assert Lifetimes(Count(), SLIDING, 2 * SECOND).kept_us() == SLIDING.length_us + 2 * SECOND
    assert Lifetimes(SelfJoin("4 seconds"), None, SECOND).kept_us() == 5 * SECOND
    assert Lifetimes(Count(), SLIDING, None).kept_us() is None
    assert Lifetimes(Count(), None, 0).kept_us() is None


def test_how_far_back_and_how_early_rows_are_given() -> None:
    assert Lifetimes(Count(), SLIDING, 0).reach_us() == 10 * SECOND
    assert Lifetimes(SelfJoin("4 seconds"), None, 0).reach_us() == 4 * SECOND
    assert Lifetimes(Count(), None, 0).reach_us() == 0
    # A raw row is stored under the end of its last window, and is due in the first one.
    assert Lifetimes(FUNCTION, SLIDING, 0).earliest_due_us(15 * SECOND) == 10 * SECOND
    assert Lifetimes(Count(), SLIDING, 0).earliest_due_us(15 * SECOND) == 15 * SECOND
