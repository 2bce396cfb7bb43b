"""Who may import whom: the table of CONTRIBUTING.md, line by line."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
# Beside the folders, for all to use.
COMMON = ("skewless.errors", "skewless.durations", "skewless.failures")
# Policies that come from a paper; the runtime reaches them only through a policy it is given.
PAPERS = ("lsstream", "fastjoin", "contrand", "joinmatrix", "mixed", "pkg", "posg", "swarm")


@dataclass(frozen=True)
class Line:
    """One line of the table: what the modules of a place may import; None: everything."""

    place: str
    always: frozenset[str] | None
    for_types: frozenset[str] = frozenset()

    def allows(self, name: str, *, typed: bool) -> bool:
        if self.always is None:
            return True
        allowed = self.always | (self.for_types if typed else frozenset())
        own = self.place.removesuffix(".py").replace("/", ".")
        return any(within(name, other) for other in (*allowed, *COMMON, own))


def within(name: str, package: str) -> bool:
    if package == "skewless":
        return name == package
    return name == package or name.startswith(f"{package}.")


def table() -> dict[str, Line]:
    """The table of CONTRIBUTING.md by place."""
    lines = {}
    for row in (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").splitlines():
        found = re.fullmatch(r"\| `(skewless/[^`]+)` \| [^|]+ \| ([^|]+) \|", row)
        if found is None:
            continue
        place, told = found.groups()
        if told == "everything":
            lines[place] = Line(place, None)
            continue
        names = [] if told == "nothing" else told.split(", ")
        typed = {n.removesuffix(" for types") for n in names if n.endswith(" for types")}
        always = {n for n in names if not n.endswith(" for types")}
        full = [frozenset(map(full_name, some)) for some in (always, typed)]
        lines[place] = Line(place, *full)
    return lines


def full_name(told: str) -> str:
    """A folder is told by its name alone, as other packages are."""
    folder = ROOT / "skewless" / told.split(".")[0]
    return f"skewless.{told}" if folder.is_dir() else told


def line_of(path: Path, lines: dict[str, Line]) -> Line | None:
    """The line that speaks of a module most exactly."""
    name = path.relative_to(ROOT).as_posix()
    about = [line for place, line in lines.items() if name == place or name.startswith(f"{place}/")]
    return max(about, key=lambda line: len(line.place), default=None)


def modules() -> list[Path]:
    return sorted((ROOT / "skewless").rglob("*.py"))


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


def foreign(path: Path, *, type_checking: bool) -> Iterator[tuple[int, str]]:
    """What a module imports that is not Python's own."""
    for number, name in imports(path, type_checking=type_checking):
        if name.split(".")[0] not in sys.stdlib_module_names:
            yield number, name


LINES = table()


@pytest.mark.parametrize("place", LINES)
def test_a_place_imports_what_its_line_allows(place: str) -> None:
    line = LINES[place]
    mine = [path for path in modules() if line_of(path, LINES) == line]
    assert mine, f"{place}: the table speaks of what is not there"
    refused = []
    for path in mine:
        untyped = set(foreign(path, type_checking=False))
        for number, name in foreign(path, type_checking=True):
            if name.startswith("skewless.") and not is_module(name):
                continue  # a name that a module has; the module itself is among the imports
            if not line.allows(name, typed=(number, name) not in untyped):
                refused.append(f"{path.relative_to(ROOT)}:{number} imports {name}")
    assert refused == []


@pytest.mark.parametrize("place", [p for p, line in LINES.items() if line.always is not None])
def test_a_line_allows_nothing_that_nobody_uses(place: str) -> None:
    line = LINES[place]
    used = {
        name
        for path in modules()
        if line_of(path, LINES) == line
        for _, name in foreign(path, type_checking=True)
    }
    allowed = (line.always or frozenset()) | line.for_types
    unused = [a for a in allowed if not any(within(name, a) for name in used)]
    assert unused == []


def test_every_folder_has_a_line() -> None:
    root = {"__init__.py", "durations.py", "errors.py", "failures.py"}
    assert [
        str(path.relative_to(ROOT))
        for path in modules()
        if line_of(path, LINES) is None and path.relative_to(ROOT / "skewless").name not in root
    ] == []


def is_module(name: str) -> bool:
    place = ROOT.joinpath(*name.split("."))
    return place.is_dir() or place.with_suffix(".py").is_file()


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
