"""A worker reads the same bytes whether or not it acknowledges them at once."""

import io
import os
import socket
import threading
from collections.abc import Callable
from typing import Any

import pytest

from skewless.runtime.acknowledge import Acknowledging, acknowledging

TASKS = (os.urandom(300_000), os.urandom(10), os.urandom(70_000))


def tcp_pair() -> tuple[socket.socket, socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        sender = socket.create_connection(server.getsockname())
        return sender, server.accept()[0]


def unix_pair() -> tuple[socket.socket, socket.socket]:
    return socket.socketpair(socket.AF_UNIX)


def readers(pair: Callable[[], tuple[socket.socket, socket.socket]]) -> list[Any]:
    """What a worker reads its tasks with, one after the other on the same connection."""
    used = []

    def main(infile: Any, outfile: Any) -> None:
        used.append(getattr(infile, "raw", None))
        length = int.from_bytes(infile.read(4), "big")
        outfile.write(infile.read(length))

    sender, receiver = pair()
    with sender, receiver:
        for sent in TASKS:
            told = len(sent).to_bytes(4, "big") + sent
            thread = threading.Thread(target=sender.sendall, args=(told,))
            thread.start()
            answer = io.BytesIO()
            with os.fdopen(os.dup(receiver.fileno()), "rb") as infile:
                acknowledging(main)(infile, answer)
            thread.join()
            assert answer.getvalue() == sent
    return used


@pytest.mark.skipif(not hasattr(socket, "TCP_QUICKACK"), reason="only Linux has it")
def test_a_worker_on_tcp_acknowledges() -> None:
    assert [type(reader) for reader in readers(tcp_pair)] == [Acknowledging] * len(TASKS)


@pytest.mark.parametrize("pair", [tcp_pair, unix_pair])
def test_a_default_timeout_is_not_for_the_connection_to_spark(pair) -> None:
    """It would make the connection non-blocking, also for the file that results go to."""
    blocking = []

    def main(infile: Any, outfile: Any) -> None:
        blocking.append(os.get_blocking(infile.fileno()))

    sender, receiver = pair()
    with sender, receiver:
        receiver.setblocking(True)
        socket.setdefaulttimeout(5)
        try:
            with os.fdopen(os.dup(receiver.fileno()), "rb") as infile:
                acknowledging(main)(infile, io.BytesIO())
        finally:
            socket.setdefaulttimeout(None)
        assert blocking == [True]
        assert os.get_blocking(receiver.fileno())


def test_a_worker_on_a_unix_socket_reads_as_ever() -> None:
    assert Acknowledging not in [type(reader) for reader in readers(unix_pair)]
