"""Who may import whom: planning and kernels never know Spark, the runtime never knows a paper."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

PURE = (
    "routing",
    "planning",
    "load",
    "kernels",
    "state",
    "shedding",
    "simulate",
    "workloads",
)

# Planners that come from a paper; the runtime reaches them only through a policy it is given.
PAPERS = ("lsstream", "mixed", "posg", "swarm")


def modules_of(package: str) -> list[Path]:
    return sorted((ROOT / "skewless" / package).rglob("*.py"))


def imports(path: Path, *, type_checking: bool = True) -> Iterator[tuple[int, str]]:
    """Line and full name of everything imported anywhere in the file.

    `from a import b` counts as a and as a.b, because b may be a module.
    """
    package = path.relative_to(ROOT).parent.parts
    skipped: set[ast.AST] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"), str(path))):
        if not type_checking and isinstance(node, ast.If) and is_type_checking(node.test):
            skipped.update(inner for statement in node.body for inner in ast.walk(statement))
        if node in skipped:
            continue
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else ()
            origin = ".".join((*above, *((node.module,) if node.module else ())))
            yield node.lineno, origin
            yield from ((node.lineno, f"{origin}.{alias.name}") for alias in node.names)


def is_type_checking(test: ast.expr) -> bool:
    return ast.unparse(test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING")


def offences(path: Path, banned: str, *, type_checking: bool = True) -> list[str]:
    return [
        f"{path.relative_to(ROOT)}:{line} imports {name}"
        for line, name in imports(path, type_checking=type_checking)
        if name == banned or name.startswith(f"{banned}.")
    ]


@pytest.mark.parametrize("package", PURE)
def test_pure_packages_never_import_spark(package: str) -> None:
    assert [found for path in modules_of(package) for found in offences(path, "pyspark")] == []


@pytest.mark.parametrize("package", ["planning", "kernels"])
def test_planning_and_kernels_never_import_the_runtime(package: str) -> None:
    assert [
        found for path in modules_of(package) for found in offences(path, "skewless.runtime")
    ] == []


def test_operators_import_spark_for_types_only() -> None:
    assert [
        found
        for path in modules_of("operators")
        for found in offences(path, "pyspark", type_checking=False)
    ] == []


@pytest.mark.parametrize("paper", PAPERS)
def test_runtime_never_knows_a_paper(paper: str) -> None:
    assert [
        found
        for path in modules_of("runtime")
        for found in offences(path, f"skewless.planning.{paper}")
    ] == []


@pytest.mark.parametrize(
    ("statement", "names"),
    [
        ("import pyspark.sql as s", ["pyspark.sql"]),
        ("from pyspark import sql", ["pyspark", "pyspark.sql"]),
        ("from ..runtime import step", ["skewless.runtime", "skewless.runtime.step"]),
        ("from . import x", ["skewless.planning", "skewless.planning.x"]),
        ("def f():\n    import pyspark", ["pyspark"]),
        ("if TYPE_CHECKING:\n    import pyspark", ["pyspark"]),
    ],
)
def test_imports_are_found(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, statement: str, names: list[str]
) -> None:
    monkeypatch.setattr(f"{__name__}.ROOT", tmp_path)
    path = tmp_path / "skewless" / "planning" / "example.py"
    path.parent.mkdir(parents=True)
    path.write_text(statement)
    assert [name for _, name in imports(path)] == names


def test_type_checking_imports_can_be_left_out(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(f"{__name__}.ROOT", tmp_path)
    path = tmp_path / "example.py"
    path.write_text("if TYPE_CHECKING:\n    import a\nelse:\n    import b\n")
    assert [name for _, name in imports(path, type_checking=False)] == ["b"]
