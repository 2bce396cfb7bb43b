"""Checks what Skewless needs on this machine, and says how to mend what is missing."""

from __future__ import annotations

import importlib
import mmap
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

JAVA = "Java"
STATE = "state directory"
OWN = "a session of your own"
WORKER = "Python worker"

JAVA_AT_LEAST = 17


@dataclass(frozen=True)
class Check:
    """What one check found; `ok` is None where it was skipped."""

    name: str
    ok: bool | None
    found: str
    advice: str = ""


@dataclass(frozen=True)
class Package:
    """A Python package and the versions of it that Skewless takes."""

    name: str
    at_least: str
    below: str | None = None

    @property
    def requirement(self) -> str:
        """As pip writes it, for instance `pyspark>=4.1,<5`."""
        return f"{self.name}>={self.at_least}" + (f",<{self.below}" if self.below else "")

    def takes(self, version: str) -> bool:
        """Whether this version lies within the bounds.

        >>> Package("pandas", "2.2", below="3").takes("2.3.1")
        True
        """
        if _release(version) < _release(self.at_least):
            return False
        return self.below is None or _release(version) < _release(self.below)


PACKAGES = (
    Package("pyspark", "4.1", below="5"),
    Package("pyarrow", "18"),
    Package("pandas", "2.2", below="3"),
    Package("numpy", "1.26"),
    Package("numba", "0.61"),
)

# Without these there is no use in starting Spark.
WORKER_NEEDS = (JAVA, "pyspark", "pyarrow")


def examine(state: str, starting: Callable[[str], None] = lambda name: None) -> list[Check]:
    """Run every check in order; `starting` hears the name of each before it runs."""
    checks: list[Check] = []

    def run(name: str, check: Callable[[], Check]) -> None:
        starting(name)
        checks.append(check())

    run(JAVA, check_java)
    for package in PACKAGES:
        run(package.name, partial(check_package, package))
    run(STATE, lambda: check_state(state))

    missing = [check.name for check in checks if check.name in WORKER_NEEDS and not check.ok]
    # In this order: sk.session() names the interpreter for all sessions that come after it.
    for name, check in ((OWN, check_own_session), (WORKER, check_worker)):
        if missing:
            reason = f"skipped: needs {' and '.join(missing)}"
            checks.append(Check(name, None, reason, "mend the above first, then run this again"))
        else:
            run(name, check)
    return checks


def check_java(environ: Mapping[str, str] = os.environ) -> Check:
    """The Java that Spark's launcher would start: JAVA_HOME first, then the PATH."""
    install = (
        "install openjdk-17-jre-headless (Debian, Ubuntu), java-21-openjdk-headless (Fedora) "
        "or openjdk@17 (brew), or point JAVA_HOME at a Java 17 or newer"
    )
    home = environ.get("JAVA_HOME")
    if home:
        java = str(Path(home, "bin", "java"))
        if not os.access(java, os.X_OK):
            found = f"JAVA_HOME is {home}, where there is no bin/java"
            return Check(JAVA, False, found, f"correct or unset JAVA_HOME, or {install}")
    else:
        java = shutil.which("java", path=environ.get("PATH")) or ""
        if not java:
            return Check(JAVA, False, "no java on the PATH, and JAVA_HOME is not set", install)

    told = _run(java, "-version")
    version = re.search(r'version "((?:1\.)?(\d+)[^"]*)"', told.stdout)
    if version is None:
        return Check(JAVA, False, f"{java} does not tell its version", install)
    found = f"{version[1]} at {java}"
    if int(version[2]) < JAVA_AT_LEAST:
        return Check(JAVA, False, f"{found}; needs {JAVA_AT_LEAST} or newer", install)
    # Spark starts the JVM with this module; a cut-down runtime dies of it with a boot layer error.
    if _run(java, "--add-modules=jdk.incubator.vector", "-version").returncode != 0:
        found += "; a cut-down runtime without the module jdk.incubator.vector"
        return Check(JAVA, False, found, install)
    return Check(JAVA, True, found)


def check_package(package: Package) -> Check:
    """Whether the package can be imported and has a version that Skewless takes."""
    install = f"{sys.executable} -m pip install '{package.requirement}'"
    try:
        module = importlib.import_module(package.name)
    except ModuleNotFoundError as error:
        if error.name == package.name:
            return Check(package.name, False, "not installed", install)
        return Check(package.name, False, f"cannot be imported: {error}", install)
    except Exception as error:  # a binary that does not fit raises nearly anything
        found = f"cannot be imported: {type(error).__name__}: {error}"
        return Check(package.name, False, found, f"reinstall it: {install} --force-reinstall")
    version = str(module.__version__)
    if not package.takes(version):
        return Check(package.name, False, f"{version}; needs {package.requirement}", install)
    return Check(package.name, True, version)


def check_state(directory: str) -> Check:
    """Whether segments can be written, renamed, read back and deleted in the directory.

    The directory itself need not exist yet: then the nearest folder above it is tried. A URI
    (`s3://...`, `hdfs://...`) is tried through pyarrow, where nothing is memory-mapped.
    """
    try:
        if "://" not in directory:
            return _try_local(Path(directory).absolute())
        from pyarrow.fs import FileSystem

        filesystem, path = FileSystem.from_uri(directory)
        if filesystem.type_name == "local":
            return _try_local(Path(path))
        return _try_remote(directory, filesystem, path)
    except _StepError as failed:
        found = f"{directory}: cannot {failed.step}: {failed.reason}"
        return Check(STATE, False, found, failed.advice)
    except (ImportError, ValueError, OSError) as error:
        advice = "give a local path, or a URI that pyarrow.fs understands and can reach"
        return Check(STATE, False, f"{directory}: {error}", advice)


