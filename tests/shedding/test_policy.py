"""What `shed=` takes, and the limit that holds."""

from datetime import timedelta
from typing import Any

import pytest

from skewless.errors import SkewlessError
from skewless.shedding.policy import RandomDrop, Shed


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"max_latency": "soon"}, "max_latency"),
        ({"max_latency": "0 seconds"}, "max_latency"),
        ({"max_latency": "-1 second"}, "max_latency"),
        ({"max_latency": 3}, "max_latency"),
        ({"value": 7}, "value"),
        ({"value": ("a", "b", "c")}, "value"),
        ({"value": ("a", 1)}, "value"),
        ({"basic_windows": 0}, "basic_windows"),
        ({"basic_windows": 2.5}, "basic_windows"),
        ({"basic_windows": True}, "basic_windows"),
        ({"sample": 0}, "sample"),
        ({"sample": 1.5}, "sample"),
        ({"sample": "much"}, "sample"),
    ],
)
def test_wrong_options_are_named(options: dict[str, Any], named: str) -> None:
    with pytest.raises(SkewlessError, match=f"^{named}: got"):
        Shed(**options)


def test_the_limit_is_the_option_or_else_the_interval_of_the_trigger() -> None:
    assert Shed("2 seconds").limit_us(5_000_000) == 2_000_000
    assert Shed(timedelta(milliseconds=3)).limit_us(None) == 3_000
    assert RandomDrop().limit_us(5_000_000) == 5_000_000


@pytest.mark.parametrize("interval_us", [None, 0])
def test_without_any_limit_the_query_is_refused(interval_us: int | None) -> None:
    with pytest.raises(SkewlessError, match="shed: Shed has no max_latency, and the trigger"):
        Shed().limit_us(interval_us)


def test_one_name_of_a_value_is_that_of_both_sides() -> None:
    assert Shed(value="worth").values == ("worth", "worth")
    assert Shed(value=(None, "worth")).values == (None, "worth")
    assert Shed().values == (None, None)
