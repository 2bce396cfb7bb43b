"""Named points at which a test may kill a query; without faults every point is passed."""

import json
import os
import signal
import threading
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from skewless.errors import bad_argument

POINTS = ("before_sink", "in_task", "after_sink", "before_commit", "after_commit")
ACTIONS = ("kill", "raise", "hang")


class SimulatedKill(BaseException):
    """Stands for a process that dies at a point: nothing may catch it and go on."""


@dataclass(frozen=True)
class Fault:
    """Dies at a point of a batch: `kill` is SIGKILL to the process, `raise` stops only the query.

    With a `once` file the fault strikes a single time, so that what is retried succeeds; the file
    then holds the id of the process that was struck. `hang` stands still until somebody else kills
    the process, or what the process depends on: a driver or an executor.
    """

    point: str
    batch: int
    action: str = "raise"
    once: str | None = None

    def __post_init__(self) -> None:
        if self.point not in POINTS:
            raise bad_argument("point", self.point, f"one of {', '.join(POINTS)}")
        if self.action not in ACTIONS:
            raise bad_argument("action", self.action, f"one of {', '.join(ACTIONS)}")
        if self.action == "hang" and self.once is None:
            raise bad_argument("once", self.once, "a file, which tells that the process hangs")

    def strike(self) -> None:
        if self.once is not None:
            try:
                with Path(self.once).open("x", encoding="utf-8") as marker:
                    marker.write(str(os.getpid()))
            except FileExistsError:
                return
        if self.action == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if self.action == "hang":
            threading.Event().wait()
        raise SimulatedKill(f"fault at {self.point} of batch {self.batch}")


@dataclass(frozen=True)
class Faults:
    """The faults of one run of a query."""

    faults: tuple[Fault, ...] = ()

    def reach(self, point: str, batch: int) -> None:
        """Passes a point, or dies there."""
        for fault in self.faults:
            if fault.point == point and fault.batch == batch:
                fault.strike()

    @staticmethod
    def parse(text: str) -> "Faults":
        """Reads what `dump_faults` wrote."""
        return Faults(tuple(Fault(**record) for record in json.loads(text)))


def dump_faults(faults: Sequence[Fault]) -> str:
    """The faults as the text that the writer's option `skewless.faults` takes."""
    return json.dumps([asdict(f) for f in faults])
