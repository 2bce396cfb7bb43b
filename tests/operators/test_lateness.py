"""How late rows may be: what the call says, what the inputs say, and both."""

import pytest

from skewless.errors import LateRowsWarning, SkewlessError
from skewless.operators.lateness import FROM_INPUT, OwnWatermark, delays_of, warn_of_late_rows

SECOND = 1_000_000
SILENT = OwnWatermark("left", "lt", None)
TOLD = OwnWatermark("right", "rt", 5 * SECOND)
CHAINED = OwnWatermark("right", "rt", 0, is_chained=True)


def test_the_inputs_speak_where_the_call_is_silent() -> None:
    both = {"left": SILENT, "right": TOLD}
    assert delays_of(FROM_INPUT, both) == {"left": None, "right": 5 * SECOND}
    elsewhere = OwnWatermark("left", "lt", None, elsewhere="seen")
    with pytest.raises(SkewlessError, match=r"has its watermark on 'seen', not on 'lt'"):
        delays_of(FROM_INPUT, {"left": elsewhere, "right": TOLD})


def test_the_call_and_the_inputs_must_agree() -> None:
    both = {"left": SILENT, "right": TOLD}
    told = {"left": 2 * SECOND, "right": 5 * SECOND}
    assert delays_of(("2 seconds", "5 seconds"), both) == told
    assert delays_of((None, "5 seconds"), both) == {"left": None, "right": 5 * SECOND}
    with pytest.raises(SkewlessError, match=r"but the right input has withWatermark\('rt'"):
        delays_of(("2 seconds", "6 seconds"), both)
    assert delays_of(["1 second"], {"right": CHAINED}) == {"right": SECOND}, "the call decides"


def test_a_delay_is_not_negative() -> None:
    with pytest.raises(SkewlessError, match="watermark: got '-1 second'"):
        delays_of(["-1 second"], {"left": SILENT})


def test_the_default_warns_where_the_user_calls() -> None:
    with pytest.warns(LateRowsWarning, match=r"every row at or before") as seen:
        warn_of_late_rows("row", stacklevel=1)
    assert seen[0].filename == __file__
