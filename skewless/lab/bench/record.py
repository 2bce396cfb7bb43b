"""The record of one benchmark: shown and saved part by part, as a long run may be broken off."""

import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from rich.console import Console, RenderableType

from skewless.lab.bench.machine import driver_memory, machine, versions
from skewless.lab.bench.process import OnBatch
from skewless.lab.console import progress_bar

Outcome = dict[str, Any]
Heard = TypeVar("Heard")


class Record:
    """What a benchmark has found so far, on the console and in a JSON file if one is wanted.

    `parts` is what the benchmark calls its parts, "workloads" or "scenarios"; `more` goes into the
    record as it is.
    """

    def __init__(
        self,
        benchmark: str,
        parts: str,
        *,
        quick: bool,
        json_path: Path | None,
        render: Callable[[Outcome], RenderableType],
        console: Console,
        packages: tuple[str, ...] = (),
        more: dict[str, Any] | None = None,
    ) -> None:
        self._began = time.monotonic()
        self._json_path = json_path
        self._render = render
        self._console = console
        self._parts: dict[str, Outcome] = {}
        self._errors: list[str] = []
        self._versions = versions(*packages)
        self._found: dict[str, Any] = {
            "benchmark": benchmark,
            "quick": quick,
            "versions": self._versions,
            "machine": machine(),
            "driver_memory": driver_memory(),
            **(more or {}),
            parts: self._parts,
            "errors": self._errors,
        }

    def add(self, name: str, outcome: Outcome) -> None:
        """One more part is done."""
        self._console.print(self._render(outcome), "")
        self._parts[name] = outcome
        self._errors += [f"{name}: {error}" for error in outcome["errors"]]
        self.saved()

    def add_version(self, package: str, version: str) -> None:
        """What only a run could tell."""
        self._versions[package] = version

    def saved(self) -> dict[str, Any]:
        """Everything found so far, with the time that it took, written down as JSON."""
        self._found["seconds"] = round(time.monotonic() - self._began, 1)
        if self._json_path is not None:
            text = json.dumps(self._found, indent=2) + "\n"
            self._json_path.write_text(text, encoding="utf-8")
        return self._found


def watched(
    console: Console, name: str, batches: int, measure: Callable[[OnBatch], Heard]
) -> Heard:
    """A run with a bar on a terminal; elsewhere the line that follows it is all."""
    if not console.is_terminal:
        return measure(lambda done: None)
    with progress_bar(console) as progress:
        bar = progress.add_task(name, total=batches)
        return measure(lambda done: progress.update(bar, completed=done))


def in_turn(
    names: Sequence[str], repeats: int, busy: Callable[[], float], run: Callable[[str], Heard]
) -> tuple[dict[str, list[Heard]], float]:
    """So many runs of each, and how busy the machine was at most with other work before one.

    In turn, so that what slows the machine down for a while slows all of them.
    """
    heard: dict[str, list[Heard]] = {name: [] for name in names}
    most = 0.0
    for _ in range(repeats):
        for name in names:
            most = max(most, busy())
            heard[name].append(run(name))
    return heard, most
