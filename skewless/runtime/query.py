"""A running query: Spark's StreamingQuery, with Skewless's own account in its progress."""

import contextlib
import threading
from typing import Any

from pyspark.errors import StreamingQueryException
from pyspark.sql.streaming import StreamingQuery

from skewless.observe.balance import explain_balance
from skewless.runtime.failures import of_query
from skewless.state.commit import CommitLog
from skewless.state.lock import DirectoryLock

_EXPLAINED = 10


class Query:
    """The members of pyspark's StreamingQuery; `lastProgress["skewless"]` is read from the commit.

    Nothing here lives only in memory: what a user may ask for is in the state directory.
    """

    def __init__(self, query: StreamingQuery, log: CommitLog, lock: DirectoryLock) -> None:
        self._query = query
        self._log = log
        # The lock must go whenever the query ends, also when it fails and nobody asks.
        self._watch = threading.Thread(
            target=_release_at_end, args=(query, lock), name="skewless-lock", daemon=True
        )
        self._watch.start()

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
        batches = self._log.batches()[-_EXPLAINED:]
        records = [r["progress"] for b in batches if (r := self._log.record(b)) is not None]
        print(explain_balance(records))  # noqa: T201 - as explain does

    def _settle(self) -> None:
        """Once the query has ended, its checkpoint is free before the caller goes on."""
        if not self._query.isActive:
            self._watch.join()

    def _with_skewless(self, progress: Any) -> Any:
        batch = progress["batchId"]
        # An idle trigger reports the batch to come: the last one done is what can be told.
        record = self._log.record(batch) or self._log.record(batch - 1)
        progress["skewless"] = None if record is None else record["progress"]
        return progress


def _release_at_end(query: StreamingQuery, lock: DirectoryLock) -> None:
    # A failed query, or a session that is gone: the user sees it where they wait, not here.
    with contextlib.suppress(Exception):
        query.awaitTermination()
    lock.release()