class _StepError(Exception):
    """One step of the state check did not work."""

    def __init__(self, step: str, reason: object, advice: str) -> None:
        super().__init__(step)
        self.step = step
        self.reason = reason
        self.advice = advice


@contextmanager
def _step(name: str, advice: str) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or error
        raise _StepError(name, reason, advice) from error


def _try_local(directory: Path) -> Check:
    base = directory
    while not base.exists() and base != base.parent:
        base = base.parent
    permit = f"let this user write in {base}, or choose another directory"
    content = b"skewless doctor"
    with _step("create a folder", permit):
        folder = Path(tempfile.mkdtemp(prefix=".skewless-doctor-", dir=base))
    try:
        with _step("create a file", permit):
            (folder / "written").write_bytes(content)
        with _step("rename a file", permit):
            os.replace(folder / "written", folder / "renamed")
        local = "state is memory-mapped: choose a directory on a local disk"
        with (
            _step("memory-map a file", local),
            open(folder / "renamed", "rb") as file,
            mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped,
        ):
            if mapped[:] != content:
                raise OSError("it reads back as something else")
        with _step("delete a file", permit):
            (folder / "renamed").unlink()
            folder.rmdir()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return Check(STATE, True, f"{directory}" + ("" if base == directory else " (to be created)"))


def _try_remote(directory: str, filesystem: Any, path: str) -> Check:
    folder = f"{path.rstrip('/')}/.skewless-doctor-{os.getpid()}"
    permit = "check the address, the credentials and the rights of this user there"
    content = b"skewless doctor"
    with _step("create a file", permit):
        filesystem.create_dir(folder, recursive=True)
        with filesystem.open_output_stream(f"{folder}/written") as out:
            out.write(content)
    with _step("rename a file", permit):
        filesystem.move(f"{folder}/written", f"{folder}/renamed")
    with _step("read a file", permit), filesystem.open_input_stream(f"{folder}/renamed") as back:
        if back.read() != content:
            raise OSError("it reads back as something else")
    with _step("delete a file", permit):
        filesystem.delete_dir(folder)
    return Check(STATE, True, f"{directory} (not local: read without memory-mapping)")


def check_own_session() -> Check:
    """Whether the workers of a session that a user makes, and not `sk.session()`, can be used."""
    from pyspark.sql import SparkSession

    def plain() -> SparkSession:
        return SparkSession.builder.getOrCreate()

    return _in_session(OWN, plain)


def check_worker(spark: SparkSession | None = None) -> Check:
    """Whether Spark starts a Python worker that is like the driver and can import Skewless.

    Takes a running session or starts a local one, whose log is shown only where it failed.
    """
    if spark is not None:
        return _asked(WORKER, spark)
    from skewless.runtime.session import session

    return _in_session(WORKER, session)


def _in_session(name: str, make: Callable[[], SparkSession]) -> Check:
    """Asks a worker of a session, which is stopped only if it was made for that."""
    from skewless.runtime.session import running

    with tempfile.TemporaryFile() as log:
        with _stderr_into(log):
            before = running()
            try:
                spark = make()
            except Exception as error:  # whatever it is, it is the finding
                failure = error
            else:
                try:
                    return _asked(name, spark)
                finally:
                    if before is None:
                        spark.stop()
        log.seek(0)
        said = log.read().decode(errors="replace").strip().splitlines()
    from skewless.runtime.workers import gist

    found = f"Spark does not start: {gist(failure)}" + (f" ({said[-1].strip()})" if said else "")
    return Check(
        name, False, found, "the text in brackets is Spark's own last word: start from there"
    )


def _asked(name: str, spark: SparkSession) -> Check:
    from skewless.runtime.workers import advice, ask, ask_worker

    worker = ask(spark)
    if worker.problem is None:  # can run, and does it?
        worker = ask_worker(spark)
    found = f"Python {worker.python} at {worker.executable}" if worker.python else ""
    if worker.problem is None:
        return Check(name, True, found)
    return Check(name, False, "; ".join(filter(None, (found, worker.problem))), advice())


def render(checks: Sequence[Check]) -> RenderableType:
    """A table of what was found and, below it, how to mend what failed."""
    words = {True: ("ok", "green"), False: ("FAILED", "bold red"), None: ("skipped", "yellow")}
    table = Table(box=None, pad_edge=False)
    for title in ("check", "result", "found"):
        table.add_column(title, overflow="fold")
    # Text, not markup: what Spark says is full of square brackets.
    for check in checks:
        table.add_row(Text(check.name), Text(*words[check.ok]), Text(check.found))
    failed = [check for check in checks if check.ok is False]
    if not failed:
        return table
    mend = Table(box=None, pad_edge=False, show_header=False)
    mend.add_column(no_wrap=True)
    mend.add_column(overflow="fold")
    for check in failed:
        mend.add_row(Text(check.name), Text(check.advice))
    return Group(table, Text("\nTo mend:", style="bold"), mend)


def _release(version: str) -> tuple[int, ...]:
    """The leading numbers of a version: `4.3.0.dev1` gives (4, 3, 0)."""
    match = re.match(r"\d+(\.\d+)*", version)
    return tuple(int(number) for number in match[0].split(".")) if match else ()


def _run(*command: str) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=60,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return subprocess.CompletedProcess(command, 1, str(error))


@contextmanager
def _stderr_into(log: IO[bytes]) -> Iterator[None]:
    """Send file descriptor 2 to `log`, because the JVM writes there and not to sys.stderr."""
    sys.stderr.flush()
    saved = os.dup(2)
    os.dup2(log.fileno(), 2)
    try:
        yield
    finally:
        sys.stderr.flush()
        os.dup2(saved, 2)
        os.close(saved)
