"""Options of a map that cannot work are refused at the call."""

import pytest

from skewless.errors import SkewlessError
from skewless.operators.map.function import MapFunction


async def slow(row):
    return row


class Model:
    async def __call__(self, row):
        return row


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"fn": 3}, "fn"),
        ({"fn": slow}, "per_row=True"),
        ({"fn": len, "concurrency": 4}, "concurrency"),
        ({"fn": len, "retries": 1}, "retries"),
        ({"fn": len, "timeout_s": 1.0}, "timeout"),
        ({"fn": len, "per_row": True, "concurrency": 0}, "concurrency"),
        ({"fn": len, "per_row": True, "timeout_s": 0}, "timeout"),
        ({"fn": len, "per_row": True, "retries": -1}, "retries"),
        ({"fn": len, "per_row": 1}, "per_row"),
        ({"fn": len, "ordered": None}, "ordered"),
    ],
)
def test_wrong_options_are_named(options, name: str) -> None:
    with pytest.raises(SkewlessError, match=name):
        MapFunction(**options)


def test_coroutines_are_recognised() -> None:
    assert MapFunction(slow, per_row=True).is_async
    assert MapFunction(Model(), per_row=True).is_async
    assert not MapFunction(len).is_async
