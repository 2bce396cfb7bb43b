"""What a query has told of its batches, also once its temporary checkpoint is gone."""

import atexit
import shutil
import tempfile
from typing import Any

from skewless.state.commit import CheckpointError, CommitLog

_temporary: set[str] = set()


def temporary_checkpoint() -> str:
    """A folder for a query that nobody will take up again; it goes at exit at the latest."""
    folder = tempfile.mkdtemp(prefix="skewless-")
    _temporary.add(folder)
    return folder


def discard(folder: str) -> None:
    """Removes a temporary checkpoint."""
    shutil.rmtree(folder, ignore_errors=True)
    _temporary.discard(folder)


@atexit.register
def _discard_the_rest() -> None:
    for folder in list(_temporary):
        discard(folder)


class History:
    """Progress by batch, read from the commits.

    A `temporary` checkpoint goes when the query has ended. Its progress is kept in memory from
    then on, as Spark keeps its own.
    """

    def __init__(self, log: CommitLog, temporary: str | None = None) -> None:
        self._log = log
        self._temporary = temporary
        self._kept: dict[int, dict[str, Any]] | None = None

    def progress(self, batch: int) -> dict[str, Any] | None:
        """What was told of a batch; None: it has no commit, or none any more."""
        if self._kept is None:
            found = self._read(batch)
            # The folder may have gone while it was looked into.
            if found is not None or self._kept is None:
                return found
        return self._kept.get(batch)

    def latest(self, count: int) -> list[dict[str, Any]]:
        """The last records, oldest first."""
        batches = self._log.batches()
        if self._kept is not None:  # also where the folder has gone while it was listed
            batches = sorted(self._kept)
        found = [self.progress(batch) for batch in batches[-count:]]
        return [told for told in found if told is not None]

    def keep(self) -> None:
        """Leaves a temporary checkpoint where it is until Python ends."""
        self._temporary = None

    def close(self) -> None:
        """Called when the query has ended: a temporary checkpoint goes."""
        if self._temporary is None or self._kept is not None:
            return
        kept = {batch: self._read(batch) for batch in self._log.batches()}
        self._kept = {batch: told for batch, told in kept.items() if told is not None}
        discard(self._temporary)

    def _read(self, batch: int) -> dict[str, Any] | None:
        """Nothing is computed from progress: a damaged commit is shown as such and stops nobody."""
        try:
            record = self._log.record(batch)
        except CheckpointError as failure:
            return {"batchId": batch, "operators": [], "durationMs": {}, "damaged": str(failure)}
        return None if record is None else record["progress"]
