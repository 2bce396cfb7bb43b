"""Carries what failed from a Python worker to the caller, without what Spark wraps around it.

The text is framed by two lines. A worker's error comes to the step inside of Spark's own, and the
step's to the caller, who may be in another process: the frame is all that they have in common.
"""

import re
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pyspark.errors import StreamingQueryException

from skewless.errors import SkewlessError
from skewless.failures import FunctionError, account

_MARK = "----- skewless:"
_BEGIN = f"{_MARK} what failed -----"
_END = f"{_MARK} what follows is Spark's account -----"
# How Java says that the job of a batch was interrupted, because its query was stopped.
_INTERRUPTED = re.compile(
    r"java\.lang\.InterruptedException|java\.io\.InterruptedIOException|"
    r"java\.nio\.channels\.ClosedByInterruptException"
)


# Spark searches the text with a pattern that overflows Java's stack if it is very long.
_MOST = 20_000


class TaskFailure(Exception):  # noqa: N818 - it is the account of an error
    """What failed in a Python worker, framed."""


class BatchFailure(Exception):  # noqa: N818 - it is the account of an error
    """What failed in a batch, framed, and all that is known of it."""


class QueryFailure(StreamingQueryException):
    """What stopped a query: the message begins with what failed.

    `original` is Spark's exception, with everything that Spark tells.
    """

    def __init__(self, message: str, original: StreamingQueryException) -> None:
        super().__init__(message)
        self.original = original

    def getCondition(self) -> str | None:  # noqa: N802 - Spark's name
        return self.original.getCondition()

    def getSqlState(self) -> str | None:  # noqa: N802 - Spark's name
        return self.original.getSqlState()

    def getMessageParameters(self) -> dict[str, str] | None:  # noqa: N802 - Spark's name
        return self.original.getMessageParameters()

    def getQueryContext(self) -> Any:  # noqa: N802 - Spark's name
        return self.original.getQueryContext()

    def getMessage(self) -> str:  # noqa: N802 - Spark's name
        return str(self)

    def __str__(self) -> str:
        return self._message


def framed(text: str) -> str:
    return f"\n{_BEGIN}\n{text}\n{_END}"


def found(text: str) -> str | None:
    """The first framed text inside of another.

    >>> found(f"Spark says: Job aborted. {framed('KeyError: 5')} at org.apache…")
    'KeyError: 5'
    """
    _, begins, rest = text.partition(f"{_BEGIN}\n")
    # Where a text was cut off, what is left of it is still worth more than nothing.
    return rest.partition(f"\n{_MARK}")[0].strip() if begins else None


def interruption(failure: BaseException) -> str | None:
    """The exception of Java that says so, if a failure is that of a query that was stopped.

    Only Spark says so. Other errors may name such an exception for reasons of their own.
    """
    if type(failure).__module__.partition(".")[0] not in ("py4j", "pyspark"):
        return None
    text = str(failure)
    told = _INTERRUPTED.search(text)
    return None if told is None or found(text) is not None else told.group()


@contextmanager
def in_users_code(what: str, batch: int) -> Iterator[None]:
    """Code of the user's on the driver: an error is told with their frames."""
    try:
        yield
    except SkewlessError:
        raise
    except Exception as failure:
        if found(str(failure)) is not None or interruption(failure) is not None:
            raise  # of a task that this code has run, or because the query was stopped
        told = account(failure, f"{what} failed (batch {batch})")
        below = found(str(failure.__cause__ or failure.__context__ or ""))
        raise FunctionError(told if below is None else f"{told}\nbecause of {below}") from failure


def of_batch(failure: Exception, batch: int) -> BatchFailure:
    """The failure of a batch as it is passed on to Spark."""
    told = found(str(failure))
    if told is None and isinstance(failure, SkewlessError):
        told = str(failure)
    if told is None:
        told = account(failure, f"batch {batch} failed")
    everything = "".join(traceback.format_exception(failure))
    if len(everything) > _MOST:
        everything = f"{everything[: _MOST // 2]}\n…\n{everything[-_MOST // 2 :]}"
    return BatchFailure(f"{framed(told)}\n{everything}")


def of_query(failure: StreamingQueryException) -> StreamingQueryException:
    """The failure of a query as its caller sees it; Spark's own where nothing is known."""
    told = found(str(failure))
    return failure if told is None else QueryFailure(told, failure)
