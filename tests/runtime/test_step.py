"""The function of a batch: what it does in which order, and what Spark hears when it fails."""

import traceback
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.errors import PySparkException

from skewless.runtime import step as steps
from skewless.runtime.failures import found
from skewless.runtime.step import InterruptedBatch, Step
from skewless.runtime.topology import Node, Topology


class Failing(Step):
    """A batch that only fails."""

    def __init__(self, failure: BaseException) -> None:
        self._failure = failure

    def _run(self, batch: Any, batch_id: int) -> None:
        raise self._failure


def passed_on(failure: BaseException) -> str:
    """The text that Java gets."""
    try:
        Failing(failure)(None, 3)  # type: ignore[arg-type]
    except Exception:
        return traceback.format_exc()
    raise AssertionError("it must fail")


@pytest.mark.parametrize(
    "name",
    [
        "java.lang.InterruptedException",
        "java.io.InterruptedIOException",
        "java.nio.channels.ClosedByInterruptException",
    ],
)
def test_a_query_that_is_stopped_says_so_in_a_few_words(name: str) -> None:
    """Spark's pattern overflows Java's stack over a long text."""
    long = "py4j.protocol.Py4JJavaError: An error occurred while calling o7.save.\n" + "x" * 100_000
    told = passed_on(PySparkException(f"{long}\n: {name}\n\tat somewhere"))
    assert len(told) < 2_000
    before, _, after = told.partition(
        "py4j.protocol.Py4JJavaError: An error occurred while calling"
    )
    assert before
    assert name in after


def test_other_failures_are_told_first_and_then_in_full() -> None:
    """Also one that names an interruption for reasons of its own."""
    failure = RuntimeError("upload failed: java.io.InterruptedIOException: timeout")
    told = passed_on(failure)
    lines = (found(told) or "").splitlines()
    assert lines[0] == f"RuntimeError: {failure}"
    assert lines[-1] == "batch 3 failed"
    assert "Traceback" in told
    assert len(passed_on(ValueError("x" * 1_000_000))) < 50_000


def test_an_exit_becomes_an_error_that_spark_can_hear_of() -> None:
    told = found(passed_on(SystemExit(2)))
    assert told is not None
    assert told.startswith("SystemExit: 2\n")
    assert "batch 3" in told
    assert issubclass(InterruptedBatch, Exception)


class Engine:
    """Notes what a batch comes to, and lets a clock run while work is done."""

    def __init__(self) -> None:
        self.noted: list[str] = []
        self.seconds = 0.0
        self.laps_ms: dict[str, float] = {}
        self.faults = SimpleNamespace(reach=lambda point, batch: self.noted.append(point))

    def work(self, what: str, seconds: float) -> None:
        self.noted.append(what)
        self.seconds += seconds

    def begin(self, batch: int) -> Any:
        self.work("begin", 0.25)
        route = SimpleNamespace(instances=2, replicates=False, spreads=False)
        part = SimpleNamespace(task=None, order=(0, 1), state=SimpleNamespace(route=route))
        return SimpleNamespace(batch=batch, parts=(part,))

    def loading(self, attempt: Any) -> dict[int, Any]:
        return {}

    def missing(self, attempt: Any, number: int) -> list[int]:
        return []

    def emission(self, attempt: Any, number: int) -> str:
        return "emission"

    def finish(self, attempt: Any, laps_ms: dict[str, float]) -> Any:
        self.laps_ms = laps_ms
        return SimpleNamespace(progress={"operators": []})


@pytest.mark.parametrize("emits", [False, True], ids=["a join", "windows"])
def test_the_time_of_tasks_is_told_where_it_is_spent(
    monkeypatch: pytest.MonkeyPatch, emits: bool
) -> None:
    """Windows are given when all rows are in the state: their tasks run while the result is built.
    No task has run at the point before the sink."""
    engine = Engine()
    monkeypatch.setattr(steps, "run_tasks", lambda *args, **options: "tasks")
    monkeypatch.setattr(steps, "run_emission", lambda *args: "windows")
    monkeypatch.setattr(steps, "_consume", lambda frame: engine.work(frame, 4.0))
    node = Node(
        operator=SimpleNamespace(emits=emits, waits=emits),  # type: ignore[arg-type]
        children=(),
        rows=lambda *frames: SimpleNamespace(schema=None),  # type: ignore[arg-type,return-value]
        schema=None,  # type: ignore[arg-type]
    )
    sink = SimpleNamespace(plan_is_ours=True, write=lambda frame, batch: engine.work(frame, 2.0))
    step = Step(engine, sink, Topology((node,), ()), now=lambda: engine.seconds)  # type: ignore[arg-type]
    step._configured = True
    step._run(SimpleNamespace(sparkSession=None), 7)  # type: ignore[arg-type]
    before = ["begin", "before_sink"]
    if emits:
        assert engine.noted == [*before, "tasks", "windows", "after_sink"]
        assert engine.laps_ms == {
            "prepare": 250.0,
            "tasks": 4_000.0,
            "sink": 2_000.0,
            "complete": 0,
        }
    else:
        assert engine.noted == [*before, "tasks", "after_sink"]
        assert engine.laps_ms == {"prepare": 250.0, "sink": 2_000.0, "complete": 0.0}
