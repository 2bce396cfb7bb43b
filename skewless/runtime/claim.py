"""The marker in the folder of results that names the checkpoint which writes there.

A file sink replaces the folder of a batch as a whole. A query with another checkpoint begins again
at batch 0, so on the same path it would replace results that are not its own.
"""

import contextlib
from dataclasses import dataclass
from typing import Any

from skewless.errors import SkewlessError
from skewless.runtime.sinks import BATCH_COLUMN
from skewless.state.commit import CommitLog
from skewless.state.identity import identify, identity_of
from skewless.state.sealed import DamagedError, seal, unseal
from skewless.state.storage import MissingFileError, StateError, Storage

# Readers skip names that begin with an underscore.
MARKER = "_skewless"


@dataclass(frozen=True)
class Claim:
    """A query's claim on the folder of its results.

    Nothing is checked on a filesystem that only Spark can open.
    """

    option: str  # that names the folder
    path: str
    checkpoint: str  # as the user wrote it, for messages
    state: Storage

    def check(self) -> None:
        """Refuses a folder of another checkpoint; writes nothing."""
        results = Storage(self.path)
        try:
            holder = self._marker()
            is_unmarked = holder is None and _has_batches(results)
        except StateError:
            return
        if holder is not None and holder["checkpoint"] != identity_of(self.state):
            if holder["location"] == self.checkpoint:
                raise SkewlessError(
                    f"{self.option}: {self.path} belongs to an earlier checkpoint in "
                    f"{self.checkpoint}, which was deleted; a new one would replace its rows, from "
                    f"{BATCH_COLUMN}=0 on. Choose another path, or delete the folder, its file "
                    f"{MARKER} included, if nobody needs them"
                )
            raise SkewlessError(
                f"{self.option}: {self.path} belongs to the checkpoint {holder['location']}, whose "
                f"rows a query with {self.checkpoint} would replace, from {BATCH_COLUMN}=0 on; "
                "choose another path, start the query with that checkpoint, or delete the folder, "
                f"its file {MARKER} included, if nobody needs them"
            )
        if is_unmarked and not CommitLog(self.state).batches():
            raise SkewlessError(
                f"{self.option}: {self.path} has rows that the new checkpoint {self.checkpoint} "
                f"has not written and would replace, from {BATCH_COLUMN}=0 on; choose another "
                "path, start the query with the checkpoint of these rows, or delete the folder if "
                "nobody needs them"
            )

    def hold(self) -> None:
        """Marks the folder, before the first batch."""
        record = {"checkpoint": identify(self.state), "location": self.checkpoint}
        results = Storage(self.path)
        with contextlib.suppress(StateError):
            if self._marker() != record:
                self.check()
                results.make_directory("")
                results.write_bytes(MARKER, seal(record))
        # Of two that were started at the same time, the one whose marker stands goes on.
        self.check()

    def _marker(self) -> dict[str, Any] | None:
        results = Storage(self.path)
        try:
            return unseal(results.read_bytes(MARKER))
        except MissingFileError:
            return None
        except DamagedError as failure:
            raise SkewlessError(
                f"{self.option}: {results.path(MARKER)}: the marker that names the checkpoint of "
                f"the folder cannot be read ({failure}); choose another folder, or delete the file "
                "if the folder belongs to this query's checkpoint"
            ) from failure


def _has_batches(results: Storage) -> bool:
    return any(name.startswith(f"{BATCH_COLUMN}=") for name in results.folders(""))
