"""The record of a benchmark: written after every part, shown with or without a bar."""

import io
import json
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from skewless.lab.bench.process import OnBatch
from skewless.lab.bench.record import Record, in_turn, watched


def record(json_path: Path | None, console: Console) -> Record:
    return Record(
        "tea",
        "cups",
        quick=True,
        json_path=json_path,
        render=lambda outcome: outcome["title"],
        console=console,
        more={"leaves": "green"},
    )


def test_what_is_done_is_saved_before_the_next_part(tmp_path: Path) -> None:
    console, path = Console(file=io.StringIO()), tmp_path / "r.json"
    found = record(path, console)
    found.add_version("java", "17")
    found.add("first", {"title": "a cup", "errors": ["cold"]})
    saved = json.loads(path.read_text())
    assert list(saved) == [
        *("benchmark", "quick", "versions", "machine", "driver_memory"),
        *("leaves", "cups", "errors", "seconds"),
    ]
    assert saved["cups"] == {"first": {"title": "a cup", "errors": ["cold"]}}
    assert saved["errors"] == ["first: cold"]
    assert saved["versions"]["java"] == "17"
    found.add("second", {"title": "another", "errors": []})
    assert found.saved() == json.loads(path.read_text())
    assert isinstance(console.file, io.StringIO)
    assert console.file.getvalue().split() == ["a", "cup", "another"]


@pytest.mark.parametrize("terminal", [False, True])
def test_a_run_is_watched_with_a_bar_only_on_a_terminal(terminal: bool) -> None:
    console = Console(file=io.StringIO(), force_terminal=terminal)

    def measure(on_batch: OnBatch) -> list[Any]:
        on_batch(1)
        return ["done"]

    assert watched(console, "tea: green", 2, measure) == ["done"]
    assert isinstance(console.file, io.StringIO)
    assert ("tea: green" in console.file.getvalue()) is terminal


def test_runs_are_repeated_in_turn() -> None:
    calls: list[str] = []
    shares = iter([0.1, 0.4, 0.2, 0.3])
    heard, busy = in_turn(["a", "b"], 2, lambda: next(shares), lambda name: calls.append(name))
    assert calls == ["a", "b", "a", "b"]
    assert heard == {"a": [None, None], "b": [None, None]}
    assert busy == 0.4
