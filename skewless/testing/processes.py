"""Processes of a test: waited for with a deadline, killed as a whole, never left behind."""

import contextlib
import os
import signal
import subprocess
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

import psutil

T = TypeVar("T")
_PACE_S = 0.01


def wait_until(condition: Callable[[], T], seconds: float, what: str = "the condition") -> T:
    """Asks again and again until the answer is true, and gives that answer; fails after `seconds`.

    wait_until(marker.exists, 30, "the task to start")
    """
    pause = threading.Event()
    deadline = time.monotonic() + seconds
    while not (answer := condition()):
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {seconds} s for {what}")
        pause.wait(_PACE_S)
    return answer


class KilledAtExit(ABC):
    """Something with processes, of which none is left when its `with` block is."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        failure: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.kill_all()

    @abstractmethod
    def kill_all(self) -> None:
        """SIGKILL to every process, until none is left."""


class ProcessTree(KilledAtExit):
    """A process in a session of its own, and whatever it starts: a JVM, Python workers, executors.

    Leaving the `with` block kills all of them.
    """

    def __init__(
        self, command: Sequence[str], log: Path, env: Mapping[str, str] | None = None
    ) -> None:
        self.log = log
        with log.open("ab") as out:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                env={**os.environ, **(env or {})},
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        """The first process's exit code, −9 after a SIGKILL; None while it runs."""
        return self._process.poll()

    def wait(self, seconds: float) -> int | None:
        """Waits for the first process to end, so long at most; gives its exit code or None."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(seconds)
        return self.returncode

    def kill(self) -> None:
        """SIGKILL to the first process only: the others must notice for themselves."""
        self._process.kill()
        self._process.wait()

    def alive(self) -> list[psutil.Process]:
        """The processes of the tree that are running, the first one among them."""
        return [p for pid in psutil.pids() if (p := _running(pid, self.pid)) is not None]

    def find(self, text: str) -> list[psutil.Process]:
        """The running processes whose command line contains a text."""
        found = []
        for process in self.alive():
            with contextlib.suppress(psutil.Error):
                if text in " ".join(process.cmdline()):
                    found.append(process)
        return found

    def wait_gone(self, seconds: float = 30) -> None:
        """Fails if any process of the tree is still there after so long."""
        wait_until(lambda: not self.alive(), seconds, f"the processes of {self.pid} to end")

    def kill_all(self) -> None:
        """SIGKILL to every process of the tree, until none is left."""

        def none_left() -> bool:
            left = self.alive()
            for process in left:
                with contextlib.suppress(psutil.Error):
                    process.send_signal(signal.SIGKILL)
            return not left

        wait_until(none_left, 30, f"the processes of {self.pid} to die")
        self._process.wait()

    def text(self) -> str:
        """What was printed so far."""
        return self.log.read_text(encoding="utf-8", errors="replace")


def _running(pid: int, session: int) -> psutil.Process | None:
    """The process if it belongs to the session and has not ended; zombies have."""
    try:
        if os.getsid(pid) != session:
            return None
        process = psutil.Process(pid)
        return None if process.status() == psutil.STATUS_ZOMBIE else process
    except (ProcessLookupError, PermissionError, psutil.Error):
        return None
