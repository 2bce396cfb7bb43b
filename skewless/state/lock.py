"""Keeps two live queries out of one state directory."""

import fcntl
import json
import os
import socket
from typing import IO

from skewless.state.commit import CheckpointError
from skewless.state.storage import StateError, Storage

_NAME = "lock"


class DirectoryLock:
    """Holds a local state directory for this process; the kernel lets go when the process dies.

    Other filesystems have no such lock: there, starting two queries on one checkpoint is caught
    by Spark only when both run in one session.
    """

    def __init__(self, storage: Storage, owner: str) -> None:
        self._file: IO[str] | None = None
        if not storage.is_local:
            return
        path = storage.path(_NAME)
        try:
            file = open(path, "a+", encoding="utf-8")  # noqa: SIM115 - held until release
        except OSError as failure:
            raise StateError(f"{path}: cannot write ({failure.strerror})") from failure
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            holder = file.read().strip() or "another process"
            file.close()
            raise CheckpointError(
                f"checkpointLocation: {storage.uri} is in use by a live query ({holder}); stop "
                "that query first, or give this one a checkpointLocation of its own"
            ) from None
        file.truncate(0)
        file.write(json.dumps({"query": owner, "pid": os.getpid(), "host": socket.gethostname()}))
        file.flush()
        self._file = file

    def release(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None
