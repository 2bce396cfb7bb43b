"""Workers that cannot run a query are found before it starts, and named."""

import shlex
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import skewless as sk
from skewless.runtime import workers
from skewless.runtime.workers import Worker, ask, ask_interpreter, ask_worker, runs_this_python

PYTHON = "spark.sql.execution.pyspark.python"


def script(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(["#!/bin/sh", *lines]) + "\n")
    path.chmod(0o755)
    return path


def bare_python(folder: Path) -> Path:
    """This interpreter without its packages: one of another environment."""
    run = f'exec {shlex.quote(sys.executable)} -I -S "$@"'
    return script(folder / "bare-python", f"cd {shlex.quote(str(folder))}", run)


def old_python(folder: Path) -> Path:
    """This interpreter with an older Skewless."""
    package = folder / "old" / "skewless"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("__version__ = '0.0.9'")
    run = f'PYTHONPATH={shlex.quote(str(package.parent))} exec {shlex.quote(sys.executable)} "$@"'
    return script(folder / "old-python", f"cd {shlex.quote(str(folder))}", run)


@pytest.fixture
def stream(spark: SparkSession) -> sk.Stream:
    rows = spark.readStream.format("rate").load()
    return sk.keyed(rows, "value", time="timestamp", window="1 minute", process=sk.Count())


def refusal(stream: sk.Stream, python: Path) -> str:
    stream.session.conf.set(PYTHON, str(python))
    try:
        with pytest.raises(sk.SkewlessError) as refused:
            stream.writeStream.format("noop").start()
    finally:
        stream.session.conf.unset(PYTHON)
    assert not stream.session.streams.active
    return str(refused.value)


def test_a_start_names_both_interpreters_and_the_setting(stream, tmp_path) -> None:
    told = refusal(stream, bare_python(tmp_path))
    assert "cannot import skewless: ModuleNotFoundError: No module named 'skewless'" in told
    assert f"The driver runs {sys.executable}, the workers run " in told
    assert f"Set PYSPARK_PYTHON (or spark.pyspark.python) to {sys.executable}" in told


def test_another_version_on_the_workers_is_named(stream, tmp_path) -> None:
    told = refusal(stream, old_python(tmp_path))
    assert f"skewless {sk.__version__} here, 0.0.9 on the workers" in told


def test_an_interpreter_that_is_not_there_or_fails_is_named(stream, tmp_path) -> None:
    assert f"{tmp_path}/none cannot be run" in refusal(stream, tmp_path / "none")
    broken = script(tmp_path / "broken", "echo 'no such library' >&2", "exit 3")
    assert "broken fails: no such library" in refusal(stream, broken)


def test_the_same_interpreter_is_not_asked(stream, spark, monkeypatch) -> None:
    """By any of its names; of workers elsewhere nothing is known."""
    monkeypatch.setattr(workers, "ask", lambda session: pytest.fail("asked"))
    workers.require_able_workers(spark)
    for name in Path(sys.executable).parent.glob("python*"):
        if name.resolve() == Path(sys.executable).resolve():
            monkeypatch.setattr(spark.sparkContext, "pythonExec", str(name))
            assert runs_this_python(spark)
    monkeypatch.setattr(workers, "is_local", lambda session: False)
    assert not runs_this_python(spark)


def test_others_are_asked_once(spark, monkeypatch) -> None:
    asked = []
    monkeypatch.setattr(workers, "runs_this_python", lambda session: False)
    monkeypatch.setattr(workers, "ask", lambda session: asked.append(session) or ask(session))
    try:
        workers.require_able_workers(spark)
        workers.require_able_workers(spark)
    finally:
        workers._asked.discard(spark)
    assert asked == [spark]


def test_a_worker_and_its_interpreter_tell_the_same(spark) -> None:
    told = ask_worker(spark)
    assert told == ask_interpreter(sys.executable)
    assert told.problem is None
    assert told.executable == sys.executable


@pytest.mark.parametrize(
    ("worker", "problem"),
    [
        (Worker("2.7.18", "/usr/bin/python", failure="cannot import skewless"), ", 2.7.18 on the"),
        (Worker(failure="it died"), "it died"),
        (Worker(".".join(map(str, sys.version_info[:3])), skewless="9.0"), ", 9.0 on the workers"),
    ],
)
def test_what_keeps_a_worker_from_working(worker: Worker, problem: str) -> None:
    assert worker.problem is not None
    assert problem in worker.problem
