"""Workers that acknowledge at once what Spark sends them."""

import io
import os
import socket
from collections.abc import Callable
from typing import Any

_BUFFER = int(os.environ.get("SPARK_BUFFER_SIZE", "65536"))
WorkerMain = Callable[[Any, Any], None]


class Acknowledging(io.RawIOBase):
    """What Spark sends to a worker, acknowledged as it is read.

    Spark writes a task's command and its first rows one after the other, and the system holds back
    the second write until the first is acknowledged. A worker that has just answered for another
    task is expected to answer again, and its acknowledgement waits 40 ms for that.
    """

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection

    def readable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._connection.fileno()

    def readinto(self, buffer: Any) -> int:
        received = self._connection.recv_into(buffer)
        self._connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
        return received


def acknowledging(main: WorkerMain) -> WorkerMain:
    """A worker's main function, one call per task, that acknowledges what it reads."""

    def with_acknowledgements(infile: Any, outfile: Any) -> None:
        with socket.socket(fileno=os.dup(infile.fileno())) as connection:
            # A default that a user's function has set for its own sockets is not meant for Spark's.
            connection.settimeout(None)
            is_tcp = connection.family in (socket.AF_INET, socket.AF_INET6)
            if is_tcp and hasattr(socket, "TCP_QUICKACK"):  # Linux has it
                infile = io.BufferedReader(Acknowledging(connection), _BUFFER)
            main(infile, outfile)

    return with_acknowledgements
