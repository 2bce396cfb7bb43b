"""A running query: Spark's StreamingQuery, with Skewless's own account in its progress."""

import contextlib
import functools
import threading
from typing import Any

from pyspark.errors import StreamingQueryException
from pyspark.sql.streaming import StreamingQuery

from skewless.observe.balance import explain_balance
from skewless.runtime.failures import of_query
from skewless.runtime.history import History
from skewless.state.lock import DirectoryLock

_EXPLAINED = 10


class Query(StreamingQuery):
    """A StreamingQuery of pyspark whose `lastProgress["skewless"]` is read from the commit.

    Nothing here lives only in memory: what a user may ask for is in the state directory, as long
    as that is there.
    """

    def __new__(cls, query: StreamingQuery, *_: Any) -> "Query":
        kind = cls if isinstance(query, StreamingQuery) else _query_like(type(query))
        return object.__new__(kind)

    # Not the constructor of the base class: it takes an object of Java, which Connect has not.
    def __init__(self, query: StreamingQuery, history: History, lock: DirectoryLock) -> None:
        self._query = query
        self._history = history
        # The lock must go whenever the query ends, also when it fails and nobody asks.
        self._watch = threading.Thread(
            target=_release_at_end, args=(query, lock, history), name="skewless-lock", daemon=True
        )
        self._watch.start()

    def __getattr__(self, name: str) -> Any:
        """What the base class keeps in an instance is that of the query within."""
        if name == "_query":  # not there yet
            raise AttributeError(name)
        return getattr(self._query, name)

    @property
    def id(self) -> str:
        return self._query.id

    @property
    def runId(self) -> str:  # noqa: N802 - Spark's name
        return self._query.runId

    @property
    def name(self) -> str:
        return self._query.name

    @property
    def isActive(self) -> bool:  # noqa: N802 - Spark's name
        return self._query.isActive

    @property
    def status(self) -> dict[str, Any]:
        return self._query.status

    @property
    def lastProgress(self) -> Any:  # noqa: N802 - Spark's name
        """Spark's record of the last batch plus ["skewless"], or None before the first."""
        progress = self._query.lastProgress
        return None if progress is None else self._with_skewless(progress)

    @property
    def recentProgress(self) -> list[Any]:  # noqa: N802 - Spark's name
        return [self._with_skewless(p) for p in self._query.recentProgress]

    def awaitTermination(self, timeout: float | None = None) -> bool | None:  # noqa: N802
        # Spark's annotation says int; it takes fractions of a second as well.
        try:
            return self._query.awaitTermination(timeout)  # type: ignore[arg-type]
        except StreamingQueryException as failure:
            raise of_query(failure) from None  # or Python would print Spark's account first
        finally:
            self._settle()

    def processAllAvailable(self) -> None:  # noqa: N802 - Spark's name
        try:
            self._query.processAllAvailable()
        except StreamingQueryException as failure:
            raise of_query(failure) from None
        finally:
            self._settle()

    def stop(self) -> None:
        self._query.stop()
        self._watch.join()

    def exception(self) -> StreamingQueryException | None:
        failure = self._query.exception()
        return None if failure is None else of_query(failure)

    def explain(self, extended: bool = False) -> None:
        self._query.explain(extended)

    def explainBalance(self) -> None:  # noqa: N802 - named like explain
        """Prints how the load is spread over the instances, what was moved lately, and why."""
        print(explain_balance(self._history.latest(_EXPLAINED)))  # noqa: T201 - as explain does

    def _settle(self) -> None:
        """Once the query has ended, its checkpoint is free before the caller goes on."""
        if not self._query.isActive:
            self._watch.join()

    def _with_skewless(self, progress: Any) -> Any:
        batch = progress["batchId"]
        # An idle trigger reports the batch to come: the last one done is what can be told.
        told = self._history.progress(batch) or self._history.progress(batch - 1)
        progress["skewless"] = told
        return progress


@functools.cache
def _query_like(kind: type) -> type[Query]:
    """The class of queries of Spark Connect, which has a StreamingQuery of its own."""
    return type(Query.__name__, (Query, kind), {})


def _release_at_end(query: StreamingQuery, lock: DirectoryLock, history: History) -> None:
    # A failed query, or a session that is gone: the user sees it where they wait, not here.
    with contextlib.suppress(Exception):
        try:
            query.awaitTermination()
        except StreamingQueryException:
            pass
        except Exception:
            # The connection is gone, and the query may go on: its checkpoint must stay.
            history.keep()
            raise
    lock.release()
    history.close()
