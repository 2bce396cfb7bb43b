"""A query in a driver process of its own, to be killed for real and started again."""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
from pyspark import cloudpickle
from pyspark.sql import SparkSession

from skewless.runtime.session import session as embedded_session
from skewless.state.commit import CommitLog
from skewless.state.faults import Fault
from skewless.state.storage import Storage
from skewless.testing.processes import KilledAtExit, ProcessTree, wait_until
from skewless.testing.replay import Build

JOB = "job.pickle"
_START_S = 120
# A process that lives for seconds never earns back what the JVM's second compiler costs.
QUICK_JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
_KILLED = -9


def quick_session() -> SparkSession:
    """The embedded session, set to start quickly rather than to run fast."""
    return embedded_session(
        config={"spark.driver.extraJavaOptions": QUICK_JVM, "spark.sql.shuffle.partitions": "2"}
    )


class Driver(KilledAtExit):
    """Runs a query over the batches of a `Replay` folder in another process.

        Replay(None, folder, batches)
        with Driver(folder, lambda l, r: sk.join(l, r, on="k", time="ts", within="1 second")) as d:
            d.run([Fault("before_commit", batch=1), Fault("in_task", batch=3)])
            assert_same_rows(d.rows(), join_oracle(batches, ...))

    `session` makes the SparkSession in that process; it and `build` travel by value, so they may be
    lambdas or functions of a test. Leaving the `with` block kills whatever is still running.
    """

    def __init__(
        self,
        folder: Path,
        build: Build,
        *,
        session: Callable[[], SparkSession] = quick_session,
        env: Mapping[str, str] | None = None,
        **options: Any,
    ) -> None:
        self.folder = folder
        self.kills = 0
        self._build = build
        self._session = session
        self._env = {"PYSPARK_PYTHON": sys.executable, **(env or {})}
        self._options = options
        self._starts = 0
        self._tree: ProcessTree | None = None

    def kill_all(self) -> None:
        """Kills whatever is still running."""
        if self._tree is not None:
            self._tree.kill_all()

    def run(self, faults: Sequence[Fault] = (), seconds: float = 300) -> None:
        """Runs to the end of the batches; every fault kills the driver once.

        A point inside a task is not in the driver: there the task is held, and the driver killed.
        """
        for fault in faults:
            self.run_to(fault, seconds)
        self.start()
        self.finish(seconds)

    def run_to(self, fault: Fault, seconds: float = 300) -> None:
        """Starts the query and kills its driver at a point."""
        marker = self.folder / f"struck-{self._starts}"
        action = "hang" if fault.point == "in_task" else "kill"
        tree = self.start([Fault(fault.point, fault.batch, action, str(marker))])
        wait_until(lambda: marker.exists() or tree.returncode is not None, seconds, str(fault))
        assert marker.exists(), self._unexpected(f"the query never came to {fault}")
        self.kill()

    def start(self, faults: Sequence[Fault] = ()) -> ProcessTree:
        """Starts the query from its checkpoint; nothing of an earlier start may be running."""
        assert self._tree is None or not self._tree.alive(), "the driver is running already"
        job = self.folder / JOB
        with _by_value(self._build, self._session):
            job.write_bytes(
                cloudpickle.dumps((self._session, self._build, list(faults), self._options))
            )
        self._starts += 1
        self._tree = ProcessTree(
            [sys.executable, "-m", "skewless.testing", str(self.folder)],
            self.folder / f"driver-{self._starts}.log",
            self._env,
        )
        return self._tree

    def wait(self, seconds: float) -> int | None:
        """Waits so long for the driver to end; gives its exit code, or None while it runs."""
        assert self._tree is not None, "start the driver first"
        return self._tree.wait(seconds)

    def kill(self) -> None:
        """SIGKILL to the driver; its JVM and its workers must then end by themselves."""
        assert self._tree is not None, "start the driver first"
        self._tree.kill()
        assert self._tree.returncode == _KILLED, self._unexpected("the driver ended before")
        self.kills += 1
        self._tree.wait_gone()

    def kill_jvm(self) -> None:
        """SIGKILL to the driver's JVM; the Python process must then end with an error."""
        assert self._tree is not None, "start the driver first"
        jvm = wait_until(lambda: self._tree and self._tree.find("SparkSubmit"), _START_S, "the JVM")
        assert jvm, "a JVM was found"
        jvm[0].kill()
        self.kills += 1
        self._tree.wait_gone()
        assert self._tree.returncode != 0, self._unexpected("the driver did not notice")

    def finish(self, seconds: float = 300) -> None:
        """Waits for the query to come to the end of its batches, and for its processes to go."""
        assert self._tree is not None, "start the driver first"
        code = self._tree.wait(seconds)
        assert code == 0, self._unexpected(f"the driver's exit code is {code}")
        self._tree.wait_gone()

    def committed(self) -> int:
        """The last batch that has a commit, −1 before the first."""
        log = CommitLog(Storage(str(self.folder / "checkpoint" / "skewless")))
        return max(log.batches(), default=-1)

    def rows(self) -> pa.Table:
        """What a reader of the sink's path sees, read without Spark."""
        files = [str(p) for p in sorted((self.folder / "out").glob("batch=*/*.parquet"))]
        return _instants(ds.dataset(files, format="parquet").to_table())

    def _unexpected(self, what: str) -> str:
        text = self._tree.text() if self._tree else ""
        return f"{what}; it printed: ...{text[-4000:]}"


def _instants(table: pa.Table) -> pa.Table:
    """Spark writes timestamps as INT96: nanoseconds, and in UTC although nothing says so."""
    for i, field in enumerate(table.schema):
        if field.type == pa.timestamp("ns"):
            column = table.column(i).cast(pa.timestamp("us")).cast(pa.timestamp("us", "UTC"))
            table = table.set_column(i, field.name, column)
    return table


@contextmanager
def _by_value(*functions: Any) -> Iterator[None]:
    """Pickles functions whole: the other process may not be able to import a test's module."""
    plain = [getattr(f, "func", f) for f in functions]  # a partial has no module
    modules = {sys.modules.get(f.__module__) for f in plain}
    chosen = [m for m in modules if m and not m.__name__.startswith("skewless.")]
    for module in chosen:
        cloudpickle.register_pickle_by_value(module)
    try:
        yield
    finally:
        for module in chosen:
            cloudpickle.unregister_pickle_by_value(module)
