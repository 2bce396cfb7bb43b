"""Whether a session's Python workers can run what the driver sends them, asked at the start."""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import subprocess
import sys
import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException

import skewless
from skewless.errors import SkewlessError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

# In the order in which Spark looks: the setting of the session, then that of the application.
_SETTINGS = ("spark.sql.execution.pyspark.python", "spark.pyspark.python")
_PATIENCE_S = 60
# A program and not a function: it must run where there is no skewless, and in any Python 3.
_TELL = """
import importlib.util, json, platform, sys
told = {"python": platform.python_version(), "executable": sys.executable}
try:
    import skewless
    told["skewless"] = skewless.__version__
    absent = [n for n in ("numpy", "pyarrow", "pandas", "numba") if not importlib.util.find_spec(n)]
    if absent:
        told["failure"] = "there is no " + " and no ".join(absent)
except Exception as error:
    told["failure"] = "cannot import skewless: %s: %s" % (type(error).__name__, error)
told = json.dumps(told)
"""
_asked: weakref.WeakSet[SparkSession] = weakref.WeakSet()


@dataclass(frozen=True)
class Worker:
    """What a Python worker says of itself, and what keeps it from working (`failure`)."""

    python: str = ""  # version
    executable: str = ""
    skewless: str = ""  # version
    failure: str = ""

    @property
    def problem(self) -> str | None:
        """Why queries cannot run there; None: they can."""
        # Functions travel as bytecode, which is the same within a minor version.
        here = platform.python_version()
        if self.python and self.python.split(".")[:2] != here.split(".")[:2]:
            return f"Python {here} here, {self.python} on the workers"
        if self.failure:
            return self.failure
        if self.skewless != skewless.__version__:
            return f"skewless {skewless.__version__} here, {self.skewless} on the workers"
        return None


def require_able_workers(session: SparkSession) -> None:
    """Refuses a session whose workers cannot run our tasks.

    Where they are known to run this very interpreter, nothing is asked. Else they are, once per
    session: on this machine without a job, elsewhere by a job of one row.
    """
    if session in _asked or runs_this_python(session):
        return
    worker = ask(session)
    if worker.problem is not None:
        there = worker.executable or _named(session) or "another one"
        raise SkewlessError(
            f"spark: its Python workers cannot run the query: {worker.problem}. The driver runs "
            f"{sys.executable}, the workers run {there}. {advice()}"
        )
    _asked.add(session)


def advice() -> str:
    """What to do about workers that are not like the driver."""
    return (
        f"Set PYSPARK_PYTHON (or spark.pyspark.python) to {sys.executable} before the session is "
        "made, or make it with sk.session(); on a cluster install the same versions everywhere"
    )


def is_local(session: SparkSession) -> bool:
    """Whether the workers are on this machine."""
    return re.match(r"local(\[|$)", session.conf.get("spark.master", "") or "") is not None


def runs_this_python(session: SparkSession) -> bool:
    """Whether workers are known to be started from this interpreter, on this machine."""
    named = _named(session)
    if named is None or not is_local(session):
        return False
    found = shutil.which(named)
    return found is not None and _place(found) == _place(sys.executable)


def ask(session: SparkSession) -> Worker:
    """What is found out fastest: of workers on this machine no job is needed to tell."""
    named = _named(session) if is_local(session) else None
    return ask_worker(session) if named is None else ask_interpreter(named)


def ask_interpreter(python: str) -> Worker:
    """Runs an interpreter of this machine, without Spark: no retries, and no log of theirs."""
    try:
        done = subprocess.run(
            [python, "-c", f"{_TELL}\nprint(told)"],
            capture_output=True,
            text=True,
            timeout=_PATIENCE_S,
            check=True,
        )
        return Worker(**json.loads(done.stdout.splitlines()[-1]))
    except subprocess.CalledProcessError as error:
        return Worker(failure=f"{python} fails: {_last_line(error.stderr) or error}")
    except (OSError, ValueError, IndexError, subprocess.TimeoutExpired) as error:
        return Worker(failure=f"{python} cannot be run: {error}")


def ask_worker(session: SparkSession) -> Worker:
    """Runs one task on one row that tells what Python it runs in."""
    program = _TELL

    # A local function travels by value: the worker can run it even where it has no skewless.
    def answer(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        names: dict[str, str] = {}
        exec(program, names)
        for _ in batches:
            pass
        yield pa.RecordBatch.from_pydict({"told": [names["told"]]})

    try:
        (row,) = session.range(0, 1, 1, 1).mapInArrow(answer, "told string").collect()
    except Exception as error:  # Python's, Java's: whatever it is, it is the finding
        return Worker(failure=f"the worker failed: {gist(error)}")
    return Worker(**json.loads(row["told"]))


def gist(error: BaseException) -> str:
    """The one line of an error that tells most."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    raised = [line for line in lines if re.match(r"[\w.]*(Error|Exception): ", line)]
    if raised:  # the end of a Python worker's traceback
        return raised[0][:300]
    # Java wraps a cause in causes and repeats it in parts; the fullest of them names the culprit.
    causes = [line.removeprefix("Caused by: ") for line in lines if line.startswith("Caused by: ")]
    return max(causes, key=len, default=lines[0] if lines else type(error).__name__)[:300]


def _last_line(text: str) -> str:
    return next((line for line in reversed(text.splitlines()) if line.strip()), "")


def _named(session: SparkSession) -> str | None:
    """What workers are started as; None: only the server knows."""
    try:
        context = session.sparkContext
    except (PySparkException, AttributeError):  # Spark Connect has no context to ask
        return None
    settings = (session.conf.get(name, None) for name in _SETTINGS)
    return next((value for value in settings if value), None) or context.pythonExec


def _place(python: str) -> tuple[str, Path]:
    """The same for python, python3 and python3.11 of one environment; links lead out of it."""
    return os.path.realpath(os.path.dirname(python)), Path(python).resolve()
