"""The doctor: each check sees what is wrong, says how to mend it, and leaves nothing behind."""

from __future__ import annotations

import mmap
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, ClassVar

import pytest
from rich.console import Console

from skewless import doctor
from skewless.doctor import Check, Package
from tests.runtime.test_workers import bare_python

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parent.parent


def fake_java(home: Path, body: str) -> dict[str, str]:
    """A JAVA_HOME whose java is a shell script, as an environment."""
    java = home / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\n{body}\n")
    java.chmod(0o755)
    return {"JAVA_HOME": str(home)}


@pytest.mark.parametrize(
    "told",
    ['openjdk version "17.0.15" 2025-04-15', 'java version "21" 2023-09-19', 'x version "25-ea"'],
)
def test_java_new_enough(tmp_path: Path, told: str) -> None:
    check = doctor.check_java(fake_java(tmp_path, f"echo 'Picked up X'; echo '{told}' >&2"))
    assert check.ok
    assert str(tmp_path) in check.found


@pytest.mark.parametrize("version", ["1.8.0_392", "11.0.21", "16"])
def test_java_too_old(tmp_path: Path, version: str) -> None:
    check = doctor.check_java(fake_java(tmp_path, f"echo 'java version \"{version}\"' >&2"))
    assert check.ok is False
    assert version in check.found
    assert "openjdk-17-jre-headless" in check.advice


def test_java_that_says_nothing_useful(tmp_path: Path) -> None:
    check = doctor.check_java(fake_java(tmp_path, "echo 'Unable to locate a Java Runtime'; exit 1"))
    assert check.ok is False
    assert "does not tell its version" in check.found


def test_java_cut_down(tmp_path: Path) -> None:
    body = """case "$1" in --add-modules*) exit 1 ;; esac; echo 'java version "17.0.1"' >&2"""
    check = doctor.check_java(fake_java(tmp_path, body))
    assert check.ok is False
    assert "jdk.incubator.vector" in check.found


def test_java_home_without_java(tmp_path: Path) -> None:
    check = doctor.check_java({"JAVA_HOME": str(tmp_path), "PATH": "/usr/bin:/bin"})
    assert check.ok is False
    assert "JAVA_HOME" in check.found
    assert "JAVA_HOME" in check.advice


def test_no_java_anywhere(tmp_path: Path) -> None:
    check = doctor.check_java({"PATH": str(tmp_path)})
    assert check.ok is False
    assert "no java" in check.found


@pytest.mark.parametrize(
    ("version", "taken"),
    [
        ("4.0.9", False),
        ("4.1", True),
        ("4.1.0", True),
        ("4.3.0.dev1", True),
        ("5.0.0", False),
        ("10.0", False),
        ("unknown", False),
    ],
)
def test_version_bounds(version: str, taken: bool) -> None:
    assert Package("pyspark", "4.1", below="5").takes(version) is taken


def test_bounds_are_those_of_the_package() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    assert {package.requirement for package in doctor.PACKAGES} <= set(declared)


@pytest.mark.parametrize("package", doctor.PACKAGES, ids=lambda package: package.name)
def test_installed_packages_are_fine(package: Package) -> None:
    assert doctor.check_package(package).ok


def test_package_not_installed() -> None:
    check = doctor.check_package(Package("skewless_no_such_package", "1"))
    assert check.ok is False
    assert check.found == "not installed"
    assert "pip install 'skewless_no_such_package>=1'" in check.advice


def test_package_too_new(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("pandas")
    module.__version__ = "3.0.1"  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "pandas", module)
    check = doctor.check_package(Package("pandas", "2.2", below="3"))
    assert check.ok is False
    assert "3.0.1" in check.found
    assert "pandas>=2.2,<3" in check.advice


def test_package_that_breaks_on_import(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "skewless_broken.py").write_text("raise RuntimeError('binary does not fit')")
    monkeypatch.syspath_prepend(tmp_path)
    check = doctor.check_package(Package("skewless_broken", "1"))
    assert check.ok is False
    assert "binary does not fit" in check.found


def test_state_directory(tmp_path: Path) -> None:
    check = doctor.check_state(str(tmp_path))
    assert check.ok
    assert list(tmp_path.iterdir()) == []


