"""What the function of a batch passes on to Spark when it fails."""

import traceback
from typing import Any

import pytest
from pyspark.errors import PySparkException

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
    told = passed_on(PySparkException(f"{long}\n: {name}\n\tat somewhere"))
    assert len(told) < 2_000
    before, _, after = told.partition(
        "py4j.protocol.Py4JJavaError: An error occurred while calling"
    )
    assert before
    assert name in after


def test_other_failures_are_told_first_and_then_in_full() -> None:
    """Also one that names an interruption for reasons of its own."""
    failure = RuntimeError("upload failed: java.io.InterruptedIOException: timeout")
    told = passed_on(failure)
    lines = (found(told) or "").splitlines()
    assert lines[0] == f"RuntimeError: {failure}"
    assert lines[-1] == "batch 3 failed"
    assert "Traceback" in told
    assert len(passed_on(ValueError("x" * 1_000_000))) < 50_000


def test_an_exit_becomes_an_error_that_spark_can_hear_of() -> None:
    told = found(passed_on(SystemExit(2)))
    assert told is not None
    assert told.startswith("SystemExit: 2\n")
    assert "batch 3" in told
    assert issubclass(InterruptedBatch, Exception)
