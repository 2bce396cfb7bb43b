"""What failed reaches the caller without what Spark wraps around it."""

import traceback
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException, StreamingQueryException

from skewless.errors import SkewlessError
from skewless.failures import FunctionError
from skewless.runtime.dispatch import Worker
from skewless.runtime.failures import QueryFailure, found, framed, in_users_code, of_query
from skewless.runtime.query import Query
from skewless.runtime.sinks import FunctionSink
from skewless.state.storage import StateError

from .test_step import passed_on

BATCH = pa.record_batch({"n": [1]})


class FailingTask:
    """Gives a batch, then fails."""

    def __init__(self, failure: Exception) -> None:
        self._failure = failure

    def run(self, instance: Any, batches: Any) -> Any:
        yield BATCH
        raise self._failure


def worker_says(failure: Exception) -> str:
    results = Worker(FailingTask(failure), None)(iter(()))
    assert next(results) is BATCH
    try:
        next(results)
    except Exception:
        return traceback.format_exc()
    raise AssertionError("it must fail")


def query_says(text: str) -> StreamingQueryException:
    return of_query(StreamingQueryException(f"[STREAM_FAILED] Query [id = 7] … {text}\n\tat java"))


def test_a_text_travels_from_a_worker_to_the_caller() -> None:
    """Each takes the other's whole text, in which the frame is all that can be found."""
    worker = worker_says(FunctionError("KeyError: 'amount'\n  File job.py, line 3\nbatch 5"))
    failure = query_says(passed_on(RuntimeError(f"Job aborted.\n{worker}\n\tat org.apache.spark")))
    assert isinstance(failure, QueryFailure)
    assert str(failure) == "KeyError: 'amount'\n  File job.py, line 3\nbatch 5"
    assert failure.getMessage() == str(failure)
    everything = str(failure.original)
    assert "Job aborted." in everything
    assert "at org.apache.spark" in everything


def test_the_librarys_own_errors_of_a_step_come_first_too() -> None:
    told = passed_on(StateError("segments/b0: the segment is corrupt"))
    assert found(told) == "segments/b0: the segment is corrupt"
    assert str(query_says(told)) == "segments/b0: the segment is corrupt"


def test_what_is_not_recognised_is_passed_on_as_it_is() -> None:
    assert "Traceback" in worker_says(OSError("the disk is full"))
    assert found(worker_says(OSError("the disk is full"))) is None
    given = StreamingQueryException("[STREAM_FAILED] Query [id = 7] terminated: no space left")
    assert of_query(given) is given


def test_a_text_that_was_cut_off_is_still_found() -> None:
    whole = framed("KeyError: 5\n  File job.py")
    assert found(whole[:-30]) == found(whole) == "KeyError: 5\n  File job.py"
    assert found(whole[:50]) == "KeyError: 5\n  F"
    assert found("nothing of ours") is None


def test_code_of_the_user_on_the_driver_is_told_with_its_frames() -> None:
    def mine(frame: Any, batch: int) -> None:
        raise LookupError("no such table")

    with pytest.raises(FunctionError) as told:
        FunctionSink(mine).write(None, 4)  # type: ignore[arg-type]
    lines = str(told.value).splitlines()
    assert lines[0] == "LookupError: no such table"
    assert lines[1].endswith("in mine")
    assert lines[-1] == "the function of foreachBatch failed (batch 4)"
    everything = passed_on(told.value)
    assert found(everything) == str(told.value)
    assert "FunctionSink" in everything or "sinks.py" in everything, "all frames are kept"


@pytest.mark.parametrize(
    "failure",
    [
        RuntimeError(f"Job aborted. {framed('KeyError: 5')}"),
        PySparkException("x" * 100_000 + "java.lang.InterruptedException" + "x" * 100_000),
        SkewlessError("path: takes another one"),
    ],
)
def test_what_user_code_passes_on_is_not_wrapped(failure: Exception) -> None:
    with pytest.raises(type(failure)) as told, in_users_code("fn", 0):
        raise failure
    assert told.value is failure


class FailedQuery:
    """Spark's query, after it has failed."""

    isActive = False  # noqa: N815 - Spark's name

    def __init__(self, failure: StreamingQueryException | None) -> None:
        self._failure = failure

    def awaitTermination(self, timeout: Any = None) -> None:  # noqa: N802 - Spark's name
        if self._failure is not None:
            raise self._failure

    processAllAvailable = awaitTermination  # noqa: N815 - Spark's name

    def exception(self) -> StreamingQueryException | None:
        return self._failure


class NoHistory:
    def close(self) -> None: ...


class NoLock:
    def release(self) -> None:
        pass


def test_a_query_raises_and_tells_the_same() -> None:
    original = StreamingQueryException(f"[STREAM_FAILED] {framed('KeyError: 5')}\n\tat java")
    query = Query(FailedQuery(original), NoHistory(), NoLock())  # type: ignore[arg-type]
    for asked in (query.awaitTermination, query.processAllAvailable):
        with pytest.raises(StreamingQueryException) as told:
            asked()
        assert str(told.value) == str(query.exception()) == "KeyError: 5"
        printed = "".join(traceback.format_exception(told.value))
        assert "STREAM_FAILED" not in printed, "Python prints no more than the clean text"
        assert told.value.original is original  # type: ignore[attr-defined]
    assert Query(FailedQuery(None), NoHistory(), NoLock()).exception() is None  # type: ignore[arg-type]


def test_what_user_code_wraps_is_told_below_its_own_error() -> None:
    def mine(frame: Any, batch: int) -> None:
        try:
            raise RuntimeError(f"Job aborted. {framed('KeyError: 5')}")
        except RuntimeError as failure:
            raise ValueError("mine") from failure

    with pytest.raises(SkewlessError) as told:
        FunctionSink(mine).write(None, 4)  # type: ignore[arg-type]
    lines = str(told.value).splitlines()
    assert lines[0] == "ValueError: mine"
    assert lines[-1] == "because of KeyError: 5"