def test_state_directory_need_not_exist(tmp_path: Path) -> None:
    check = doctor.check_state(str(tmp_path / "a" / "b"))
    assert check.ok
    assert "to be created" in check.found
    assert list(tmp_path.iterdir()) == []


def test_state_directory_below_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    check = doctor.check_state(str(tmp_path / "file" / "state"))
    assert check.ok is False
    assert "cannot create a folder" in check.found
    assert str(tmp_path / "file") in check.advice


def test_state_directory_that_cannot_be_mapped(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def refuse(*arguments: Any, **options: Any) -> None:
        raise OSError(19, "No such device")

    monkeypatch.setattr(mmap, "mmap", refuse)
    check = doctor.check_state(str(tmp_path))
    assert check.ok is False
    assert "cannot memory-map a file: No such device" in check.found
    assert "local disk" in check.advice
    assert list(tmp_path.iterdir()) == []


def test_state_directory_as_uri(tmp_path: Path) -> None:
    assert doctor.check_state(tmp_path.as_uri()).ok
    remote = doctor.check_state("mock:///state")
    assert remote.ok
    assert "not local" in remote.found


def test_state_directory_with_an_unknown_scheme() -> None:
    check = doctor.check_state("nosuch://state")
    assert check.ok is False
    assert "nosuch" in check.found


def test_worker_is_skipped_without_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    for check in ("check_worker", "check_own_session"):
        monkeypatch.setattr(doctor, check, lambda: pytest.fail("started Spark"))
    started: list[str] = []
    checks = doctor.examine(str(tmp_path), started.append)
    assert checks[0].ok is False
    assert [check.name for check in checks[-2:]] == [doctor.OWN, doctor.WORKER]
    assert {check.ok for check in checks[-2:]} == {None}
    assert checks[-1].found == checks[-2].found == "skipped: needs Java"
    assert started == [check.name for check in checks[:-2]]


def test_worker(spark: SparkSession) -> None:
    """Also of the session that is there already, which goes on."""
    for check in (doctor.check_worker(spark), doctor.check_worker(), doctor.check_own_session()):
        assert check.ok, check
        assert f"Python {sys.version_info[0]}.{sys.version_info[1]}." in check.found
    assert spark.range(3).count() == 3


def test_the_session_that_a_job_would_get_is_asked(spark: SparkSession, tmp_path: Path) -> None:
    """Its workers run what the settings say, and not the Python of the driver."""
    other = bare_python(tmp_path)
    spark.conf.set("spark.sql.execution.pyspark.python", str(other))
    try:
        check = doctor.check_own_session()
    finally:
        spark.conf.unset("spark.sql.execution.pyspark.python")
    assert check.ok is False
    assert check.name == doctor.OWN
    assert "cannot import skewless" in check.found
    assert f"PYSPARK_PYTHON (or spark.pyspark.python) to {sys.executable}" in check.advice


def test_worker_that_fails_shows_the_error() -> None:
    class Broken:
        conf: ClassVar[dict[str, str]] = {"spark.master": "spark://somewhere"}

        def range(self, *arguments: int) -> None:
            raise RuntimeError(
                "An exception was thrown\nTraceback (most recent call last):\n"
                "ModuleNotFoundError: No module named 'pyarrow'\n\tat java.lang.Thread"
            )

    check = doctor.check_worker(Broken())  # type: ignore[arg-type]
    assert check.ok is False
    assert check.found.endswith("ModuleNotFoundError: No module named 'pyarrow'")
    assert "PYSPARK_PYTHON" in check.advice


def test_rendering_keeps_square_brackets() -> None:
    console = Console(width=200)
    with console.capture() as captured:
        console.print(doctor.render([Check("Python worker", False, "[MISMATCH]", "set [it]")]))
    assert re.search(r"Python worker +FAILED +\[MISMATCH\]", captured.get())
    assert "set [it]" in captured.get()


def test_the_doctor_comes_when_everything_is_missing() -> None:
    """Else it could never say that a package is missing."""
    names = [package.name for package in doctor.PACKAGES]
    program = f"""
import sys
for name in {names}:
    sys.modules[name] = None
import skewless.cli
from skewless.doctor import PACKAGES, check_package
print([check_package(package).ok for package in PACKAGES])
"""
    told = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert told.stdout.strip() == str([False] * len(names)), told.stderr
