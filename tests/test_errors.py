"""Errors name the argument, what it got and what it takes."""

import pytest

from skewless.errors import SkewlessError, bad_argument, check_parameters


def test_bad_argument_is_a_value_error() -> None:
    error = bad_argument("how", "outer", "'inner'")
    assert isinstance(error, SkewlessError)
    assert isinstance(error, ValueError)
    assert str(error) == "how: got 'outer'; takes 'inner'"


def test_a_function_must_take_its_arguments() -> None:
    check_parameters("process", lambda batch, state: None, 2, "a function of two")
    check_parameters("process", lambda *both: None, 2, "a function of two")
    with pytest.raises(SkewlessError, match=r"process: got .*; takes a function of two \(missing"):
        check_parameters("process", lambda batch, state, more: None, 2, "a function of two")
