"""Every Python example of the documentation runs, page by page."""

import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

ROOT = Path(__file__).parent.parent
# ```python is run; ```python no-run is only shown.
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page: Path) -> list[tuple[int, str]]:
    """The examples of a page that are run, each with the line that it starts at."""
    text = page.read_text(encoding="utf-8")
    return [(text[: found.start(1)].count("\n"), found[1]) for found in BLOCK.finditer(text)]


PAGES = [page for page in sorted((ROOT / "docs").rglob("*.md")) if blocks(page)]


@pytest.mark.parametrize("page", [pytest.param(p, id=str(p.relative_to(ROOT))) for p in PAGES])
def test_the_examples_of_a_page_run(
    page: Path, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In order, in one namespace that has `spark` and `tmp_path`, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    names = {"__name__": page.stem, "spark": spark, "tmp_path": tmp_path}
    for line, code in blocks(page):
        # Empty lines above put a traceback's line numbers on the page's.
        exec(compile("\n" * line + code, str(page), "exec"), names)


def test_blocks_are_found_with_their_lines(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("one\n```python\na = 1\n```\n```python no-run\nb\n```\n```sh\nc\n```\n")
    assert blocks(page) == [(2, "a = 1\n")]
