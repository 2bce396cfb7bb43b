"""What a user's function raised, in a few lines that begin with what matters."""

from concurrent import futures

import pytest
from pyspark.sql import types as T

from skewless.failures import account
from skewless.operators.map.function import MapFunction
from skewless.operators.map.outcome import Row
from skewless.operators.map.rows import call_rows


def raised(fn) -> BaseException:
    try:
        fn()
    except BaseException as failure:
        return failure
    raise AssertionError("it must fail")


def deep(depth: int) -> None:
    if not depth:
        raise ValueError("\n".join(f"line {n} {'x' * 3_000}" for n in range(50)))
    deep(depth - 1)


def names(text: str) -> list[str]:
    return [line.split(", in ")[1] for line in text.splitlines() if line.startswith("  File")]


def test_an_account_is_never_longer_than_25_lines_with_three_of_notes() -> None:
    def chained() -> None:
        try:
            deep(30)
        except ValueError as failure:
            raise RuntimeError(str(failure)) from failure

    for fn in (chained, lambda: deep(30)):
        told = account(raised(fn), "n" * 3_000, "the row", "the place")
        lines = told.splitlines()
        assert len(lines) <= 25
        assert max(map(len, lines)) < 1_100
        assert lines[-2:] == ["the row", "the place"]
        assert "more" in told
    assert account(raised(chained)).startswith("RuntimeError: line 0 x")
    assert "because of ValueError: line 0 x" in account(raised(chained))


def test_an_error_without_a_text_is_named() -> None:
    def fails() -> None:
        raise KeyError

    assert account(raised(fails)).splitlines()[0] == "KeyError"


@pytest.mark.parametrize(
    "options", [{}, {"timeout_s": 30.0}, {"concurrency": 2}, {"concurrency": 2, "timeout_s": 30.0}]
)
@pytest.mark.parametrize("is_async", [False, True])
def test_only_frames_of_the_users_own_code_are_shown(is_async: bool, options) -> None:
    """Not those of the threads, futures and loops through which it was called."""

    def plain(row):
        return deep(1)

    async def later(row):
        return deep(1)

    function = MapFunction(later if is_async else plain, per_row=True, **options)
    (found,) = call_rows(function, [Row(0, {})], lambda: 0.0)
    told = account(found.failure)
    assert names(told) == ["later" if is_async else "plain", "deep", "deep"]
    assert "test_failures.py" in told


def test_frames_of_spark_below_the_users_are_left_out() -> None:
    def schema() -> None:
        T.StructType([1])

    told = account(raised(schema))
    assert names(told) == ["raised", "schema"]
    assert "pyspark" not in told


def test_frames_of_libraries_below_the_users_are_kept() -> None:
    def pooled() -> None:
        future: futures.Future[None] = futures.Future()
        future.set_exception(ValueError("no"))
        future.result()

    assert names(account(raised(pooled)))[:3] == ["raised", "pooled", "result"]
