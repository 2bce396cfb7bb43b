"""What the function of a batch passes on to Spark when it fails."""

import traceback
from typing import Any

import pytest

from skewless.runtime.failures import found
from skewless.runtime.step import InterruptedBatch, Step


class Failing(Step):
    """A batch that only fails."""

    def __init__(self, failure: BaseException) -> None:
        self._failure = failure

    def _run(self, batch: Any, batch_id: int) -> None:
        raise self._failure


def passed_on(failure: BaseException) -> str:
    """The text that Java gets."""
    try:
        Failing(failure)(None, 3)  # type: ignore[arg-type]
    except Exception:
        return traceback.format_exc()
    raise AssertionError("it must fail")


@pytest.mark.parametrize(
    "name",
    [
        "java.lang.InterruptedException",
        "java.io.InterruptedIOException",
        "java.nio.channels.ClosedByInterruptException",
    ],
)
def test_a_query_that_is_stopped_says_so_in_a_few_words(name: str) -> None:
    """Spark's pattern overflows Java's stack over a long text."""
    long = "py4j.protocol.Py4JJavaError: An error occurred while calling o7.save.\n" + "x" * 100_000
    told = passed_on(RuntimeError(f"{long}\n: {name}\n\tat somewhere"))
    assert len(told) < 2_000
    before, _, after = told.partition(
        "py4j.protocol.Py4JJavaError: An error occurred while calling"
    )
    assert before
    assert name in after


def test_other_failures_are_passed_on_as_they_are() -> None:
    assert "ValueError: 'interrupted' is no number" in passed_on(
        ValueError("'interrupted' is no number")
    )
    with pytest.raises(ValueError, match="three"):
        Failing(ValueError("three"))(None, 3)  # type: ignore[arg-type]


def test_an_exit_becomes_an_error_that_spark_can_hear_of() -> None:
    told = found(passed_on(SystemExit(2)))
    assert told is not None
    assert told.startswith("SystemExit: 2\n")
    assert "batch 3" in told
    assert issubclass(InterruptedBatch, Exception)
