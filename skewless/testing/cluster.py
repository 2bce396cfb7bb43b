"""A standalone Spark cluster on loopback, from the pip package: for tests, and gone after them."""

import re
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil
import pyspark

from skewless.testing.driver import QUICK_JVM
from skewless.testing.processes import ProcessTree, wait_until

_START_S = 120
_EXECUTOR = "CoarseGrainedExecutorBackend"
_LOOPBACK = "127.0.0.1"
# Executors inherit it from the workers.
_ENVIRONMENT = {
    "SPARK_LOCAL_IP": _LOOPBACK,
    "SPARK_DAEMON_MEMORY": "256m",
    "SPARK_DAEMON_JAVA_OPTS": QUICK_JVM,
    "PYSPARK_PYTHON": sys.executable,
}


@dataclass(frozen=True)
class Cluster:
    """Its master's address, and the processes behind it."""

    url: str
    workers: tuple[ProcessTree, ...]

    def executors(self) -> list[psutil.Process]:
        """The executors that are running, of all applications."""
        return [p for worker in self.workers for p in worker.find(_EXECUTOR)]

    def executor_of(self, pid: int) -> psutil.Process:
        """The executor whose Python worker has this process id."""
        for ancestor in psutil.Process(pid).parents():
            if _EXECUTOR in " ".join(ancestor.cmdline()):
                return ancestor
        raise AssertionError(f"process {pid} belongs to no executor")


@contextmanager
def standalone_cluster(folder: Path, workers: int = 2, memory: str = "1g") -> Iterator[Cluster]:
    """Starts a master and some workers of one core each; kills them, and their executors, after.

    with standalone_cluster(tmp_path) as cluster:
        spark = SparkSession.builder.master(cluster.url).getOrCreate()
    """
    with ExitStack() as stack:
        master = stack.enter_context(_daemon(folder, "master.Master"))
        found = _wait_for(master, r"Starting Spark master at (spark://\S+)")
        options = ["--cores", "1", "--memory", memory]
        started = tuple(
            stack.enter_context(
                _daemon(
                    folder, "worker.Worker", *options, "--work-dir", f"{folder}/work-{i}", found
                )
            )
            for i in range(workers)
        )
        for worker in started:
            _wait_for(worker, r"(Successfully registered) with master")
        yield Cluster(found, started)


def _daemon(folder: Path, name: str, *arguments: str) -> ProcessTree:
    # The script replaces itself by the JVM.
    program = Path(pyspark.__file__).parent / "bin" / "spark-class"
    loopback = ["--host", _LOOPBACK, "--port", "0", "--webui-port", "0"]
    number = len(list(folder.glob("*.log")))
    return ProcessTree(
        [str(program), f"org.apache.spark.deploy.{name}", *loopback, *arguments],
        folder / f"{number}-{name}.log",
        _ENVIRONMENT,
    )


def _wait_for(daemon: ProcessTree, pattern: str) -> str:
    def seen() -> str | None:
        found = re.search(pattern, daemon.text())
        assert found or daemon.returncode is None, f"Spark did not start: {daemon.text()[-2000:]}"
        return found[1] if found else None

    found = wait_until(seen, _START_S, f"{pattern!r} in {daemon.log}")
    assert found is not None
    return found
