"""The set-up scripts: what they accept, and that they say what to install before anything slow."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SCRIPTS = ROOT / "scripts"


@pytest.fixture
def bin_dir(tmp_path: Path) -> Path:
    """A PATH of its own: the few tools that the scripts use, and neither Java nor Python."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for tool in ("sh", "sed", "head", "cat", "awk", "touch"):
        found = shutil.which(tool)
        assert found, f"{tool} is missing"
        (folder / tool).symlink_to(found)
    return folder


def put(path: Path, body: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)


def run(script: str, path: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["sh", str(SCRIPTS / script)],
        env={"PATH": str(path), **environ},
        capture_output=True,
        text=True,
        check=False,
    )


def says(version_line: str) -> str:
    return f"echo '{version_line}' >&2"


@pytest.mark.parametrize(
    "told",
    [
        'openjdk version "17.0.15" 2025-04-15',
        'openjdk version "21" 2023-09-19',
        'a version "25-ea"',
    ],
)
def test_java_new_enough(bin_dir: Path, told: str) -> None:
    put(bin_dir / "java", "echo 'Picked up JAVA_TOOL_OPTIONS: -Xss4m' >&2; " + says(told))
    result = run("check-java.sh", bin_dir)
    assert result.returncode == 0, result.stderr
    assert str(bin_dir / "java") in result.stdout


@pytest.mark.parametrize(
    ("told", "shown"),
    [
        ('java version "1.8.0_392"', "is version 1.8.0_392"),
        ('openjdk version "11.0.21" 2023-10-17', "is version 11.0.21"),
        ('openjdk version "16" 2021-03-16', "is version 16"),
        (
            "The operation couldn't be completed. Unable to locate a Java Runtime.",
            "tell its version",
        ),
    ],
)
def test_java_too_old_or_silent(bin_dir: Path, told: str, shown: str) -> None:
    told = told.replace("'", "'\\''")
    put(bin_dir / "java", says(told))
    result = run("check-java.sh", bin_dir)
    assert result.returncode != 0
    assert shown in result.stderr
    assert_tells_what_to_install(result.stderr)


def test_no_java(bin_dir: Path) -> None:
    result = run("check-java.sh", bin_dir)
    assert result.returncode != 0
    assert "no java was found" in result.stderr
    assert_tells_what_to_install(result.stderr)


def test_java_home_wins_over_the_path(bin_dir: Path, tmp_path: Path) -> None:
    put(bin_dir / "java", says('openjdk version "17.0.1"'))
    put(tmp_path / "old" / "bin" / "java", says('openjdk version "11.0.1"'))
    assert run("check-java.sh", bin_dir, JAVA_HOME="").returncode == 0
    result = run("check-java.sh", bin_dir, JAVA_HOME=str(tmp_path / "old"))
    assert result.returncode != 0
    assert "11.0.1" in result.stderr


def test_java_home_without_java(bin_dir: Path, tmp_path: Path) -> None:
    put(bin_dir / "java", says('openjdk version "17.0.1"'))
    result = run("check-java.sh", bin_dir, JAVA_HOME=str(tmp_path / "nowhere"))
    assert result.returncode != 0
    assert "JAVA_HOME" in result.stderr


def test_java_cut_down(bin_dir: Path) -> None:
    refuses = 'case "$1" in --add-modules*) exit 1 ;; esac; '
    put(bin_dir / "java", refuses + says('openjdk version "17.0.1"'))
    result = run("check-java.sh", bin_dir)
    assert result.returncode != 0
    assert "jdk.incubator.vector" in result.stderr


def assert_tells_what_to_install(message: str) -> None:
    for text in ("openjdk-17-jre-headless", "dnf install", "brew install", "JAVA_HOME"):
        assert text in message


# A stand-in for python: answers the version question and the venv question, in that order.
NEW = "exit 0"
OLD = 'case "$2" in *version_info*) exit 1 ;; esac; exit 0'
BARE = 'case "$2" in *ensurepip*) exit 1 ;; esac; exit 0'


def test_python_found(bin_dir: Path) -> None:
    put(bin_dir / "python3", NEW)
    result = run("find-python.sh", bin_dir)
    assert result.returncode == 0
    assert result.stdout.strip() == str(bin_dir / "python3")


def test_newer_python_beside_an_old_one(bin_dir: Path) -> None:
    put(bin_dir / "python3", OLD)
    put(bin_dir / "python3.12", "exit 127")  # a version manager's shim that points at nothing
    put(bin_dir / "python3.11", NEW)
    assert run("find-python.sh", bin_dir).stdout.strip() == str(bin_dir / "python3.11")


def test_only_an_old_python(bin_dir: Path) -> None:
    put(bin_dir / "python3", OLD)
    result = run("find-python.sh", bin_dir)
    assert result.returncode != 0
    assert result.stdout == ""
    assert "none was found" in result.stderr
    assert "python3-venv" in result.stderr


def test_python_without_venv(bin_dir: Path) -> None:
    put(bin_dir / "python3", BARE)
    result = run("find-python.sh", bin_dir)
    assert result.returncode != 0
    assert "has no venv" in result.stderr
    assert "python3-venv" in result.stderr


def test_a_named_python_is_used_or_refused(bin_dir: Path, tmp_path: Path) -> None:
    put(bin_dir / "python3", NEW)
    put(tmp_path / "mine", NEW)
    put(tmp_path / "old", OLD)
    assert run("find-python.sh", bin_dir, PYTHON=str(tmp_path / "mine")).stdout.strip() == str(
        tmp_path / "mine"
    )
    result = run("find-python.sh", bin_dir, PYTHON=str(tmp_path / "old"))
    assert result.returncode != 0
    assert "PYTHON=" in result.stderr


@pytest.mark.skipif(shutil.which("make") is None, reason="needs make")
@pytest.mark.parametrize("target", ["test", "demo", "bench", "soak"])
def test_make_stops_for_java_before_anything_slow(
    bin_dir: Path, tmp_path: Path, target: str
) -> None:
    make = shutil.which("make")
    assert make
    tree = tmp_path / "tree"
    shutil.copytree(SCRIPTS, tree / "scripts")
    for name in ("Makefile", "pyproject.toml"):
        shutil.copy(ROOT / name, tree / name)
    put(bin_dir / "python3", "echo 'set-up began' >&2; exit 0")
    result = subprocess.run(
        [make, "-j4", target],
        cwd=tree,
        env={"PATH": str(bin_dir)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode != 0
    assert "openjdk-17-jre-headless" in result.stderr
    assert "set-up began" not in result.stderr
    assert not (tree / ".venv").exists()


def test_scripts_can_be_run() -> None:
    for script in (*SCRIPTS.iterdir(), ROOT / ".ci" / "run"):
        assert os.access(script, os.X_OK), script
