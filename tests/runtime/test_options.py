"""The options of a writer, apart: which are ours, and which the format gets."""

import pytest

from skewless.errors import SkewlessError
from skewless.runtime.options import WriterOptions


def test_names_are_case_insensitive_and_the_last_spelling_holds() -> None:
    options = WriterOptions()
    options.put("checkpointLocation", "/a")
    options.put("CHECKPOINTLOCATION", "/b")
    options.put("Header", False)
    options.put("header", True)
    assert options.own().checkpoint_location == "/b"
    assert options.of_format() == {"header": "true"}


def test_none_takes_an_option_back() -> None:
    options = WriterOptions()
    options.put("badRows", "drop")
    assert options.own().drops_bad_rows
    options.put("badrows", None)
    assert options.own().bad_rows is None
    assert not options.own().drops_bad_rows


def test_what_is_ours_must_not_be_empty() -> None:
    options = WriterOptions()
    options.put("sep", "")
    options.own()
    options.put("deadLetterPath", "")
    with pytest.raises(SkewlessError, match="deadLetterPath: got ''"):
        options.own()


def test_bad_rows_fail_or_are_dropped() -> None:
    options = WriterOptions()
    options.own().check()
    options.put("badRows", "ignore")
    with pytest.raises(SkewlessError, match="badRows: got 'ignore'; takes 'fail' or 'drop'"):
        options.own().check()
